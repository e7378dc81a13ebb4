//! The output: tables and sentences for people, objects of JSON for programs.

mod json;
mod table;
mod times;

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use indicatif::ProgressBar;
use serde_json::Value;

pub(crate) use self::{
    json::{object_of_outcome, object_of_row, object_of_step},
    table::{Table, outcome_of, state_of},
    times::{ago, day_and_time, in_short},
};

/// The output of one command.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) json: bool,
    /// The columns that a table may take; as many as it needs if there is no limit.
    width: Option<u16>,
    bold: bool,
}

impl Screen {
    pub(crate) fn new(json: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let said = std::env::var("COLUMNS").ok();
        let said = said.and_then(|columns| columns.parse().ok());
        Self {
            json,
            width: said.or_else(|| is_terminal.then(table::width_of_terminal).flatten()),
            bold: is_terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
        }
    }

    /// Writes a line for people.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{text}")
    }

    /// Writes an object, in one line.
    pub(crate) fn object(&self, object: &Value) -> io::Result<()> {
        writeln!(io::stdout().lock(), "{object}")
    }

    pub(crate) fn table(&self, table: &Table) -> io::Result<()> {
        self.line(&table.drawn(self.width, self.bold))
    }
}

/// Shows on a terminal, and nowhere else, how far a command has come.
pub(crate) fn progress() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    progress
}

/// Writes a line beside the output, which a pipe does not take.
pub(crate) fn aside(text: &str) {
    let _nobody_may_read_it = writeln!(io::stderr().lock(), "{text}");
}

/// A text from a store, in which nothing moves a terminal.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = format!("{text:?}");
    let inner = &quoted[1..quoted.len() - 1];
    inner.replace("\\\"", "\"").replace("\\'", "'")
}

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

use crate::secret::Secrets;

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
    secrets: Secrets,
}

impl Screen {
    pub(crate) fn new(json: bool, secrets: Secrets) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let said = std::env::var("COLUMNS").ok();
        let said = said.and_then(|columns| columns.parse().ok());
        let width = said.or_else(|| is_terminal.then(table::width_of_terminal).flatten());
        Self {
            json,
            width: width.filter(|columns| *columns > 0),
            bold: is_terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
            secrets,
        }
    }

    /// Writes a line for people.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        let text = self.secrets.hide(text);
        let lines: Vec<_> = text.split('\n').map(printable).collect();
        writeln!(io::stdout().lock(), "{}", lines.join("\n"))
    }

    /// Writes an object, in one line.
    pub(crate) fn object(&self, object: &Value) -> io::Result<()> {
        self.json_line(&object.to_string())
    }

    /// Writes a text that is JSON, in one line.
    pub(crate) fn json_line(&self, text: &str) -> io::Result<()> {
        let text = self.secrets.hide(text);
        let text = text.chars().fold(String::new(), |mut text, it| {
            match moves(it) {
                true => text.push_str(&format!("\\u{:04x}", u32::from(it))),
                false => text.push(it),
            }
            text
        });
        writeln!(io::stdout().lock(), "{text}")
    }

    /// Says that a change was made. It stands, also where nobody reads that.
    pub(crate) fn done(&self, what: &str, object: &Value) {
        let _nobody_may_read_it = match self.json {
            true => self.object(object),
            false => self.line(&format!("Done: {what}.")),
        };
    }

    pub(crate) fn table(&self, table: &Table) -> io::Result<()> {
        let drawn = self.secrets.hide(&table.drawn(self.width, self.bold));
        writeln!(io::stdout().lock(), "{drawn}")
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
    let _nobody_may_read_it = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Whether a character moves a terminal, or the order of what stands there.
fn moves(it: char) -> bool {
    let turns = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{feff}'];
    it.is_control()
        || turns.contains(&it)
        || ('\u{2028}'..='\u{202e}').contains(&it)
        || ('\u{2066}'..='\u{2069}').contains(&it)
}

/// A line in which nothing moves a terminal.
pub(crate) fn printable(text: &str) -> String {
    let shown = |it: char| match moves(it) {
        true => it.escape_default().to_string(),
        false => it.to_string(),
    };
    text.chars().map(shown).collect()
}

/// A text from a store, in which nothing moves a terminal.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = format!("{text:?}");
    let inner = &quoted[1..quoted.len() - 1];
    inner.replace("\\\"", "\"").replace("\\'", "'")
}

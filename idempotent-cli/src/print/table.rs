//! Tables that fit the terminal.

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, presets::NOTHING};
use idempotent_runtime::{
    OutcomeKind,
    operate::{OutcomeSummary, State},
};

/// A table under way.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| super::printable(&cell));
        self.rows.push(cells.collect());
    }

    /// The table as text, in so many columns.
    pub(super) fn drawn(&self, width: Option<u16>, bold: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        match width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        match bold {
            true => table.enforce_styling(),
            false => table.force_no_tty(),
        };
        let header = self
            .header
            .iter()
            .map(|it| Cell::new(it).add_attribute(Attribute::Bold));
        table.set_header(header.collect::<Vec<_>>());
        table.add_rows(&self.rows);
        if let Some(first) = table.column_mut(0) {
            first.set_padding((0, 1));
            // People copy it.
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
        let lines: Vec<_> = table.lines().map(|it| it.trim_end().to_owned()).collect();
        lines.join("\n")
    }
}

/// The columns of the terminal.
pub(super) fn width_of_terminal() -> Option<u16> {
    comfy_table::Table::new().width()
}

/// The name of a state.
pub(crate) fn state_of(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Done => "done",
        State::Released => "released",
        State::Uncertain => "uncertain",
        State::Parked => "parked",
        State::Undoing => "undoing",
        _ => "unknown",
    }
}

/// The kind and the size of an outcome.
pub(crate) fn outcome_of(outcome: Option<OutcomeSummary>) -> String {
    match outcome {
        None => String::new(),
        Some(it) => format!("{}, {} bytes", kind_of(it.kind), it.bytes),
    }
}

/// The name of a kind of outcome.
pub(super) fn kind_of(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Value => "value",
        OutcomeKind::Error => "error",
        OutcomeKind::NotReplayable => "not replayable",
        OutcomeKind::Stream => "stream",
        _ => "unknown",
    }
}

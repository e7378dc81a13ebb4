//! The search of a list, as it stands in the URL.

use idempotent_runtime::{
    Error, Idempotency,
    operate::{Records, State},
};
use serde::Deserialize;

use crate::links::with_search;

/// The fields of a search. An empty one is no filter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    /// `attention`, `abandoned`, or the name of a state.
    pub(crate) state: String,
    pub(crate) operation: String,
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) older_than: String,
    /// How many records a page shows: 50, or as many as can be chosen at once.
    pub(crate) show: String,
    /// The place where an earlier page ended.
    pub(crate) after: String,
}

/// The filters of states, and the states behind them.
pub(crate) const STATES: [(&str, Option<State>); 8] = [
    ("attention", None),
    ("abandoned", None),
    ("running", Some(State::Running)),
    ("done", Some(State::Done)),
    ("released", Some(State::Released)),
    ("uncertain", Some(State::Uncertain)),
    ("parked", Some(State::Parked)),
    ("undoing", Some(State::Undoing)),
];

/// The value of `show` for as many records as can be chosen at once.
pub(crate) const MANY: &str = "500";

/// The name of a state, as the search has it.
pub(crate) fn name_of(state: State) -> &'static str {
    let mut states = STATES.iter();
    let found = states.find(|(_, its)| *its == Some(state));
    found.map_or("unknown", |(name, _)| name)
}

impl Search {
    /// The list of this search. A field that makes no sense is named.
    pub(crate) fn records<'a>(&self, idem: &'a Idempotency) -> Result<Records<'a>, &'static str> {
        let mut records = idem.records();
        let state = STATES.iter().find(|(name, _)| *name == self.state);
        records = match (self.state.as_str(), state) {
            ("", _) => records,
            ("attention", _) => records.attention(),
            ("abandoned", _) => records.abandoned(),
            (_, Some((_, Some(state)))) => {
                let records = match state.needs_attention() {
                    // An index leads to these.
                    true => records.attention(),
                    false => records,
                };
                records.state(*state)
            }
            _ => return Err("there is no such state"),
        };
        if !self.operation.is_empty() {
            records = records.operation(&self.operation);
        }
        if !self.scope.is_empty() {
            records = records.scope(self.scope.as_str());
        }
        if !self.key.is_empty() {
            records = records.key(self.key.as_str());
        }
        if !self.older_than.is_empty() {
            records = records.older_than(self.older_than.as_str());
        }
        if !self.after.is_empty() {
            let after = self.after.parse();
            records = records.after(after.map_err(|_| "the place in the list makes no sense")?);
        }
        Ok(records)
    }

    /// Whether an error is about the search, and no failure of the store.
    pub(crate) fn is_about_it(error: &Error) -> bool {
        matches!(error, Error::InvalidKey { .. } | Error::InvalidPolicy(_))
    }

    /// How many records a page shows.
    pub(crate) fn shown(&self) -> u32 {
        match self.show == MANY {
            true => 500,
            false => 50,
        }
    }

    /// The link to this search, from another place of the list.
    pub(crate) fn link(&self, after: &str) -> String {
        with_search(
            "records",
            &[
                ("state", &self.state),
                ("operation", &self.operation),
                ("scope", &self.scope),
                ("key", &self.key),
                ("older_than", &self.older_than),
                ("show", &self.show),
                ("after", after),
            ],
        )
    }
}

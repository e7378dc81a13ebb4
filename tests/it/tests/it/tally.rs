//! How many storms or gales blow, and what is seen in all of them.

use std::collections::BTreeMap;

/// How often each kind of thing was seen.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<&'static str, usize>);

impl Tally {
    pub(crate) fn saw(&mut self, kind: &'static str) {
        self.saw_so_many(kind, 1);
    }

    pub(crate) fn saw_so_many(&mut self, kind: &'static str, times: usize) {
        *self.0.entry(kind).or_default() += times;
    }

    /// Asserts that each of these was seen: where nothing happens, every promise is kept.
    pub(crate) fn assert_saw(&self, kinds: &[&str], about: &str) {
        let is_missed = |kind: &&&str| self.0.get(**kind).is_none_or(|times| *times == 0);
        let missed: Vec<_> = kinds.iter().filter(is_missed).collect();
        assert!(missed.is_empty(), "{about}: never {missed:?}: {self:?}");
    }
}

/// How many blow, where this variable may ask for another number.
///
/// # Panics
///
/// Where it asks for none, or for what is no number: nothing would be tested.
pub(crate) fn how_many(variable: &str, usually: u64) -> u64 {
    let Ok(asked) = std::env::var(variable) else {
        return usually;
    };
    let number = asked.parse().unwrap_or(0);
    assert!(
        number > 0,
        "{variable} is `{asked}`, and is to be 1 or more"
    );
    number
}

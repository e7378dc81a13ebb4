//! Which simulated or chaos runs there are, and what is seen in all of them.

use std::{collections::BTreeMap, ops::Range};

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

/// The seeds to run: the first `usually`, or those that this variable names, by a number of them or
/// by a range such as `480..500`.
///
/// # Panics
///
/// If it names none, or is neither: nothing would be tested.
pub(crate) fn seeds(variable: &str, usually: u64) -> Range<u64> {
    let Ok(asked) = std::env::var(variable) else {
        return 0..usually;
    };
    range(&asked).unwrap_or_else(|| {
        panic!("`{variable}` is `{asked}`: give a number from 1 on, or a range of seeds such as `480..500`")
    })
}

fn range(asked: &str) -> Option<Range<u64>> {
    let (first, end) = asked.split_once("..").unwrap_or(("0", asked));
    let seeds = first.parse().ok()?..end.parse().ok()?;
    (!seeds.is_empty()).then_some(seeds)
}

/// Whether these seeds are enough to see everything that is seen in so many.
pub(crate) fn are_enough(seeds: &Range<u64>, usually: u64) -> bool {
    seeds.start == 0 && seeds.end >= usually
}

#[test]
fn first_hour_24_a_number_or_a_range_of_seeds_blows() {
    assert_eq!(range("500"), Some(0..500));
    assert_eq!(range("480..500"), Some(480..500));
    for nothing in ["", "0", "many", "5..5", "6..5", "..5", "5..", "-1..5"] {
        assert_eq!(range(nothing), None, "{nothing}");
    }
}

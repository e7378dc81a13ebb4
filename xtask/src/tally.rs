//! How many tests passed and failed, as the runners themselves say it.

use std::{fmt, iter::Sum, ops::AddAssign};

/// The counts of the runners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    failed: u32,
    ignored: u32,
}

impl Tally {
    /// The counts in a line of a runner's output: none, unless it is a summary.
    pub(crate) fn of(line: &str) -> Self {
        let line = plain(line);
        // Nextest shows what a failed test said, indented, and so would a test that runs tests.
        let is_summary = line.starts_with("test result:")
            || (line.trim_start().starts_with("Summary [") && line.contains(" run: "));
        if !is_summary {
            return Self::default();
        }
        let words: Vec<&str> = line
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let mut tally = Self::default();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u32>() else {
                continue;
            };
            match pair[1] {
                "passed" => tally.passed += number,
                "failed" | "timed" => tally.failed += number,
                "ignored" | "skipped" => tally.ignored += number,
                _ => {}
            }
        }
        tally
    }
}

/// A line without the colours of the terminal.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        let mut sum = Self::default();
        tallies.for_each(|tally| sum += tally);
        sum
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.ignored {
            0 => Ok(()),
            ignored => write!(f, ", {ignored} ignored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_cargo_test_and_nextest_say() {
        for (line, passed, failed, ignored) in [
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
                12,
                0,
                1,
            ),
            (
                "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out",
                3,
                2,
                0,
            ),
            (
                "     Summary [   0.318s] 23 tests run: 22 passed (1 slow), 1 failed, 4 skipped",
                22,
                1,
                4,
            ),
            (
                "     Summary [   9.000s] 3/7 tests run: 2 passed, 1 timed out, 0 skipped",
                2,
                1,
                0,
            ),
            (
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m1\u{1b}[0m test run: \u{1b}[1m1\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped",
                1,
                0,
                0,
            ),
        ] {
            assert_eq!(
                Tally::of(line),
                Tally {
                    passed,
                    failed,
                    ignored
                },
                "{line}"
            );
        }
    }

    #[test]
    fn counts_nothing_in_other_lines() {
        assert_eq!(Tally::of("I told it that 12 passed"), Tally::default());
        assert_eq!(
            Tally::of("    test result: FAILED. 0 passed; 1 failed"),
            Tally::default()
        );
        assert_eq!(Tally::of(""), Tally::default());
    }
}

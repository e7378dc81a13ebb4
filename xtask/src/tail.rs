//! The end of what a step said, for a log that lost its beginning.

use std::collections::VecDeque;

/// How many lines are kept.
const LINES: usize = 40;

/// The last lines of an output.
#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<String>);

impl Tail {
    pub(crate) fn push(&mut self, line: &str) {
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.trim_end().to_owned());
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_lines_in_their_order() {
        let mut tail = Tail::default();
        for number in 0..LINES + 2 {
            tail.push(&format!("line {number}\n"));
        }
        let lines: Vec<&str> = tail.lines().collect();
        assert_eq!((lines.len(), lines[0]), (LINES, "line 2"));
        assert_eq!(lines.last(), Some(&"line 41"));
    }
}

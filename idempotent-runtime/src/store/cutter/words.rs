//! The words of a statement, each with how many brackets stand around it.

use std::ops::Range;

/// A name, a number, a parameter, a string or a sign.
#[derive(Debug)]
struct Word {
    at: Range<usize>,
    depth: usize,
    begins_line: bool,
}

/// A statement and its words.
#[derive(Debug)]
pub(super) struct Words<'a> {
    text: &'a str,
    words: Vec<Word>,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (mut words, mut depth, mut from) = (Vec::new(), 0_usize, 0);
        while let Some(begin) = text[from..].find(|c: char| !c.is_whitespace()) {
            let begins_line = text[from..from + begin].contains('\n');
            let begin = from + begin;
            let length = length(&text[begin..]);
            let word = &text[begin..begin + length];
            from = begin + length;
            if word.starts_with("--") {
                from -= 1;
                continue;
            }
            depth -= usize::from(matches!(word, ")" | "]" | "}"));
            words.push(Word {
                at: begin..from,
                depth,
                begins_line,
            });
            depth += usize::from(matches!(word, "(" | "[" | "{"));
        }
        Self { text, words }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word at this place, and nothing beyond the last one.
    pub(super) fn at(&self, place: usize) -> &'a str {
        let word = self.words.get(place);
        word.map_or("", |word| &self.text[word.at.clone()])
    }

    pub(super) fn before(&self, place: usize) -> &'a str {
        place.checked_sub(1).map_or("", |before| self.at(before))
    }

    pub(super) fn is(&self, place: usize, words: &[&str]) -> bool {
        let word = self.at(place);
        words.iter().any(|other| word.eq_ignore_ascii_case(other))
    }

    pub(super) fn begins_line(&self, place: usize) -> bool {
        self.words.get(place).is_none_or(|word| word.begins_line)
    }

    /// The range of these words in the text.
    pub(super) fn range(&self, places: Range<usize>) -> Range<usize> {
        self.words[places.start].at.start..self.words[places.end - 1].at.end
    }

    pub(super) fn text(&self, places: Range<usize>) -> &'a str {
        &self.text[self.range(places)]
    }

    /// The first place from `begin` on, in the same brackets, that is `over`: at the latest where
    /// these end.
    pub(super) fn end(&self, begin: usize, over: impl Fn(usize) -> bool) -> usize {
        let depth = self.words.get(begin).map_or(0, |word| word.depth);
        let is_end = |&place: &usize| match self.words[place].depth.cmp(&depth) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => over(place),
            std::cmp::Ordering::Greater => false,
        };
        (begin..self.len()).find(is_end).unwrap_or(self.len())
    }

    /// The place where the part before `end` begins: behind the last place in the same brackets
    /// that is `outside`.
    pub(super) fn begin(&self, end: usize, outside: impl Fn(usize) -> bool) -> usize {
        let depth = self.words[end].depth;
        let is_outside = |&place: &usize| {
            let other = self.words[place].depth;
            other < depth || other == depth && outside(place)
        };
        (0..end).rev().find(is_outside).map_or(0, |place| place + 1)
    }

    /// The items between commas from `begin` on, and where they end.
    pub(super) fn list(&self, begin: usize, over: &[&str]) -> (Vec<Range<usize>>, usize) {
        let (mut items, mut from) = (Vec::new(), begin);
        loop {
            let end = self.end(from, |place| self.at(place) == "," || self.is(place, over));
            items.push(from..end);
            if self.at(end) != "," {
                return (items, end);
            }
            from = end + 1;
        }
    }
}

/// How long the first word is.
fn length(text: &str) -> usize {
    let of_word = |c: char| !(c.is_alphanumeric() || "_.$?:".contains(c));
    if text.starts_with("--") {
        return text.find('\n').unwrap_or(text.len());
    }
    if let Some(string) = text.strip_prefix('\'') {
        return string.find('\'').expect("a string ends") + 2;
    }
    let signs = ["<=", ">=", "<>", "~=", "==", ".."];
    match text.find(of_word).unwrap_or(text.len()) {
        _ if signs.iter().any(|sign| text.starts_with(sign)) => 2,
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

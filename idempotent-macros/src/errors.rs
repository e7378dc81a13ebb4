//! The mistakes of one attribute, gathered so that all of them are shown at once.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;

/// Collects mistakes; [`Errors::finish`] must be asked before it is dropped.
pub(crate) struct Errors {
    gathered: Option<Vec<syn::Error>>,
}

impl Errors {
    pub(crate) const fn new() -> Self {
        Self {
            gathered: Some(Vec::new()),
        }
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        if let Some(gathered) = &mut self.gathered {
            gathered.push(error);
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Points at all of `tokens`, from the first to the last.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Keeps the value, or the mistake.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish(mut self) -> Result<(), syn::Error> {
        let mut gathered = self.gathered.take().unwrap_or_default().into_iter();
        let Some(mut first) = gathered.next() else {
            return Ok(());
        };
        first.extend(gathered);
        Err(first)
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            self.gathered.is_none() || std::thread::panicking(),
            "mistakes were gathered and never looked at"
        );
    }
}

/// The mistakes as calls of `compile_error!`, without the path `::core` that syn writes before it:
/// a crate of the user's may be called so.
pub(crate) fn compile_error(error: syn::Error) -> TokenStream {
    let tokens = error.into_compile_error().into_iter();
    let is_path = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ':',
        TokenTree::Ident(ident) => ident == "core",
        _ => false,
    };
    tokens.filter(|token| !is_path(token)).collect()
}

/// "unknown argument `tll`, did you mean `ttl`? known are `key`, `scope` and `ttl`"
pub(crate) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let hint = closest(word, known)
        .map(|close| format!(", did you mean `{close}`?"))
        .unwrap_or_else(|| ";".to_owned());
    format!("unknown {what} `{word}`{hint} known are {}", list(known))
}

/// "`a`, `b` and `c`"
pub(crate) fn list(words: &[&str]) -> String {
    joined(words, "and")
}

/// "`a`, `b` or `c`"
pub(crate) fn either(words: &[&str]) -> String {
    joined(words, "or")
}

fn joined(words: &[&str], conjunction: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
    }
}

/// The known word that a slip of the finger could have meant.
pub(crate) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = if word.len() < 4 { 1 } else { 2 };
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which two swapped neighbours count as one slip.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let mut cost = (above[column] + usize::from(a != b))
                .min(above[column + 1] + 1)
                .min(line[column] + 1);
            let swapped = row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b;
            if swapped {
                cost = cost.min(before[column - 1] + 1);
            }
            line.push(cost);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["key", "scope", "ttl", "in_flight"];
        assert_eq!(closest("tll", &known), Some("ttl"));
        assert_eq!(closest("inflight", &known), Some("in_flight"));
        assert_eq!(closest("scoep", &known), Some("scope"));
        assert_eq!(closest("timeout", &known), None);
    }

    #[test]
    fn an_unknown_word_lists_the_known_ones() {
        assert_eq!(
            unknown("argument", "tll", &["key", "ttl"]),
            "unknown argument `tll`, did you mean `ttl`? known are `key` and `ttl`"
        );
        assert_eq!(
            unknown("argument", "timeout", &["key"]),
            "unknown argument `timeout`; known are `key`"
        );
    }

    #[test]
    #[should_panic(expected = "never looked at")]
    fn mistakes_cannot_be_forgotten() {
        drop(Errors::new());
    }
}

//! Attributes: which items are for tests, how far an item goes, and what of an attribute is code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::arrows::{is_punct, is_semicolon, is_visibility};

/// An attribute: its tokens inside the brackets.
pub(super) struct Attribute {
    is_inner: bool,
    tokens: Vec<TokenTree>,
}

/// The attributes that begin here, and the number of their tokens, which is 1 for a bare `#`.
pub(super) fn at(rest: &[TokenTree]) -> (Vec<Attribute>, usize) {
    let mut attributes = Vec::new();
    let mut length = 0;
    loop {
        let (group, is_inner) = match &rest[length..] {
            [sign, TokenTree::Group(group), ..] if is_punct(sign, '#') => (group, false),
            [sign, bang, TokenTree::Group(group), ..]
                if is_punct(sign, '#') && is_punct(bang, '!') =>
            {
                (group, true)
            }
            _ => break,
        };
        if group.delimiter() != Delimiter::Bracket {
            break;
        }
        length += if is_inner { 3 } else { 2 };
        attributes.push(Attribute {
            is_inner,
            tokens: group.stream().into_iter().collect(),
        });
    }
    (attributes, length.max(1))
}

/// Whether a file, or the inside of a module, begins with `#![cfg(test)]`.
pub(super) fn is_module_of_tests(tokens: &[TokenTree]) -> bool {
    let (attributes, _) = at(tokens);
    let mut inner = attributes.iter().filter(|it| it.is_inner);
    inner.any(|it| is_condition_of_tests(&it.tokens))
}

impl Attribute {
    pub(super) fn is(&self, word: &str) -> bool {
        self.begins_with(word) && self.tokens.len() == 1
    }

    fn begins_with(&self, word: &str) -> bool {
        matches!(self.tokens.first(), Some(TokenTree::Ident(it)) if it == word)
    }

    /// Whether only tests have the item that stands behind it.
    pub(super) fn is_for_tests(&self) -> bool {
        !self.is_inner && is_condition_of_tests(&self.tokens)
    }

    /// The file that it says.
    pub(super) fn path(&self) -> Option<String> {
        match &self.tokens[..] {
            [_, _, TokenTree::Literal(path)] if self.begins_with("path") => {
                Some(inside(&path.to_string()).to_owned())
            }
            _ => None,
        }
    }

    /// Its tokens without documentation, and without what only tests have.
    pub(super) fn live(&self) -> TokenStream {
        live(&self.tokens).into_iter().collect()
    }
}

fn live(attribute: &[TokenTree]) -> Vec<TokenTree> {
    match attribute {
        [TokenTree::Ident(word), ..] if word == "doc" => Vec::new(),
        [TokenTree::Ident(word), TokenTree::Group(group)] if word == "cfg_attr" => {
            let inside: Vec<_> = group.stream().into_iter().collect();
            let mut parts = inside.split(|token| is_punct(token, ','));
            match parts.next() {
                Some(condition) if is_test(condition) => Vec::new(),
                Some(condition) => [condition.to_vec(), parts.flat_map(live).collect()].concat(),
                None => Vec::new(),
            }
        }
        _ => attribute.to_vec(),
    }
}

/// Whether it is `cfg(…)` of a condition that holds in tests alone.
fn is_condition_of_tests(attribute: &[TokenTree]) -> bool {
    match attribute {
        [TokenTree::Ident(word), TokenTree::Group(group)] if word == "cfg" => {
            let inside: Vec<_> = group.stream().into_iter().collect();
            is_test(&inside)
        }
        _ => false,
    }
}

/// Whether a condition is `test`, or `all(…)` with `test` as a member.
fn is_test(condition: &[TokenTree]) -> bool {
    let is_word = |it: &[TokenTree]| matches!(it, [TokenTree::Ident(word)] if word == "test");
    match condition {
        [TokenTree::Ident(word), TokenTree::Group(group)] if word == "all" => {
            let inside: Vec<_> = group.stream().into_iter().collect();
            inside.split(|token| is_punct(token, ',')).any(is_word)
        }
        _ => is_word(condition),
    }
}

/// A string without its quotation marks.
pub(super) fn inside(literal: &str) -> &str {
    let marks = ['r', '#'];
    let inside = literal
        .trim_start_matches(marks)
        .trim_end_matches('#')
        .strip_prefix('"');
    inside.and_then(|it| it.strip_suffix('"')).unwrap_or("")
}

pub(super) fn without_visibility(item: &[TokenTree]) -> &[TokenTree] {
    match item {
        [TokenTree::Ident(word), TokenTree::Group(group), rest @ ..]
            if word == "pub" && is_visibility(group) =>
        {
            rest
        }
        [TokenTree::Ident(word), rest @ ..] if word == "pub" => rest,
        _ => item,
    }
}

/// The number of tokens of an item, a field, a variant, an arm or a statement.
pub(super) fn length(item: &[TokenTree]) -> usize {
    let mut words = item.iter().map_while(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Literal(abi) => Some(abi.to_string()),
        _ => None,
    });
    let is_signature = |it: &str| matches!(it, "async" | "unsafe" | "extern" | "safe" | "default");
    let keyword = words.find(|it| !is_signature(it) && !it.starts_with('"'));
    let is_brace = |token: &TokenTree| matches!(token, TokenTree::Group(group) if is_braces(group));
    let end = match keyword.as_deref() {
        Some("use" | "static" | "type" | "let" | "crate") => item.iter().position(is_semicolon),
        Some("const") if !is_constant_function(item) => item.iter().position(is_semicolon),
        Some("fn" | "const" | "struct" | "enum" | "trait" | "impl" | "mod" | "macro_rules") => {
            item.iter().position(|it| is_semicolon(it) || is_brace(it))
        }
        _ => (0..item.len()).find(|&place| {
            let is_pattern = item.get(place + 1).is_some_and(|it| is_punct(it, '='));
            let it = &item[place];
            is_semicolon(it) || is_punct(it, ',') || is_brace(it) && !is_pattern
        }),
    };
    end.map_or(item.len(), |end| end + 1)
}

fn is_constant_function(item: &[TokenTree]) -> bool {
    let head = item.iter().take(5);
    let mut words = head.map_while(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Literal(abi) => Some(abi.to_string()),
        _ => None,
    });
    words.any(|word| word == "fn")
}

fn is_braces(group: &Group) -> bool {
    group.delimiter() == Delimiter::Brace
}

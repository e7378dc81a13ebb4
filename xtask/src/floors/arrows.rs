//! The paths that a source file names, read from its tokens.

use std::mem;

use proc_macro2::{Delimiter, Group, Ident, Literal, TokenStream, TokenTree};

use super::attributes::{self, Attribute};

/// A path, as seen from the root of the crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) line: usize,
    /// The module in which it stands.
    pub(super) at: Vec<String>,
    /// Its names behind `crate`.
    pub(super) path: Vec<String>,
    /// The name that an import gives it, which is `*` for a glob; none if it is no import.
    pub(super) name: Option<String>,
}

/// A feature that the code asks for.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) line: usize,
    pub(super) at: Vec<String>,
    pub(super) name: String,
}

/// All that is to know of a file.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) named: Vec<Named>,
    pub(super) features: Vec<Feature>,
    /// Macros that stand at the root of the crate, wherever they are written.
    pub(super) exported: Vec<Vec<String>>,
    /// Modules that are for tests.
    pub(super) tests: Vec<Vec<String>>,
    /// Files that are modules of tests by `#[path]`, as seen from the folder of this one.
    pub(super) test_files: Vec<String>,
    /// Modules in files of their own that are not for tests alone.
    pub(super) real: Vec<Vec<String>>,
}

/// Reads a file that is the module `at`.
pub(super) fn read(tokens: TokenStream, at: &[String]) -> Read {
    let mut reader = Reader {
        read: Read::default(),
        at: at.to_vec(),
        is_attribute: false,
        line: None,
    };
    reader.module(tokens);
    reader.read
}

struct Reader {
    read: Read,
    /// The module in which it reads.
    at: Vec<String>,
    /// Whether it reads an attribute or a condition, where strings may be paths.
    is_attribute: bool,
    /// The line of the string that it reads.
    line: Option<usize>,
}

impl Reader {
    fn module(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        if attributes::is_module_of_tests(&tokens) {
            self.read.tests.push(self.at.clone());
        } else {
            self.tokens(&tokens);
        }
    }

    fn items(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        self.tokens(&tokens);
    }

    fn tokens(&mut self, tokens: &[TokenTree]) {
        let mut place = 0;
        while let Some(token) = tokens.get(place) {
            let rest = &tokens[place..];
            place += match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => self.behind_attributes(rest),
                TokenTree::Ident(word) => self.word(word, rest),
                TokenTree::Group(group) => {
                    self.items(group.stream());
                    1
                }
                TokenTree::Literal(text) if self.is_attribute => {
                    self.text(text);
                    1
                }
                TokenTree::Literal(_) | TokenTree::Punct(_) => 1,
            };
        }
    }

    /// Reads the attributes that begin here, and skips their item if it is for tests. Gives the
    /// number of tokens.
    fn behind_attributes(&mut self, rest: &[TokenTree]) -> usize {
        let (attributes, length) = attributes::at(rest);
        let next = &rest[length..];
        if attributes.iter().any(Attribute::is_for_tests) {
            return length + self.skip(&attributes, next);
        }
        for attribute in &attributes {
            self.attribute(attribute.live());
        }
        if let [_, _, TokenTree::Ident(name), ..] = next
            && attributes.iter().any(|it| it.is("macro_export"))
        {
            self.read.exported.push(self.below(&plain(name)));
        }
        length
    }

    fn attribute(&mut self, tokens: TokenStream) {
        let before = mem::replace(&mut self.is_attribute, true);
        self.items(tokens);
        self.is_attribute = before;
    }

    /// Reads what begins with a word; the number of its tokens.
    fn word(&mut self, word: &Ident, rest: &[TokenTree]) -> usize {
        match (&*word.to_string(), rest) {
            ("crate" | "self" | "super", _) => {
                let (path, length) = path(rest);
                self.path(word.span().start().line, &path, None);
                length
            }
            ("mod", [_, TokenTree::Ident(name), TokenTree::Group(inside), ..]) => {
                self.at.push(plain(name));
                self.module(inside.stream());
                self.at.pop();
                3
            }
            ("mod", [_, TokenTree::Ident(name), end, ..]) if is_semicolon(end) => {
                self.read.real.push(self.below(&plain(name)));
                3
            }
            // Behind a return type, `use<T>` is no import.
            ("use", [_, next, ..]) if !is_punct(next, '<') => {
                let end = rest.iter().position(is_semicolon).unwrap_or(rest.len());
                self.tree(&rest[1..end], &[]);
                end
            }
            // `pub(in crate::room)` names nothing that it needs.
            ("pub", [_, TokenTree::Group(group), ..]) if is_visibility(group) => 2,
            (word, _) => self.rare_word(word, rest),
        }
    }

    fn rare_word(&mut self, word: &str, rest: &[TokenTree]) -> usize {
        match (word, rest) {
            ("extern", [krate, own, TokenTree::Ident(it), ..])
                if own.to_string() == "crate" && it == "self" =>
            {
                self.path(krate.span().start().line, &["crate".to_owned()], Some(""));
                3
            }
            ("cfg", [_, bang, TokenTree::Group(group), ..]) if is_punct(bang, '!') => {
                self.attribute(group.stream());
                3
            }
            ("feature", [_, sign, TokenTree::Literal(name), ..])
                if is_punct(sign, '=') && self.is_attribute =>
            {
                self.read.features.push(Feature {
                    line: name.span().start().line,
                    at: self.at.clone(),
                    name: attributes::inside(&name.to_string()).to_owned(),
                });
                3
            }
            _ => 1,
        }
    }

    /// Reads a string of an attribute as a path, if it begins as one.
    fn text(&mut self, literal: &Literal) {
        let text = literal.to_string();
        let text = attributes::inside(&text);
        let is_path = text.split_once("::").is_some_and(|(it, _)| begins(it));
        if is_path && let Ok(tokens) = text.parse() {
            self.line = Some(literal.span().start().line);
            self.items(tokens);
            self.line = None;
        }
    }

    /// Skips an item of tests; the number of its tokens.
    fn skip(&mut self, attributes: &[Attribute], item: &[TokenTree]) -> usize {
        let head = attributes::without_visibility(item);
        let length = item.len() - head.len() + attributes::length(head);
        if let [keyword, TokenTree::Ident(name), end, ..] = head
            && matches!(keyword, TokenTree::Ident(word) if word == "mod")
            && (is_semicolon(end) || matches!(end, TokenTree::Group(_)))
        {
            match attributes.iter().find_map(Attribute::path) {
                Some(path) => self.read.test_files.push(path),
                None => self.read.tests.push(self.below(&plain(name))),
            }
        }
        length
    }

    /// Reads a tree of `use` below a prefix.
    fn tree(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        let mut names = prefix.to_vec();
        let mut alias = None;
        let mut line = 0;
        let mut rest = tokens.iter();
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    alias = rest.next().map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(word) => {
                    line = word.span().start().line;
                    names.push(plain(word));
                }
                TokenTree::Group(group) => {
                    let inside: Vec<_> = group.stream().into_iter().collect();
                    for branch in inside.split(|token| is_punct(token, ',')) {
                        self.tree(branch, &names);
                    }
                    return;
                }
                sign if is_punct(sign, '*') => {
                    line = sign.span().start().line;
                    names.push("*".to_owned());
                }
                // `::name` is of another crate.
                sign if is_punct(sign, ':') && names.is_empty() => return,
                _ => {}
            }
        }
        let last = names.iter().rfind(|name| !begins(name)).cloned();
        if line > 0 {
            let name = alias.or(last).unwrap_or_default();
            self.path(line, &names, Some(name.trim_start_matches("r#")));
        }
    }

    fn path(&mut self, line: usize, path: &[String], name: Option<&str>) {
        // `self.field`, `pub(crate)`, and other words that lead nowhere.
        if name.is_none() && path.len() == 1 {
            return;
        }
        let mut at = match path[0].as_str() {
            "crate" => Vec::new(),
            _ => self.at.clone(),
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        self.read.named.push(Named {
            line: self.line.unwrap_or(line),
            at: self.at.clone(),
            path: at,
            name: name.map(str::to_owned),
        });
    }

    fn below(&self, name: &str) -> Vec<String> {
        let mut module = self.at.clone();
        module.push(name.to_owned());
        module
    }
}

fn begins(word: &str) -> bool {
    matches!(word, "crate" | "self" | "super")
}

/// A name without the sign that makes it raw.
fn plain(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

pub(super) fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

pub(super) fn is_semicolon(token: &TokenTree) -> bool {
    is_punct(token, ';')
}

/// Whether it is `(crate)`, `(super)` or `(in …)`, and no tuple.
pub(super) fn is_visibility(group: &Group) -> bool {
    let inside: Vec<_> = group.stream().into_iter().collect();
    let is_in = match &inside[..] {
        [TokenTree::Ident(word)] => begins(&word.to_string()),
        [TokenTree::Ident(word), ..] => word == "in",
        _ => false,
    };
    is_in && group.delimiter() == Delimiter::Parenthesis
}

/// The path that begins here, and the number of its tokens.
fn path(rest: &[TokenTree]) -> (Vec<String>, usize) {
    let mut names = vec![rest[0].to_string()];
    let mut length = 1;
    while let [colon, another, TokenTree::Ident(name), ..] = &rest[length..]
        && is_punct(colon, ':')
        && is_punct(another, ':')
    {
        names.push(plain(name));
        length += 3;
    }
    (names, length)
}

//! The paths that a source file names, read from its tokens.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path that begins with `crate`, `self` or `super`, as seen from the root of the crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) line: usize,
    /// Its first names behind `crate`.
    pub(super) path: Vec<String>,
}

/// A module inside a file, or in a file of its own, that only tests have.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) named: Vec<Named>,
    /// Modules in files of their own that are for tests.
    pub(super) tests: Vec<Vec<String>>,
}

/// Reads a file that is the module `at`.
pub(super) fn read(tokens: TokenStream, at: &[String]) -> Read {
    let mut reader = Reader {
        read: Read::default(),
        at: at.to_vec(),
    };
    reader.items(tokens);
    reader.read
}

struct Reader {
    read: Read,
    /// The module in which it reads.
    at: Vec<String>,
}

impl Reader {
    fn items(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut place = 0;
        let mut is_test = false;
        while let Some(token) = tokens.get(place) {
            let rest = &tokens[place..];
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let (attribute, length) = attribute(rest);
                    is_test |= attribute.is_some_and(is_for_tests);
                    place += length;
                    continue;
                }
                _ if is_test => {
                    place += self.skip(rest);
                    is_test = false;
                    continue;
                }
                TokenTree::Ident(word) if word == "mod" => {
                    if let [_, TokenTree::Ident(name), TokenTree::Group(inside), ..] = rest {
                        self.at.push(name.to_string());
                        self.items(inside.stream());
                        self.at.pop();
                        place += 3;
                        continue;
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = rest.iter().position(is_semicolon).unwrap_or(rest.len());
                    self.tree(&rest[1..end], &[]);
                    place += end;
                    continue;
                }
                TokenTree::Ident(word) if word == "pub" => {
                    // `pub(in crate::room)` names nothing that it needs.
                    if let [_, TokenTree::Group(group), ..] = rest
                        && group.delimiter() == Delimiter::Parenthesis
                        && is_of_paths(group)
                    {
                        place += 2;
                        continue;
                    }
                }
                TokenTree::Ident(word) if begins(&word.to_string()) => {
                    let (path, length) = path(rest);
                    self.names(word.span().start().line, &path);
                    place += length;
                    continue;
                }
                TokenTree::Group(group) => self.items(group.stream()),
                _ => {}
            }
            place += 1;
        }
    }

    /// Skips an item of tests; the number of its tokens.
    fn skip(&mut self, rest: &[TokenTree]) -> usize {
        let name = rest.windows(2).take(4).find_map(|pair| match pair {
            [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "mod" => Some(name),
            _ => None,
        });
        let end = rest.iter().position(|token| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            token => is_semicolon(token) || is_punct(token, ','),
        });
        let end = end.unwrap_or(rest.len().saturating_sub(1));
        if let (Some(name), Some(true)) = (name, rest.get(end).map(is_semicolon)) {
            let mut module = self.at.clone();
            module.push(name.to_string());
            self.read.tests.push(module);
        }
        end + 1
    }

    /// Reads a tree of `use` below a prefix.
    fn tree(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        let mut names = prefix.to_vec();
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if word == "as" => break,
                TokenTree::Ident(word) => {
                    line = word.span().start().line;
                    names.push(word.to_string());
                }
                TokenTree::Group(group) => {
                    let inside: Vec<_> = group.stream().into_iter().collect();
                    for branch in inside.split(|token| is_punct(token, ',')) {
                        self.tree(branch, &names);
                    }
                    return;
                }
                token if is_punct(token, '*') => names.push("*".to_owned()),
                _ => {}
            }
        }
        if names.first().is_some_and(|first| begins(first)) && line > 0 {
            self.names(line, &names);
        }
    }

    fn names(&mut self, line: usize, path: &[String]) {
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
        self.read.named.push(Named { line, path: at });
    }
}

fn begins(word: &str) -> bool {
    matches!(word, "crate" | "self" | "super")
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_semicolon(token: &TokenTree) -> bool {
    is_punct(token, ';')
}

/// Whether it is `(crate)`, `(super)` or `(in …)`, and no tuple.
fn is_of_paths(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(word)) if word == "in" || begins(&word.to_string()))
}

/// The attribute that begins here, and the number of its tokens.
fn attribute(rest: &[TokenTree]) -> (Option<String>, usize) {
    match rest {
        [_, TokenTree::Group(group), ..] => (Some(group.stream().to_string()), 2),
        // An inner one is of the whole file.
        [_, bang, TokenTree::Group(_), ..] if is_punct(bang, '!') => (None, 3),
        _ => (None, 1),
    }
}

/// Whether only tests have what stands behind this attribute.
fn is_for_tests(attribute: String) -> bool {
    let attribute = attribute.replace(' ', "");
    let condition = attribute.strip_prefix("cfg(").unwrap_or_default();
    condition == "test)" || condition.starts_with("all(test,") || condition.contains(",shuttle")
}

/// The path that begins here, and the number of its tokens.
fn path(rest: &[TokenTree]) -> (Vec<String>, usize) {
    let mut names = vec![rest[0].to_string()];
    let mut length = 1;
    while let [colon, another, TokenTree::Ident(name), ..] = &rest[length..]
        && is_punct(colon, ':')
        && is_punct(another, ':')
    {
        names.push(name.to_string());
        length += 3;
    }
    (names, length)
}

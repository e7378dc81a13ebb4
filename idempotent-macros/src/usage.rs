//! Whether an expression mentions an argument, as far as the tokens show.
//!
//! A name counts where it stands as an expression, and inside macros as any token or as `{name}` in
//! a string, but not in those whose value stands in the program, such as `stringify!` and
//! `concat!`.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Expr, ExprCall, ExprMacro, ExprMethodCall, ExprPath, Ident, LitStr, Macro, PatIdent, Path,
    PathSegment, Token,
};

use crate::syntax::bare;

/// The names that an expression may mention.
#[derive(Clone)]
pub(crate) struct Names(HashSet<String>);

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl Names {
    pub(crate) fn mentioned_in(&self, written: &Expr) -> bool {
        let mut search = Search {
            names: self,
            found: false,
        };
        search.visit_expr(written);
        search.found
    }

    /// The calls inside `written` that can only give the same, or something new, whatever the
    /// arguments are.
    pub(crate) fn detached_calls(&self, written: &Expr) -> Vec<Expr> {
        let mut known = self.clone();
        LocalNames(&mut known).visit_expr(written);
        let mut calls = DetachedCalls {
            names: &known,
            calls: Vec::new(),
        };
        calls.visit_expr(written);
        calls.calls
    }

    /// Whether text reads as one of the names, or as a field of it, such as `order.id`. It is
    /// looked at letter by letter, because what are no tokens, as in `it's`, the compiler reports
    /// by itself as soon as it is read as such.
    pub(crate) fn are_read_in(&self, text: &str) -> bool {
        let is_field = |part: &str| {
            let part = part.strip_prefix("r#").unwrap_or(part);
            !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let mut parts = text.split('.').map(str::trim);
        parts.next().is_some_and(|first| self.0.contains(first)) && parts.all(is_field)
    }

    fn has(&self, ident: &Ident) -> bool {
        self.0.contains(&ident.to_string())
    }

    /// Format strings name a raw identifier without its `r#`.
    fn has_in_format(&self, name: &str) -> bool {
        self.0.contains(name) || self.0.contains(&format!("r#{name}"))
    }

    pub(crate) fn in_tokens(&self, tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => self.has(&ident),
            TokenTree::Group(group) => self.in_tokens(group.stream()),
            TokenTree::Literal(literal) => syn::parse_str::<LitStr>(&literal.to_string())
                .is_ok_and(|text| self.in_format(&text.value())),
            TokenTree::Punct(_) => false,
        })
    }

    /// Looks for `{name}` and `{name:…}`; `{{` is the brace itself.
    fn in_format(&self, text: &str) -> bool {
        text.replace("{{", "").split('{').skip(1).any(|after| {
            let end = after
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(after.len());
            after[end..].starts_with(['}', ':', '.']) && self.has_in_format(&after[..end])
        })
    }
}

struct Search<'a> {
    names: &'a Names,
    found: bool,
}

impl Visit<'_> for Search<'_> {
    fn visit_expr_path(&mut self, path: &ExprPath) {
        self.found |= path
            .path
            .get_ident()
            .is_some_and(|ident| self.names.has(ident));
    }

    fn visit_macro(&mut self, invocation: &Macro) {
        self.found |=
            !is_constant(&invocation.path) && self.names.in_tokens(invocation.tokens.clone());
    }
}

/// Adds what closures and `match` arms bind.
struct LocalNames<'a>(&'a mut Names);

impl Visit<'_> for LocalNames<'_> {
    fn visit_pat_ident(&mut self, pattern: &PatIdent) {
        self.0.0.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

struct DetachedCalls<'a> {
    names: &'a Names,
    calls: Vec<Expr>,
}

impl DetachedCalls<'_> {
    /// Notes the outermost such call only.
    fn note(&mut self, call: Expr) -> bool {
        let detached = !self.names.mentioned_in(&call);
        if detached {
            self.calls.push(call);
        }
        detached
    }
}

impl Visit<'_> for DetachedCalls<'_> {
    fn visit_expr_call(&mut self, call: &ExprCall) {
        if is_transparent(&call.func) || !self.note(Expr::Call(call.clone())) {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        if !is_made_of_literals(call) && !self.note(Expr::MethodCall(call.clone())) {
            let given = maker_of_another(call);
            let given = given.filter(|function| !self.names.mentioned_in(function));
            self.calls.extend(given.cloned());
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_expr_macro(&mut self, invocation: &ExprMacro) {
        if is_constant(&invocation.mac.path) || self.note(Expr::Macro(invocation.clone())) {
            return;
        }
        let arguments =
            Punctuated::<Expr, Token![,]>::parse_terminated.parse2(invocation.mac.tokens.clone());
        for argument in arguments.into_iter().flatten() {
            self.visit_expr(&argument);
        }
    }
}

/// A tuple struct, a variant, or the library's `text`, which give back what they are given; or the
/// name of a type.
fn is_transparent(function: &Expr) -> bool {
    let Expr::Path(ExprPath { path, .. }) = bare(function) else {
        return false;
    };
    path.segments.last().is_some_and(|segment| {
        let name = segment.ident.to_string();
        ["text", "type_name"].contains(&name.as_str()) || name.starts_with(char::is_uppercase)
    })
}

/// `"none".to_owned()`: a method of a literal, given nothing else, is as constant as the literal.
fn is_made_of_literals(call: &ExprMethodCall) -> bool {
    let is_constant = |part: &Expr| match bare(part) {
        Expr::Lit(_) => true,
        Expr::MethodCall(call) => is_made_of_literals(call),
        _ => false,
    };
    is_constant(&call.receiver) && call.args.iter().all(is_constant)
}

/// `Uuid::new_v4`, which `unwrap_or_else(Uuid::new_v4)` calls where there is nothing. Most other
/// functions that stand there make the same of the same, such as `PoisonError::into_inner`, and so
/// does `String::new`.
fn maker_of_another(call: &ExprMethodCall) -> Option<&Expr> {
    const CALLED_WHERE_NOTHING_IS: [&str; 4] = [
        "unwrap_or_else",
        "or_else",
        "map_or_else",
        "get_or_insert_with",
    ];
    const MAKE_ANOTHER: [&str; 6] = ["new", "now", "rand", "random", "gen", "generate"];
    let given = bare(call.args.first()?);
    let Expr::Path(ExprPath { path, .. }) = given else {
        return None;
    };
    const EMPTY: [&str; 2] = ["String", "Vec"];
    let mut segments = path.segments.iter().rev();
    let function = segments.next()?.ident.to_string();
    let is_empty = |segment: &PathSegment| EMPTY.iter().any(|name| segment.ident == name);
    if function == "new" && segments.next().is_some_and(is_empty) {
        return None;
    }
    let is_called = CALLED_WHERE_NOTHING_IS
        .iter()
        .any(|name| call.method == name);
    let first_word = function.split('_').next()?;
    (is_called && MAKE_ANOTHER.contains(&first_word)).then_some(given)
}

fn is_constant(path: &Path) -> bool {
    const CONSTANT: [&str; 5] = ["concat", "env", "include_str", "module_path", "stringify"];
    path.segments
        .last()
        .is_some_and(|segment| CONSTANT.contains(&segment.ident.to_string().as_str()))
}

#[cfg(test)]
mod tests;

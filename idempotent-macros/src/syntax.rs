//! Small parts of syntax that several readers take apart.

use proc_macro2::{Group, TokenStream};
use syn::Expr;

/// The same braces, at the same place, around other tokens.
pub(crate) fn regroup(group: &Group, stream: TokenStream) -> Group {
    let mut regrouped = Group::new(group.delimiter(), stream);
    regrouped.set_span(group.span());
    regrouped
}

/// The expression without the parentheses and the groups of `macro_rules` around it, and a literal
/// also without a `&`: none of them makes anything else of a template, a name or a duration.
pub(crate) fn bare(written: &Expr) -> &Expr {
    match written {
        Expr::Group(group) => bare(&group.expr),
        Expr::Paren(paren) => bare(&paren.expr),
        Expr::Reference(reference) if matches!(bare(&reference.expr), Expr::Lit(_)) => {
            bare(&reference.expr)
        }
        other => other,
    }
}

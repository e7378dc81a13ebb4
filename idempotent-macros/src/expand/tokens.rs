//! Names, places and forms of the tokens that are emitted.

use proc_macro2::{Group, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, Ident};

use crate::syntax::regroup;

/// A name of the expansion's own. In a binding, a constant of the user's with that name would be
/// taken for a pattern.
pub(super) fn ours(name: &str) -> Ident {
    Ident::new(&format!("__idempotent_{name}"), Span::mixed_site())
}

/// `&expression`, or the expression where it is a reference by its tokens. A tuple borrows its
/// elements.
pub(super) fn by_reference(expression: &Expr) -> TokenStream {
    let span = expression.span();
    match expression {
        Expr::Reference(reference) if reference.mutability.is_none() => {
            expression.to_token_stream()
        }
        Expr::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(by_reference);
            quote_spanned!(span=> &(#(#elements,)*))
        }
        Expr::Path(_)
        | Expr::Field(_)
        | Expr::MethodCall(_)
        | Expr::Call(_)
        | Expr::Lit(_)
        | Expr::Index(_)
        | Expr::Macro(_)
        | Expr::Paren(_)
        | Expr::Try(_)
        | Expr::Await(_) => {
            quote_spanned!(span=> & #expression)
        }
        _ => quote_spanned!(span=> &(#expression)),
    }
}

/// Gives every generated token the same place, so that a failing bound is reported there, and once.
/// A `$crate` that the path of the runtime begins with still means the crate whose `macro_rules`
/// wrote it.
pub(super) fn at(span: Span, generated: TokenStream) -> TokenStream {
    generated
        .into_iter()
        .map(|mut token| {
            let place = match &token {
                TokenTree::Ident(word) if word == "$crate" => word.span().located_at(span),
                _ => span,
            };
            token.set_span(place);
            token
        })
        .collect()
}

/// The body in braces that are ours, so that no lint asks to remove them, at their place.
pub(super) fn hidden(body: &Group) -> Group {
    let mut hidden = body.clone();
    hidden.set_span(Span::mixed_site().located_at(body.span()));
    hidden
}

/// Renames `self` in an expression from the attribute, as `#[async_trait]` does in the body. In
/// `self::judge`, `self` is the module.
pub(super) fn rename_self(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut renamed = TokenStream::new();
    while let Some(token) = tokens.next() {
        let is_module = matches!(
            tokens.peek(),
            Some(TokenTree::Punct(next)) if next.as_char() == ':' && next.spacing() == Spacing::Joint
        );
        renamed.extend([match token {
            TokenTree::Ident(ident) if ident == "self" && !is_module => {
                Ident::new("__self", ident.span()).into()
            }
            TokenTree::Group(group) => regroup(&group, rename_self(group.stream())).into(),
            other => other,
        }]);
    }
    renamed
}

//! The function that `#[async_trait]` leaves behind when it expands before the attribute does.
//!
//! ```text
//! // Input:
//! async fn charge(&self, Json(body): Json<Body>, _: u8) -> Ret { BODY }
//! // Output, which is the input here:
//! fn charge<'life0, 'async_trait>(&'life0 self, __arg1: Json<Body>, __arg2: u8) -> Pin<Box<dyn Future<Output = Ret> + …>> {
//!     Box::pin(async move {
//!         if let Some(__ret) = None::<Ret> { return __ret; }
//!         let __self = self;
//!         let Json(body) = { let __arg1 = __arg1; __arg1 };
//!         let __arg2 = __arg2;
//!         let __ret: Ret = { BODY };
//!         __ret
//!     })
//! }
//! ```

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::parse::Parser as _;
use syn::{GenericParam, Pat, Signature};

use crate::syntax::regroup;

/// Whether this is such a function.
pub(crate) fn expanded(signature: &Signature, body: &Group) -> bool {
    let marked = signature.generics.params.iter().any(|parameter| {
        matches!(parameter, GenericParam::Lifetime(lifetime) if lifetime.lifetime.ident == "async_trait")
    });
    marked && statements_with_body(&body.stream()).is_some()
}

/// Puts what `wrap` makes of `{ BODY }` in its place.
pub(crate) fn replace_body(block: &Group, wrap: impl FnOnce(&Group) -> TokenStream) -> Group {
    let mut wrap = Some(wrap);
    replace_in(block, &mut wrap)
}

/// The pattern that was written where the signature now has `__arg1`.
pub(crate) fn unpacked(argument: &Pat, body: &Group) -> Option<Pat> {
    let Pat::Ident(argument) = argument else {
        return None;
    };
    if !argument.ident.to_string().starts_with("__arg") {
        return None;
    }
    let name = argument.ident.to_string();
    let statements = statements_with_body(&body.stream())?;
    let unpacking =
        statements
            .split(|token| is_punct(token, ';'))
            .find(|statement| match statement.last() {
                Some(TokenTree::Group(value)) => {
                    let named = value.stream().into_iter().nth(1);
                    named.is_some_and(|token| is_ident(&token, &name))
                }
                Some(value) => is_ident(value, &name),
                None => false,
            })?;
    if unpacking.last().is_some_and(|value| is_ident(value, &name)) {
        // A pattern that was written as `_` is not unpacked.
        return Pat::parse_single.parse2(quote!(_)).ok();
    }
    // No `;` parts it from an `if let … { … }` before it, and a range in it may have a `=`.
    let begin = unpacking.iter().rposition(|token| is_ident(token, "let"))? + 1;
    let end = unpacking.iter().rposition(|token| is_punct(token, '='))?;
    let pattern: TokenStream = unpacking.get(begin..end)?.iter().cloned().collect();
    Pat::parse_multi.parse2(pattern).ok()
}

/// The statements around `let __ret: Ret = { BODY };`, at any depth to which another attribute has
/// moved them.
fn statements_with_body(stream: &TokenStream) -> Option<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = stream.clone().into_iter().collect();
    if body_place(&tokens).is_some() {
        return Some(tokens);
    }
    tokens.iter().find_map(|token| match token {
        TokenTree::Group(group) => statements_with_body(&group.stream()),
        _ => None,
    })
}

/// The place of `{ BODY }` among these tokens.
fn body_place(tokens: &[TokenTree]) -> Option<usize> {
    let begin = tokens.windows(3).position(|window| {
        is_ident(&window[0], "let") && is_ident(&window[1], "__ret") && is_punct(&window[2], ':')
    })?;
    let length = tokens[begin..]
        .iter()
        .position(|token| is_punct(token, ';'))?;
    let place = begin + length - 1;
    matches!(&tokens[place], TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
        .then_some(place)
}

fn replace_in<W: FnOnce(&Group) -> TokenStream>(group: &Group, wrap: &mut Option<W>) -> Group {
    let mut tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let place = body_place(&tokens);
    for (index, token) in tokens.iter_mut().enumerate() {
        let TokenTree::Group(inner) = token else {
            continue;
        };
        let replaced = match place {
            Some(place) if place != index => continue,
            Some(_) => match wrap.take() {
                Some(wrap) => regroup(inner, wrap(inner)),
                None => continue,
            },
            None => replace_in(inner, wrap),
        };
        *token = TokenTree::Group(replaced);
    }
    regroup(group, tokens.into_iter().collect())
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Ident, Span};
    use quote::ToTokens as _;
    use syn::parse_quote;

    use super::*;

    #[test]
    fn what_was_written_is_found_where_it_is_unpacked() {
        let body: Group = parse_quote! {{
            Box::pin(async move {
                if let Some(__ret) = None::<Ret> { return __ret; }
                let Wrapped(order) = { let __arg0 = __arg0; __arg0 };
                let digit @ 0..=255 = { let __arg1 = __arg1; __arg1 };
                let __arg2 = __arg2;
                let __ret: Ret = { order };
                __ret
            })
        }};
        let written = |name: &str| {
            let name = Ident::new(name, Span::call_site());
            unpacked(&parse_quote!(#name), &body)
                .map(|pattern| pattern.to_token_stream().to_string())
        };
        assert_eq!(written("__arg0").as_deref(), Some("Wrapped (order)"));
        assert_eq!(written("__arg1").as_deref(), Some("digit @ 0 ..= 255"));
        assert_eq!(written("__arg2").as_deref(), Some("_"));
        assert_eq!(written("order"), None);
    }
}

//! The helpers that the derives share.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Path, Result, parse_quote};

use crate::syntax::regroup;

/// `::idempotent_runtime`, or the path that `crate = path` in the attribute of this name says.
/// `other` reads anything else that stands there.
pub(crate) fn runtime(
    attributes: &[Attribute],
    name: &str,
    mut other: impl FnMut(ParseNestedMeta<'_>) -> Result<()>,
) -> Result<Path> {
    let mut runtime: Path = parse_quote!(::idempotent_runtime);
    for attribute in attributes {
        if !attribute.path().is_ident(name) {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return other(meta);
            }
            runtime = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(runtime)
}

/// The same tokens at the same place, as the derive's own: lints such as `deprecated` speak of the
/// written code, and not of the generated code. A `$crate` still means the crate that wrote it.
pub(crate) fn quiet(tokens: impl ToTokens) -> TokenStream {
    let tokens = tokens.into_token_stream().into_iter();
    let quiet = tokens.map(|mut token| {
        let span = Span::call_site().located_at(token.span());
        match &mut token {
            TokenTree::Ident(word) if word == "$crate" => {}
            TokenTree::Group(group) => token = regroup(group, quiet(group.stream())).into(),
            other => other.set_span(span),
        }
        token
    });
    quiet.collect()
}

/// Keeps the results that went well, and gathers the errors of the others in one.
pub(crate) fn gather<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut gathered = Vec::new();
    let mut mistakes: Option<syn::Error> = None;
    for result in results {
        match (result, &mut mistakes) {
            (Ok(value), _) => gathered.push(value),
            (Err(mistake), Some(mistakes)) => mistakes.combine(mistake),
            (Err(mistake), None) => mistakes = Some(mistake),
        }
    }
    mistakes.map_or(Ok(gathered), Err)
}

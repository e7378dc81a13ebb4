//! The attribute and the derive of `idempotent-runtime`. Use them through that crate, which
//! re-exports both.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod choices;
mod values;

mod duration;
mod key;
mod syntax;
mod template;

mod async_trait;
mod function;

mod suspicious_text;
mod type_walk;
mod usage;
mod valid;

mod model;

mod declaration;
mod expand;
mod source;

mod derive;
mod error_verdict;
mod key_part;

mod errors;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use quote::quote;
use syn::Item;

use crate::args::Args;
use crate::errors::Errors;
use crate::function::Function;
use crate::model::Model;

#[expect(
    missing_docs,
    reason = "the manual stands where the runtime re-exports it, and rustdoc would put this below it"
)]
#[proc_macro_attribute]
pub fn idempotent(arguments: TokenStream, item: TokenStream) -> TokenStream {
    protect(arguments.into(), item.into()).into()
}

/// Implements `KeyPart` for a newtype, a struct of key parts, or an enum of plain variants.
///
/// The fields of a struct are parts in the order in which they stand; of an enum the part is the
/// variant's name. Another order of the fields, and another name of a variant, are other keys:
/// calls under way lose sight of their records. A field that is `None` makes the whole key missing,
/// as an element of a tuple does. `#[key_part(crate = path)]` says where the runtime is, when it is
/// renamed. See `idempotent_runtime::KeyPart`.
#[proc_macro_derive(KeyPart, attributes(key_part))]
pub fn key_part(item: TokenStream) -> TokenStream {
    key_part::derive(item.into())
        .unwrap_or_else(errors::compile_error)
        .into()
}

/// Implements `ErrorVerdict`: `#[verdict(replay)]`, `#[verdict(release)]` or
/// `#[verdict(uncertain)]` says of each variant of an error type, or of a whole struct, what
/// becomes of a call that ends with it.
///
/// Every variant needs one, so that a new variant is decided and not forgotten. Use it by
/// `on_error = ErrorVerdict::verdict`. `#[verdict(crate = path)]` on the type says where the
/// runtime is, when it is renamed. See `idempotent_runtime::ErrorVerdict`.
#[proc_macro_derive(ErrorVerdict, attributes(verdict))]
pub fn error_verdict(item: TokenStream) -> TokenStream {
    error_verdict::derive(item.into())
        .unwrap_or_else(errors::compile_error)
        .into()
}

fn protect(arguments: TokenStream2, item: TokenStream2) -> TokenStream2 {
    let mut errors = Errors::new();
    let args = Args::parse(arguments, &mut errors);
    let function = errors.keep(function(&item));
    if let Some(function) = &function {
        valid::check(&args, function, &mut errors);
    }
    if let Err(error) = errors.finish() {
        let message = errors::compile_error(error);
        return quote!(#message #item);
    }
    function
        .as_ref()
        .and_then(|function| Model::new(args, function))
        .map_or(item, |model| expand::expand(&model))
}

fn function(item: &TokenStream2) -> syn::Result<Function> {
    syn::parse2(item.clone()).map_err(|error| match syn::parse2(item.clone()) {
        Ok(Item::Fn(_)) | Err(_) => error,
        Ok(_) => syn::Error::new(
            error.span(),
            "`#[idempotent]` goes on an async function, or on an async method inside of an `impl`",
        ),
    })
}

//! Pictures of the expansion. `UPDATE_EXPECT=1 cargo test -p idempotent-macros` draws them anew.

mod functions;
mod keys;
mod outcomes;
mod policies;
mod words;

use expect_test::Expect;
use proc_macro2::TokenStream;
use quote::quote;

/// Expands the first attribute of `input`, which stands alone or in an `impl`.
fn picture(arguments: TokenStream, function: TokenStream, expected: &Expect) {
    let is_method = function.to_string().contains("self");
    let expanded = crate::protect(arguments, function);
    let item = if is_method {
        quote!(impl Shop { #expanded })
    } else {
        expanded
    };
    expected.assert_eq(&prettyplease::unparse(&syn::parse2(item).unwrap()));
}

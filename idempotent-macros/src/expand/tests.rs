//! Pictures of the expansion. `UPDATE_EXPECT=1 cargo test -p idempotent-macros` draws them anew.
//!
//! All but the first show `private::` for `::idempotent_runtime::__private::`, so that lines stay
//! short.

mod functions;
mod keys;
mod outcomes;
mod policies;
mod words;

use expect_test::Expect;
use proc_macro2::TokenStream;
use quote::quote;

/// First what is written, then what comes of it: `function` stands alone or in an `impl`.
/// `::idempotent_runtime::__private` is abbreviated to `private`.
fn picture(arguments: TokenStream, function: TokenStream, expected: &Expect) {
    let expanded = expand(arguments, function).to_string();
    let short = expanded.replace(":: idempotent_runtime :: __private ::", "private ::");
    draw(short.parse().unwrap(), expected);
}

/// The same with every path in full.
fn picture_in_full(arguments: TokenStream, function: TokenStream, expected: &Expect) {
    draw(expand(arguments, function), expected);
}

fn expand(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let is_method = function.to_string().contains("self");
    let written = what_a_user_may_have_forbidden(&function.to_string());
    let expanded = crate::protect(arguments, function);
    assert_eq!(
        what_a_user_may_have_forbidden(&expanded.to_string()),
        written
    );
    if is_method {
        quote!(impl Shop { #expanded })
    } else {
        expanded
    }
}

fn draw(item: TokenStream, expected: &Expect) {
    expected.assert_eq(&prettyplease::unparse(&syn::parse2(item).unwrap()));
}

/// A path to one of Rust's own crates, where a crate of the user's may have that name, or an
/// `allow`, which the user may have forbidden.
pub(crate) fn what_a_user_may_have_forbidden(expanded: &str) -> Option<String> {
    let words: Vec<&str> = expanded.split_whitespace().collect();
    let found = words.windows(4).find(|words| {
        let is_crate = |word: &str| matches!(word, "core" | "std" | "alloc");
        let is_root = words[1] == "::"
            && !words[0].ends_with(|end: char| end.is_alphanumeric() || end == '_');
        is_root && is_crate(words[2]) || words[0] == "#" && matches!(words[2], "allow" | "expect")
    });
    found.map(|words| words.join(" "))
}

#[test]
fn first_hour_01_a_path_to_the_standard_library_and_an_allow_are_found() {
    let found = |expanded| what_a_user_may_have_forbidden(expanded).is_some();
    assert!(found("let a = :: core :: pin :: pin ! (b) ;"));
    assert!(found(
        "(:: std :: option :: Option) ; let a = :: std :: mem :: take (b) ;"
    ));
    assert!(found("{ # [ allow (clippy :: all) ] let a = b ; }"));
    assert!(!found(
        "let a = :: idempotent_runtime :: __private :: core :: pin :: pin ! (b) ;"
    ));
}

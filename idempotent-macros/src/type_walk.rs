//! The parts of a type that its tokens show, and those of them that can neither be compared nor
//! read back.

use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::visit::{self, Visit};
use syn::{
    GenericArgument, Ident, Lifetime, ParenthesizedGenericArguments, PathArguments, PathSegment,
    ReturnType, Type, TypeFnPtr, TypeReference,
};

use crate::args::Args;
use crate::errors::Errors;
use crate::function::{Function, bare};

/// Refuses a value that borrows: nothing would own what is read back. An alias that is not called a
/// result is not looked at: the meaning of its parameters is unknown.
pub(crate) fn borrowed_value(args: &Args, function: &Function, errors: &mut Errors) {
    if args.outcome.named().is_some() {
        return;
    }
    let value = function
        .output()
        .and_then(last_segment)
        .filter(|output| output.ident.to_string().ends_with("Result"))
        .and_then(first_type);
    for piece in value.map(walk).unwrap_or_default() {
        if let Type::Reference(reference) = piece
            && !may_be_read(reference)
        {
            errors.on(
                reference,
                "a reference cannot be read back from a store: return the value itself, such as a `String`",
            );
        }
    }
}

/// Whether what it refers to may be one of a fixed set, such as a table of currencies:
/// `Deserialize` can be implemented for `&'static Currency`, as for no text and no slice.
fn may_be_read(reference: &TypeReference) -> bool {
    let lifetime = reference.lifetime.as_ref();
    let is_static = lifetime.is_some_and(|lifetime| lifetime.ident == "static");
    let is_named = matches!(bare(&reference.elem), Type::Path(_));
    is_static && is_named && !is_called(&reference.elem, &["str"])
}

/// The references and lifetimes in a type that are not `'static`; those of function types bind
/// nothing, and `'async_trait` is what `#[async_trait]` adds to the bounds of every `impl Trait`.
pub(crate) fn borrows(ty: &Type) -> Vec<TokenStream> {
    struct Borrows(Vec<TokenStream>);

    impl Visit<'_> for Borrows {
        fn visit_type_reference(&mut self, reference: &TypeReference) {
            if reference
                .lifetime
                .as_ref()
                .is_some_and(|lifetime| lifetime.ident == "static")
            {
                visit::visit_type_reference(self, reference);
            } else {
                self.0.push(reference.to_token_stream());
            }
        }

        fn visit_lifetime(&mut self, lifetime: &Lifetime) {
            if lifetime.ident != "static" && lifetime.ident != "async_trait" {
                self.0.push(lifetime.to_token_stream());
            }
        }

        fn visit_type_fn_ptr(&mut self, _: &TypeFnPtr) {}

        fn visit_parenthesized_generic_arguments(&mut self, _: &ParenthesizedGenericArguments) {}
    }

    let mut borrows = Borrows(Vec::new());
    borrows.visit_type(ty);
    borrows.0
}

/// Whether a future is returned, boxed or not: attributes such as `#[async_recursion]` make that of
/// an async function.
pub(crate) fn is_a_future(output: &ReturnType) -> bool {
    struct Future(bool);

    impl Visit<'_> for Future {
        fn visit_ident(&mut self, ident: &Ident) {
            self.0 |= ident.to_string().ends_with("Future");
        }
    }

    let mut future = Future(false);
    future.visit_return_type(output);
    future.0
}

/// Refuses arguments that look like others in every retry.
pub(crate) fn random_order(args: &Args, function: &Function, errors: &mut Errors) {
    if args.fingerprint.named().is_some() {
        return;
    }
    let skipped = args.skip.value().map(Vec::as_slice).unwrap_or_default();
    for argument in &function.arguments {
        let Some(ty) = argument
            .ty
            .as_ref()
            .filter(|_| !skipped.contains(&argument.name))
        else {
            continue;
        };
        for set in walk(ty)
            .into_iter()
            .filter(|piece| is_called(piece, &["HashSet"]) && !has_a_hasher(piece))
        {
            let name = &argument.name;
            errors.on(
                set,
                format!("a `HashSet` has another order in every retry, which then looks like another call: take a `BTreeSet`, or write `skip({name})`"),
            );
        }
    }
}

/// The type, and what tuples, arrays, references and the containers of the standard library hold,
/// at any depth. The parameters of any other type are not looked at: their use is that type's own
/// business.
fn walk(ty: &Type) -> Vec<&Type> {
    const CONTAINERS: [&str; 11] = [
        "Option", "Result", "Vec", "VecDeque", "Box", "Arc", "Rc", "BTreeMap", "HashMap",
        "BTreeSet", "HashSet",
    ];
    let ty = bare(ty);
    let inside: Vec<&Type> = match ty {
        Type::Reference(reference) => vec![&reference.elem],
        Type::Slice(slice) => vec![&slice.elem],
        Type::Array(array) => vec![&array.elem],
        Type::Tuple(tuple) => tuple.elems.iter().collect(),
        _ if is_called(ty, &CONTAINERS) => last_segment(ty).map(types).unwrap_or_default(),
        _ => Vec::new(),
    };
    let inside = inside.into_iter().flat_map(walk);
    std::iter::once(ty).chain(inside).collect()
}

fn is_called(ty: &Type, names: &[&str]) -> bool {
    last_segment(ty).is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// Whether a set says how it hashes: by that, its order may be the same in every retry.
fn has_a_hasher(set: &Type) -> bool {
    last_segment(set).is_some_and(|last| types(last).len() > 1)
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match bare(ty) {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn first_type(segment: &PathSegment) -> Option<&Type> {
    types(segment).into_iter().next()
}

fn types(segment: &PathSegment) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn refused(arguments: TokenStream, function: TokenStream) -> bool {
        let expanded = crate::protect(arguments, function);
        expanded.to_string().contains("compile_error")
    }

    fn parsed(types: &[&str]) -> Vec<TokenStream> {
        types.iter().map(|ty| ty.parse().unwrap()).collect()
    }

    #[test]
    fn a_random_order_is_found_in_whatever_holds_it() {
        let holding = parsed(&[
            "HashSet<u8>",
            "(HashSet<u8>)",
            "&HashSet<u8>",
            "&[HashSet<u8>]",
            "[HashSet<u8>; 2]",
            "(u8, HashSet<u8>)",
            "Option<HashSet<u8>>",
            "Result<u8, HashSet<u8>>",
            "Vec<std::collections::HashSet<u8>>",
            "VecDeque<HashSet<u8>>",
            "Box<HashSet<u8>>",
            "Arc<HashSet<u8>>",
            "Rc<HashSet<u8>>",
            "BTreeMap<u8, HashSet<u8>>",
            "HashMap<u8, HashSet<u8>>",
            "BTreeSet<HashSet<u8>>",
            "HashSet<HashSet<u8>, Fixed>",
        ]);
        for ty in holding {
            let function = quote!(async fn f(id: u8, tags: #ty) -> Result<u8, Error> { Ok(id) });
            assert!(refused(quote!(key = id), function.clone()), "{ty}");
            assert!(!refused(quote!(key = id, skip(tags)), function), "{ty}");
        }
    }

    #[test]
    fn a_value_that_borrows_is_found_in_what_is_called_a_result() {
        let outputs = [
            ("Result<&str, Error>", true),
            ("PayResult<Option<&'static str>>", true),
            ("Result<&'static [Currency], Error>", true),
            ("Result<&'a Currency, Error>", true),
            ("Result<&'static Currency, Error>", false),
            ("Found<&'static str>", false),
        ];
        for (written, expected) in outputs {
            let output: TokenStream = written.parse().unwrap();
            let function = quote!(async fn f<'a>(id: &'a u8) -> #output { find(id) });
            assert_eq!(
                refused(quote!(key = id), function.clone()),
                expected,
                "{written}"
            );
            let by_reference = quote!(key = id, outcome = reference(save, load));
            assert!(!refused(by_reference, function), "{written}");
        }
    }

    #[test]
    fn a_task_of_its_own_borrows_nothing_and_may_call_what_does() {
        for (written, expected) in [
            ("sign: fn(&str) -> &str", false),
            ("sign: Box<dyn Fn(&str) -> u8 + Send>", false),
            ("table: &'static Table", false),
            ("table: &'static Table<'a>", true),
            ("table: Option<&Table>", true),
            ("note: impl Debug + Send + 'static", false),
            ("note: impl Debug + 'static + 'async_trait", false),
            ("note: impl Debug + 'a", true),
            ("self: Arc<Self>", false),
            ("self: Pin<&mut Self>", true),
        ] {
            let argument: TokenStream = written.parse().unwrap();
            let arguments = quote!(name = "n", key = id, fingerprint = id, on_cancel = detach);
            let function =
                quote!(async fn f<'a>(#argument, id: u8) -> Result<u8, Error> { Ok(id) });
            assert_eq!(refused(arguments, function), expected, "{written}");
        }
    }
}

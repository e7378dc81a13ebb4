use syn::parse_quote;

use super::*;

fn bound(function: &Function) -> Vec<String> {
    let names = function
        .arguments
        .iter()
        .map(|argument| argument.name.to_string());
    names.collect()
}

#[test]
fn patterns_bind_their_names_in_order() {
    let function: Function = parse_quote! {
        async fn f(&self, State(app): State<App>, Order { id, line: (a, ref b), .. }: Order, Unit: Unit, _: u8, mut c: u8) {}
    };
    assert_eq!(bound(&function), ["app", "id", "a", "b", "c"]);
    let function: Function = parse_quote! {
        async fn f(whole @ (left, inner @ Some(right)): Pair, ref text: String) {}
    };
    assert_eq!(
        bound(&function),
        ["whole", "left", "inner", "right", "text"]
    );
}

#[test]
fn a_capitalised_argument_is_a_name_unless_its_type_is_called_so() {
    let function: Function =
        parse_quote! { async fn f(N: u64, mut Sum: u64, Unit: units::Unit) {} };
    assert_eq!(bound(&function), ["N", "Sum"]);
}

#[test]
fn the_alternatives_of_a_pattern_bind_one_name() {
    let function: Function = parse_quote! {
        async fn f((Ok(id) | Err(id)): Result<u8, u8>, (A(a, b) | B(b, a)): Either) {}
    };
    assert_eq!(bound(&function), ["id", "a", "b"]);
}

#[test]
fn only_a_whole_argument_has_a_known_type() {
    let function: Function =
        parse_quote! { async fn f(a: &mut A, (b, c): (B, C), ref d: D, e @ _: E) {} };
    let known: Vec<bool> = function
        .arguments
        .iter()
        .map(|argument| argument.ty.is_some())
        .collect();
    assert_eq!(known, [true, false, false, false, false]);
}

#[test]
fn the_self_type_of_an_inner_item_does_not_count() {
    let uses: Function = parse_quote! { async fn f(a: u8) { let b = Self::new(a); } };
    let inner: Function = parse_quote! {
        async fn f(a: impl Into<u8>) {
            struct B;
            impl B { fn new() -> Self { Self } }
        }
    };
    assert!(uses.self_type().is_some());
    assert!(inner.self_type().is_none());
}

#[test]
fn the_self_type_of_an_inner_type_does_not_count() {
    for inner in [
        quote!(
            struct Node<T>
            where
                T: Copy,
            {
                next: Option<Box<Self>>,
            }
        ),
        quote!(
            struct Chain(Option<Box<Self>>);
        ),
        quote!(
            enum Tree {
                Leaf,
                Branch(Box<Self>),
            }
        ),
        quote!(union Either { number: u64, next: Option<&'static Self> }),
    ] {
        let function: Function = parse_quote! { async fn f(a: u8) { #inner a } };
        assert!(function.self_type().is_none(), "{inner}");
    }
}

#[test]
fn the_self_type_counts_again_after_an_inner_item() {
    let trait_inside: Function =
        parse_quote! { async fn f(a: u8) { trait B { fn new() -> Self; } } };
    let after_an_item: Function =
        parse_quote! { async fn f(a: u8) { impl Into<u8> for B { } Self::new(a) } };
    let after_a_statement: Function =
        parse_quote! { async fn f(a: u8) { let b: Box<dyn Fn() -> impl Copy>; (Self::new(a)) } };
    let after_a_type: Function =
        parse_quote! { async fn f(a: u8) { struct B(u8); enum C { D } Self::new(a) } };
    let after_a_method: Function = parse_quote! { async fn f(a: u8) { all.union(&Self::new(a)) } };
    assert!(trait_inside.self_type().is_none());
    assert!(after_a_type.self_type().is_some());
    assert!(after_a_method.self_type().is_some());
    assert!(after_an_item.self_type().is_some());
    assert!(after_a_statement.self_type().is_some());
}

#[test]
fn a_body_that_does_not_parse_is_kept_as_it_is() {
    let function: Function = parse_quote! { async fn f(a: A) -> R { a. } };
    assert_eq!(
        function.with_body(None, Group::stream).to_string(),
        "async fn f (a : A) -> R { a . }"
    );
}

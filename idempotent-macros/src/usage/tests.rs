use quote::ToTokens as _;
use syn::parse_quote;

use super::*;

fn names() -> Names {
    ["req", "id", "generate", "self"]
        .map(str::to_owned)
        .into_iter()
        .collect()
}

fn detached(written: &Expr) -> Vec<String> {
    let calls = names().detached_calls(written);
    calls
        .iter()
        .map(|call| call.to_token_stream().to_string())
        .collect()
}

#[test]
fn an_argument_counts_where_it_is_an_expression() {
    let mentioned: [Expr; 8] = [
        parse_quote!(req.order_id),
        parse_quote!(self.tenant),
        parse_quote!((1, id)),
        parse_quote!(format!("{}-{}", 1, req.id)),
        parse_quote!(format!("{}", sku(&req))),
        parse_quote!(format!("order-{id}")),
        parse_quote!(format!("{id:>8}")),
        parse_quote!(format!("{{{id}}}")),
    ];
    let not_mentioned: [Expr; 9] = [
        parse_quote!(config.req),
        parse_quote!(Uuid::new_v4()),
        parse_quote!(other::id),
        parse_quote!("{id}"),
        parse_quote!(format!("{identity} {{x}}")),
        parse_quote!(format!("{{id}}")),
        parse_quote!(stringify!(id)),
        parse_quote!(concat!("{id}", "-v1")),
        parse_quote!(include_str!("{id}")),
    ];
    assert!(
        mentioned
            .iter()
            .all(|written| names().mentioned_in(written))
    );
    assert!(
        !not_mentioned
            .iter()
            .any(|written| names().mentioned_in(written))
    );
}

#[test]
fn text_reads_as_an_argument_or_as_a_field_of_one() {
    let read = ["id", " req.order_id ", "self.tenant.0", "req.r#type"];
    let not_read = [
        "",
        "id.",
        "it's",
        "id's",
        "identity",
        "req#3",
        "config.id",
        "id/1",
        "7e",
    ];
    assert!(read.iter().all(|text| names().are_read_in(text)));
    assert!(!not_read.iter().any(|text| names().are_read_in(text)));
}

#[test]
fn a_call_beside_an_argument_must_mention_one_too() {
    let written: [(Expr, &str); 7] = [
        (parse_quote!((id, Uuid::new_v4())), "Uuid :: new_v4 ()"),
        (parse_quote!(format!("{id}{}", now())), "now ()"),
        (
            parse_quote!((id, now().to_string())),
            "now () . to_string ()",
        ),
        (
            parse_quote!((id, Some(Uuid::new_v4()))),
            "Uuid :: new_v4 ()",
        ),
        (
            parse_quote!(id.unwrap_or_else(Uuid::new_v4)),
            "Uuid :: new_v4",
        ),
        (
            parse_quote!(id.unwrap_or_else(ids::generate_id)),
            "ids :: generate_id",
        ),
        (
            parse_quote!(id.map_or_else((random), OrderId::new)),
            "random",
        ),
    ];
    for (written, call) in &written {
        assert_eq!(detached(written), [*call]);
    }
}

#[test]
fn constants_constructors_and_local_names_are_fine() {
    let attached: [Expr; 12] = [
        parse_quote!((id, "eu", TENANT, Some(1), text(&REGION), type_name::<T>())),
        parse_quote!((id, concat!("a", "b"))),
        parse_quote!(id.map(OrderId::new).unwrap_or_else(generate)),
        parse_quote!(
            self.shop()
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .id
        ),
        parse_quote!(id.unwrap_or_else(|| "none".to_owned())),
        parse_quote!(id.map_or_else(String::new, |id| id.to_string())),
        parse_quote!(id.unwrap_or_else(Vec::<u8>::new)),
        parse_quote!(id.unwrap_or_else(generic_id)),
        parse_quote!(id.or_else(newest_of_none)),
        parse_quote!((id, "a".replacen("a", "b", 1).trim())),
        parse_quote!(req.items.iter().map(|item| item.sku()).collect()),
        parse_quote!(match req {
            Req::A(a) => a.to_key(),
            Req::B => 0,
        }),
    ];
    for written in &attached {
        assert_eq!(detached(written), [""; 0]);
    }
    assert_eq!(
        detached(&parse_quote!((id, "a".repeat(now())))),
        ["\"a\" . repeat (now ())"]
    );
}

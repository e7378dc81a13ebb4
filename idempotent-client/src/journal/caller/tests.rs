use super::*;
use crate::{key::ClientKey, wire::request_headers::ALWAYS};

fn id(account: &str) -> EntryId {
    EntryId {
        origin: "https://api.example.com".into(),
        account: account.into(),
        key: ClientKey::new("order-42").expect("a key"),
    }
}

fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, value.parse().expect("a value"));
    }
    headers
}

fn who_at(profile: &Profile, lines: &[(&str, &str)]) -> [u8; 32] {
    caller(&id(""), &map(lines), profile)
}

fn who(lines: &[(&str, &str)]) -> [u8; 32] {
    who_at(&Profile::ietf(), lines)
}

fn secret(name: &HeaderName, value: &str) -> HeaderMap {
    let mut value: HeaderValue = value.parse().expect("a value");
    value.set_sensitive(true);
    [(name.clone(), value)].into_iter().collect()
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn mend_36_the_digest_of_a_caller_is_written_down() {
    let headers = map(&[("Stripe-Context", "acct_1"), ("Authorization", "Bearer 1")]);
    // An entry of an earlier build has this digest, too.
    let named = caller(&id("acct_1"), &headers, &Profile::ietf());
    assert_eq!(
        hex(named),
        "f5b02ede472a9b2f68dc4924a29edd867de32462666a2c40f0b3feb846a6e536"
    );
    assert_eq!(
        hex(caller(&id(""), &headers, &Profile::ietf())),
        "fa278d1316be84038a9e012450d8f6f7ef39ce9c5deb8a7d96c8fc3287b4de41"
    );
}

#[test]
fn mend_36_no_digest_of_headers_is_one_of_an_earlier_build() {
    let of_an_earlier_build = "06034a3643d256ed670ff5b52152a0917c38f3ee7dc16382355d16982fbaed82";
    assert_ne!(
        hex(who(&[("authorization", "Bearer 1")])),
        of_an_earlier_build
    );
}

#[test]
fn mend_36_every_header_counts_that_no_list_names() {
    let nobody = who(&[]);
    for name in [
        "authorization",
        "baggage",
        "cookie",
        "host",
        "x-of-their-own",
    ] {
        assert_ne!(who(&[(name, "1")]), nobody, "{name}");
        assert_ne!(who(&[(name, "1")]), who(&[(name, "2")]), "{name}");
    }
}

#[test]
fn mend_36_a_header_that_says_nothing_of_who_asks_counts_if_it_is_sensitive() {
    let profile = Profile::ietf();
    let nobody = who(&[]);
    for name in UNRELATED.iter().chain(&ALWAYS) {
        assert_eq!(who(&[(name.as_str(), "1")]), nobody, "{name}");
        let sensitive = caller(&id(""), &secret(name, "1"), &profile);
        assert_ne!(sensitive, nobody, "{name}");
    }
}

#[test]
fn mend_36_order_counts_within_a_name_and_case_does_not() {
    assert_eq!(
        who(&[("X-Tenant", "1"), ("Apikey", "2")]),
        who(&[("apiKEY", "2"), ("x-tenant", "1")])
    );
    let one_by_one = who(&[("x-tenant", "1"), ("x-tenant", "2")]);
    for other in [
        who(&[("x-tenant", "2"), ("x-tenant", "1")]),
        who(&[("x-tenant", "1")]),
        who(&[("x-tenant", "1, 2")]),
        who(&[("x-tenant", "1"), ("x-tenan", "2")]),
    ] {
        assert_ne!(one_by_one, other);
    }
}

#[test]
fn mend_36_the_key_and_what_a_profile_names_or_leaves_out_do_not_count() {
    let named = HeaderName::from_static("x-schema");
    let left_out = HeaderName::from_static("signature");
    let profile = Profile::ietf()
        .header(HeaderName::from_static("paypal-request-id"))
        .request_header(named.clone())
        .request_header(http::header::AUTHORIZATION)
        .volatile_header(left_out.clone());
    let nobody = who_at(&profile, &[]);
    for name in ["PayPal-Request-Id", "X-Schema", "Signature"] {
        assert_eq!(who_at(&profile, &[(name, "1")]), nobody, "{name}");
    }
    for name in ["authorization", "idempotency-key"] {
        assert_ne!(who_at(&profile, &[(name, "1")]), nobody, "{name}");
    }
    let of = |name| caller(&id(""), &secret(name, "1"), &profile);
    assert_eq!(of(&left_out), nobody, "the user's word counts");
    assert_ne!(of(&named), nobody, "it is not compared with the request");
}

#[test]
fn mend_36_the_manual_lists_what_does_not_count() {
    let manual = include_str!("../../client.md");
    let (_, manual) = manual.split_once("# Who asks").expect("a section");
    let (manual, _) = manual.split_once("\n# ").expect("a section after it");
    let manual = manual.to_ascii_lowercase();
    for name in UNRELATED.iter().chain(&ALWAYS) {
        assert!(manual.contains(&format!("`{name}`")), "{name}");
    }
}

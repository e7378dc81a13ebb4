//! Reads any bytes as the value of `Idempotency-Key`: never panics, agrees with the crate `sfv`,
//! and every key comes back from the field that it is written to.

#![no_main]

use idempotent_runtime::http::{IdempotencyKey, KeyPolicy, Syntax};
use libfuzzer_sys::fuzz_target;
use sfv::{BareItem, Item, Parser};

fuzz_target!(|value: &[u8]| {
    let strict = IdempotencyKey::parse(value, Syntax::Strict);
    let expected = reference(value);
    assert_eq!(
        strict.as_ref().ok().map(IdempotencyKey::as_str),
        expected.as_deref()
    );

    let compatible = IdempotencyKey::parse(value, Syntax::Compatible);
    if strict.is_ok() {
        assert_eq!(compatible, strict);
    }
    let policy = KeyPolicy::new().uuid().ulid().refuse_sequential();
    for key in [strict, compatible].into_iter().flatten() {
        let written = key.to_header_value();
        assert_eq!(
            IdempotencyKey::parse(written.as_bytes(), Syntax::Strict),
            Ok(key.clone())
        );
        let _ = policy.check(&key);
    }
});

/// The string that `sfv` reads, where it can be a key.
fn reference(value: &[u8]) -> Option<String> {
    let mut value = value;
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    let BareItem::String(text) = Parser::new(value).parse::<Item>().ok()?.bare_item else {
        return None;
    };
    let text = text.as_str();
    let is_key = text.len() <= 255 && text.bytes().any(|byte| byte != b' ');
    is_key.then(|| text.to_owned())
}

//! Frozen fingerprints: a change of one of these breaks every record that is stored under it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::super::{Arguments, FingerprintKey};

#[derive(Serialize)]
struct Charge<'a> {
    order_id: u64,
    amount: Amount<'a>,
    note: Option<&'a str>,
    express: bool,
}

#[derive(Serialize)]
struct Amount<'a> {
    minor: i64,
    currency: &'a str,
}

#[derive(Serialize)]
enum Payment {
    Cash,
    Token(u32),
    Split(u8, u8),
    Card { last_four: &'static str },
}

#[derive(Serialize)]
struct Bytes(#[serde(serialize_with = "as_bytes")] Vec<u8>);

fn as_bytes<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

fn line<T: Serialize + ?Sized>(text: &mut String, title: &str, value: &T) {
    let mut arguments = Arguments::new();
    arguments.argument("v", value);
    finish(text, title, arguments);
}

fn finish(text: &mut String, title: &str, arguments: Arguments) {
    let fingerprint = arguments
        .finish(None)
        .expect("the value can be serialized")
        .fingerprint();
    writeln!(text, "{:<28} {}", title, fingerprint.to_hex()).expect("a string takes any text");
}

fn all() -> String {
    let mut text = String::new();
    finish(&mut text, "no arguments", Arguments::new());
    line(&mut text, "0", &0_u8);
    line(&mut text, "1", &1_i64);
    line(&mut text, "-1", &-1);
    line(&mut text, "300", &300);
    line(&mut text, "2^128 - 1", &u128::MAX);
    line(&mut text, "-2^127", &i128::MIN);
    line(&mut text, "1.5", &1.5_f32);
    line(&mut text, "0.1", &0.1_f64);
    line(&mut text, "NaN", &f64::NAN);
    line(&mut text, "true", &true);
    line(&mut text, "\"\"", "");
    line(&mut text, "\"1\"", "1");
    line(&mut text, "\"é\" 100 times", &"é".repeat(100));
    line(&mut text, "bytes 00 ff", &Bytes(vec![0, 255]));
    line(&mut text, "unit", &());
    line(&mut text, "some none", &Some(None::<u8>));
    line(&mut text, "[1, none, \"a\"]", &(1, None::<u8>, "a"));
    line(&mut text, "{\"bb\": 1, \"a\": none, 3: 2}", &MixedKeys);
    line(&mut text, "Cash", &Payment::Cash);
    line(&mut text, "Token(7)", &Payment::Token(7));
    line(&mut text, "Split(1, 2)", &Payment::Split(1, 2));
    line(
        &mut text,
        "Card { last_four }",
        &Payment::Card { last_four: "4242" },
    );
    let amount = || Amount {
        minor: 1_200,
        currency: "EUR",
    };
    line(
        &mut text,
        "Charge",
        &Charge {
            order_id: 42,
            amount: amount(),
            note: None,
            express: true,
        },
    );
    let mut arguments = Arguments::new();
    arguments.argument(
        "req",
        &Charge {
            order_id: 42,
            amount: amount(),
            note: Some("x"),
            express: false,
        },
    );
    arguments.argument("id", "o-1");
    arguments.argument("ignored", &None::<u8>);
    finish(&mut text, "two arguments", arguments);
    let mut arguments = Arguments::new();
    arguments.whole(&("o-1", 1_200));
    finish(&mut text, "fingerprint = (o-1, 1200)", arguments);
    text
}

/// A map whose keys are of several types.
struct MixedKeys;

impl Serialize for MixedKeys {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("bb", &1)?;
        map.serialize_entry("a", &None::<u8>)?;
        map.serialize_entry(&3, &2)?;
        map.end()
    }
}

#[test]
fn b27_fingerprints_are_those_of_every_release() {
    assert_eq!(all(), include_str!("golden.txt"));
}

#[test]
fn b27_the_written_format_shows_the_frozen_fingerprints() {
    let written = include_str!("../../../../FINGERPRINT.md");
    for line in include_str!("golden.txt").lines() {
        let (title, hex) = line.rsplit_once(' ').expect("a title and a hash");
        let shown = written
            .lines()
            .find(|line| line.ends_with(&format!("`{hex}` |")));
        assert!(
            shown.is_some(),
            "`{}` is not in FINGERPRINT.md with {hex}",
            title.trim_end()
        );
    }
}

#[test]
fn b27_keyed_fingerprints_and_digests_are_those_of_every_release() {
    let key = FingerprintKey::new(b"0123456789abcdef0123456789abcdef").expect("it is long enough");
    let map = BTreeMap::from([("a", 1)]);
    let fingerprinted = |key| {
        let mut arguments = Arguments::new();
        arguments.argument("v", &map);
        arguments.finish(key).expect("a map can be serialized")
    };
    let hex = |bytes: Vec<u8>| crate::framing::Hex(&bytes).to_string();
    assert_eq!(
        fingerprinted(Some(&key)).fingerprint().to_hex(),
        "c6a54a71408d8e60cf2941588dc76980d66b1e75a76684227315f206ec9d024f"
    );
    assert_eq!(
        hex(fingerprinted(Some(&key)).digests().to_bytes()),
        "010176c77230e7244d0302"
    );
    assert_eq!(
        hex(fingerprinted(None).digests().to_bytes()),
        "01017663d2e699a4af6fc0"
    );
}

//! Which arguments differ, and which bytes a store may give back.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;

use super::super::{ArgumentDigests, Arguments, FingerprintKey};
use super::finished;

fn digests(arguments: &[(&'static str, &str)]) -> ArgumentDigests {
    let all = arguments.iter();
    finished(|collected| all.for_each(|(name, value)| collected.argument(name, value))).digests()
}

#[test]
fn b19_the_arguments_that_differ_are_named() {
    let first = digests(&[("order", "o-1"), ("amount", "12"), ("note", "x")]);
    assert_eq!(first.differing(&first), Vec::<String>::new());
    let again = digests(&[("note", "x"), ("amount", "12"), ("order", "o-1")]);
    assert_eq!(first, again);
    let other = digests(&[("order", "o-1"), ("amount", "13"), ("express", "yes")]);
    assert_eq!(first.differing(&other), ["amount", "express", "note"]);
    assert_eq!(other.differing(&first), ["amount", "express", "note"]);
}

#[derive(Clone, Serialize)]
struct Order {
    amount: Amount,
    note: Option<String>,
    labels: BTreeMap<String, u8>,
    lines: Vec<Line>,
}

#[derive(Clone, Serialize)]
struct Amount {
    minor: u64,
    currency: &'static str,
}

#[derive(Clone, Serialize)]
struct Line {
    sku: u32,
}

fn of<T: Serialize>(value: &T) -> ArgumentDigests {
    let order = finished(|collected| {
        collected.argument("order", value);
        collected.argument("by", "phone");
    });
    order.digests()
}

#[test]
fn first_hour_04_the_fields_that_differ_are_named_and_never_a_value() {
    let order = Order {
        amount: Amount {
            minor: 1_200,
            currency: "EUR",
        },
        note: None,
        labels: BTreeMap::from([("secret".to_owned(), 1)]),
        lines: vec![Line { sku: 7 }],
    };
    let first = of(&order);
    let differing = |change: fn(&mut Order)| {
        let mut other = order.clone();
        change(&mut other);
        let other = of(&Some(other));
        assert_eq!(first.differing(&other), other.differing(&first));
        first.differing(&other)
    };
    assert_eq!(differing(|_| {}), Vec::<String>::new());
    assert_eq!(
        differing(|order| order.amount.minor = 5),
        ["order.amount.minor"]
    );
    assert_eq!(
        differing(|order| order.note = Some("x".into())),
        ["order.note"]
    );
    assert_eq!(differing(|order| order.lines.clear()), ["order.lines"]);
    assert_eq!(differing(|order| order.lines[0].sku = 8), ["order.lines"]);
    // The keys of a map are values.
    assert_eq!(differing(|order| order.labels.clear()), ["order.labels"]);
    let both = differing(|order| (order.amount.currency, order.note) = ("USD", Some("x".into())));
    assert_eq!(both, ["order.amount.currency", "order.note"]);
}

#[derive(Clone, Serialize)]
struct Grant {
    admin: bool,
    users: BTreeMap<&'static str, u8>,
}

#[derive(Clone, Serialize)]
struct Flat {
    id: u64,
    #[serde(flatten)]
    amount: Amount,
}

#[test]
fn first_hour_04_no_key_of_a_map_is_named_and_no_difference_is_lost() {
    let grant = |admin, bob| Grant {
        admin: true,
        users: BTreeMap::from([("admin", admin), ("bob", bob)]),
    };
    for bob in [1, 2] {
        let differing = of(&grant(1, 1)).differing(&of(&grant(2, bob)));
        assert_eq!(differing, ["order.users"]);
    }

    let people = |age| BTreeMap::from([("alice", (age, grant(1, 1))), ("bob", (1, grant(1, 1)))]);
    assert_eq!(of(&people(1)).differing(&of(&people(2))), ["order"]);

    // The keys read as the fields of what the map holds.
    let granted = |bob| BTreeMap::from([("admin", grant(1, bob)), ("users", grant(1, 1))]);
    assert_eq!(of(&granted(1)).differing(&of(&granted(2))), ["order"]);

    let flat = |id, minor| Flat {
        id,
        amount: Amount {
            minor,
            currency: "EUR",
        },
    };
    assert_eq!(of(&flat(1, 1)).differing(&of(&flat(2, 2))), ["order"]);
}

#[test]
fn first_hour_04_a_struct_of_too_many_fields_is_named_as_a_whole() {
    struct Wide(u64);
    impl Serialize for Wide {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeStruct as _;
            let mut fields = serializer.serialize_struct("Wide", 70)?;
            for field in 0..70 {
                let name: &'static str = Box::leak(format!("f{field}").into_boxed_str());
                fields.serialize_field(name, &(self.0 + field))?;
            }
            fields.end()
        }
    }
    assert_eq!(of(&Wide(0)).differing(&of(&Wide(1))), ["order"]);
}

#[test]
fn first_hour_04_the_digest_of_a_field_has_one_byte() {
    let bytes = of(&Amount {
        minor: 1,
        currency: "EUR",
    })
    .to_bytes();
    let name = b"order.amount";
    assert!(!bytes.windows(name.len()).any(|window| window == name));
    let name = b"order.minor";
    let start = bytes.windows(name.len()).position(|window| window == name);
    let digest = start.map(|start| &bytes[start + name.len()..][..8]);
    assert_eq!(digest.map(|digest| &digest[1..]), Some(&[0; 7][..]));
}

#[test]
fn first_hour_04_an_argument_is_named_where_one_side_knows_no_fields() {
    let order = of(&Amount {
        minor: 1,
        currency: "EUR",
    });
    let map = of(&BTreeMap::from([("minor", 2)]));
    assert_eq!(order.differing(&map), ["order"]);
    assert_eq!(map.differing(&order), ["order"]);
    // The digests that an older release stored have no fields.
    let older = digests(&[("order", "o-1"), ("by", "phone")]);
    assert_eq!(order.differing(&older), ["order"]);
}

#[test]
fn equal_values_of_two_arguments_have_two_digests() {
    let bytes = digests(&[("a", "same"), ("b", "same")]).to_bytes();
    assert_ne!(bytes[3..11], bytes[13..21]);
}

#[test]
fn a_key_changes_every_digest() {
    let mut arguments = Arguments::new();
    arguments.argument("a", "x");
    let key = FingerprintKey::new([7; 32]).expect("it is long enough");
    let keyed = arguments
        .finish(Some(&key))
        .expect("text can be serialized")
        .digests();
    assert_eq!(keyed.differing(&digests(&[("a", "x")])), ["a"]);
}

#[test]
fn stored_digests_come_back() {
    let name: &'static str = "an_argument_with_quite_a_name";
    for stored in [
        digests(&[]),
        digests(&[("", "")]),
        digests(&[("b", "1"), (name, "2"), ("c", "3")]),
    ] {
        assert_eq!(ArgumentDigests::from_bytes(&stored.to_bytes()), Ok(stored));
    }
}

#[test]
fn damaged_digests_are_an_error() {
    let bytes = digests(&[("a", "1"), ("b", "2")]).to_bytes();
    for length in (0..bytes.len()).filter(|length| ![1, 11].contains(length)) {
        assert!(
            ArgumentDigests::from_bytes(&bytes[..length]).is_err(),
            "cut to {length} bytes"
        );
    }
    let out_of_order = [&bytes[..1], &bytes[11..], &bytes[1..11]].concat();
    assert!(ArgumentDigests::from_bytes(&out_of_order).is_err());
    let newer = [&[9], &bytes[1..]].concat();
    assert!(ArgumentDigests::from_bytes(&newer).is_err());
    let endless_name = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    assert!(ArgumentDigests::from_bytes(&endless_name).is_err());
    let no_text = [1, 1, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(ArgumentDigests::from_bytes(&no_text).is_err());
}

#[test]
fn digests_show_names_and_little_else() {
    let shown = format!("{:?}", digests(&[("card", "4242")]));
    assert!(
        shown.starts_with(r#"{"card": ""#) && !shown.contains("4242"),
        "{shown}"
    );
}

proptest! {
    #[test]
    fn garbage_is_refused_or_stays_what_it_was(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        for bytes in [bytes.clone(), [&[1], &bytes[..]].concat()] {
            if let Ok(digests) = ArgumentDigests::from_bytes(&bytes) {
                prop_assert_eq!(digests.to_bytes(), bytes);
            }
        }
    }
}

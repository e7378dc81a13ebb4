//! Which values are equal, which differ, and which are refused.

use std::collections::{BTreeMap, HashMap};
use std::error::Error as _;
use std::net::IpAddr;

use serde::{Serialize, Serializer, ser};
use serde_json::Value;

use super::super::encode::DEEPEST;
use super::super::{Arguments, FingerprintError, FingerprintKey};
use super::{fingerprint, finished};

fn assert_all_differ(fingerprints: &[super::Fingerprint]) {
    for (index, one) in fingerprints.iter().enumerate() {
        for (further, other) in fingerprints.iter().enumerate().skip(index + 1) {
            assert_ne!(one, other, "values {index} and {further}");
        }
    }
}

#[test]
fn b03_parts_do_not_run_into_each_other() {
    assert_all_differ(&[
        fingerprint(&("ab", "c")),
        fingerprint(&("a", "bc")),
        fingerprint(&("abc", "")),
        fingerprint("abc"),
        fingerprint(&["abc"]),
        fingerprint(&[["a"], ["bc"]]),
        fingerprint(&(["a", "bc"],)),
        fingerprint(&("a:b", "c")),
        fingerprint(&("a", "b:c")),
    ]);
}

#[test]
fn types_are_told_apart() {
    assert_all_differ(&[
        fingerprint(&1),
        fingerprint("1"),
        fingerprint(&1.5),
        fingerprint("1.5"),
        fingerprint(&true),
        fingerprint("true"),
        fingerprint(&[None::<u8>]),
        fingerprint(&[""]),
        fingerprint(&[()]),
        fingerprint(&[0]),
        fingerprint(&[false]),
        fingerprint::<[u8; 0]>(&[]),
        fingerprint(&BTreeMap::<u8, u8>::new()),
        fingerprint(&None::<u8>),
        fingerprint(&Some(None::<u8>)),
        fingerprint(&Some(Some(None::<u8>))),
        fingerprint(&()),
    ]);
}

#[test]
fn integers_are_equal_by_value_whatever_their_width() {
    let one = fingerprint(&1_u8);
    for other in [
        fingerprint(&1_u16),
        fingerprint(&1_i32),
        fingerprint(&1_i64),
        fingerprint(&1_u128),
        fingerprint(&1_i128),
    ] {
        assert_eq!(one, other);
    }
    assert_eq!(fingerprint(&-5_i8), fingerprint(&-5_i128));
    assert_eq!(fingerprint(&u64::MAX), fingerprint(&i128::from(u64::MAX)));
    assert_all_differ(&[
        fingerprint(&i128::MIN),
        fingerprint(&i64::MIN),
        fingerprint(&-1),
        fingerprint(&0),
        fingerprint(&1),
        fingerprint(&i64::MAX),
        fingerprint(&u64::MAX),
        fingerprint(&i128::MAX),
        fingerprint(&u128::MAX),
    ]);
}

#[test]
fn b29_floats_are_equal_by_value_whatever_their_spelling() {
    assert_eq!(fingerprint(&0.5_f32), fingerprint(&0.5_f64));
    assert_ne!(fingerprint(&0.1_f32), fingerprint(&0.1_f64));
    assert_eq!(fingerprint(&-0.0), fingerprint(&0.0));
    assert_eq!(fingerprint(&1.0), fingerprint(&1));
    assert_eq!(
        fingerprint(&-9_223_372_036_854_775_808.0),
        fingerprint(&i64::MIN)
    );
    assert_eq!(
        fingerprint(&9_223_372_036_854_775_808.0),
        fingerprint(&(1_u64 << 63))
    );
    assert_ne!(
        fingerprint(&18_446_744_073_709_551_616.0),
        fingerprint(&(1_u128 << 64))
    );
    assert_eq!(fingerprint(&f64::NAN), fingerprint(&-f64::NAN));
    assert_eq!(
        fingerprint(&f64::NAN),
        fingerprint(&f32::from_bits(0x7fc0_1234))
    );
    assert_all_differ(&[
        fingerprint(&f64::NAN),
        fingerprint(&f64::INFINITY),
        fingerprint(&f64::NEG_INFINITY),
        fingerprint(&f64::MAX),
        fingerprint(&f64::MIN_POSITIVE),
        fingerprint(&1.0),
    ]);
}

#[test]
fn b29_json_is_fingerprinted_by_what_it_says() {
    let json = |text| fingerprint(&serde_json::from_str::<Value>(text).expect("it is JSON"));
    let spelled = json(r#"{"a": 1.50, "b": [100, {"c": null, "d": "\u00e9"}]}"#);
    assert_eq!(spelled, json(r#"{"b":[1e2,{"d":"é","c":null}],"a":15e-1}"#));
    assert_ne!(
        spelled,
        json(r#"{"a": 1.50, "b": [{"c": null, "d": "é"}, 100]}"#)
    );
    assert_ne!(
        spelled,
        json(r#"{"a": 1.50, "b": ["100", {"c": null, "d": "é"}]}"#)
    );
}

#[derive(Serialize)]
struct Newtype<T>(T);

#[test]
fn an_option_or_a_newtype_around_a_value_changes_nothing() {
    assert_eq!(fingerprint("x"), fingerprint(&Some("x")));
    assert_eq!(fingerprint("x"), fingerprint(&Newtype("x")));
    assert_eq!(fingerprint(&Newtype(Some(Newtype("x")))), fingerprint("x"));
    assert_eq!(fingerprint("x"), fingerprint(&Box::new("x")));
    assert_eq!(fingerprint("x"), fingerprint(&'x'));
}

#[test]
fn a_field_that_is_cleared_is_told_from_one_that_is_left_alone() {
    #[derive(Serialize)]
    struct Patch {
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<Option<&'static str>>,
    }
    let changes = [None, Some(None), Some(Some("x"))];
    assert_all_differ(&changes.map(|note| fingerprint(&Patch { note })));
}

/// The value that a field writes counts, and not the meaning that it has for the field.
#[test]
fn a_field_that_writes_none_when_it_is_cleared_is_left_out() {
    #[derive(Serialize)]
    struct Patch {
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "flat")]
        note: Option<Option<&'static str>>,
    }
    fn flat<S: Serializer>(note: &Option<Option<&str>>, serializer: S) -> Result<S::Ok, S::Error> {
        note.flatten().serialize(serializer)
    }
    let [untouched, cleared, set] =
        [None, Some(None), Some(Some("x"))].map(|note| fingerprint(&Patch { note }));
    assert_eq!(untouched, cleared);
    assert_ne!(untouched, set);
}

#[test]
fn optional_fields_and_arguments_can_be_added() {
    #[derive(Serialize)]
    struct Old {
        id: u8,
    }
    #[derive(Serialize)]
    struct New<T> {
        added: T,
        id: u8,
    }
    fn with<T: Serialize>(added: T) -> super::Fingerprint {
        fingerprint(&New { added, id: 1 })
    }
    let old = fingerprint(&Old { id: 1 });
    assert_eq!(old, with(None::<u8>));
    assert_eq!(old, with(Newtype(None::<u8>)));
    assert_all_differ(&[
        old,
        with(Some(None::<u8>)),
        with(Some(Some(None::<u8>))),
        with(""),
        with(()),
    ]);

    let both = finished(|arguments| {
        arguments.argument("added", &None::<u8>);
        arguments.argument("value", &Old { id: 1 });
    });
    assert_eq!(both.fingerprint(), old);
}

#[test]
fn b01_the_order_of_fields_does_not_matter() {
    #[derive(Serialize)]
    struct Forth {
        a: u8,
        b: u8,
        long_name: u8,
    }
    #[derive(Serialize)]
    struct Back {
        long_name: u8,
        b: u8,
        a: u8,
    }
    let long_name = 3;
    let (a, b) = (1, 2);
    let forth = fingerprint(&Forth { a, b, long_name });
    assert_eq!(forth, fingerprint(&Back { long_name, b, a }));
    let (a, b) = (b, a);
    assert_ne!(forth, fingerprint(&Back { long_name, b, a }));
    let map = HashMap::from([("b", 2), ("long_name", 3), ("a", 1)]);
    assert_eq!(forth, fingerprint(&map), "a struct is a map of its fields");
}

#[test]
fn b01_the_order_of_arguments_does_not_matter() {
    let of = |names: &[&'static str]| {
        let all = names.iter();
        finished(|arguments| all.for_each(|name| arguments.argument(name, name))).fingerprint()
    };
    let names: Vec<&'static str> = vec!["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "kk"];
    let mut shuffled = names.clone();
    shuffled.rotate_left(4);
    shuffled.swap(1, 2);
    assert_eq!(of(&names), of(&shuffled));
    assert_eq!(
        of(&names[..8]),
        of(&["h", "g", "f", "e", "d", "c", "b", "a"])
    );
}

#[test]
fn b02_the_order_of_a_sequence_matters() {
    assert_ne!(fingerprint(&[1, 2]), fingerprint(&[2, 1]));
    assert_eq!(fingerprint(&[1, 2]), fingerprint(&(1, 2)));
}

#[test]
fn large_maps_have_one_fingerprint() {
    let map: BTreeMap<u32, String> = (0..2_000)
        .map(|key| (key, "x".repeat(key as usize % 300)))
        .collect();
    for _ in 0..3 {
        let shuffled: HashMap<_, _> = map.iter().collect();
        assert_eq!(fingerprint(&shuffled), fingerprint(&map));
    }
}

#[test]
fn what_can_be_text_is_text() {
    let address = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(fingerprint(&address), fingerprint("127.0.0.1"));
    #[cfg(feature = "uuid")]
    assert_eq!(
        fingerprint(&format_args!("{}", uuid::Uuid::nil())),
        fingerprint(&uuid::Uuid::nil().to_string())
    );
    assert_eq!(
        fingerprint(&format_args!("{}", "é".repeat(99))),
        fingerprint(&"é".repeat(99))
    );
}

struct Fails;

impl Serialize for Fails {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom("no such card 4242"))
    }
}

#[test]
fn a_failing_argument_is_named_and_its_value_is_not() {
    let mut arguments = Arguments::new();
    arguments.argument("amount", &1);
    arguments.argument("card", &vec![(1, Fails)]);
    arguments.argument("note", &Fails);
    let error = arguments.finish(None).expect_err("it fails");
    assert!(matches!(
        error,
        FingerprintError::Serialize {
            argument: "card",
            ..
        }
    ));
    assert!(!error.to_string().contains("4242"));
    assert_eq!(
        error.source().expect("it is kept").to_string(),
        "no such card 4242"
    );
}

#[derive(Serialize)]
enum Nested {
    End,
    Option(Option<Box<Self>>),
    Sequence(Vec<Self>),
    Struct { inner: Box<Self> },
    Tuple(u8, Box<Self>),
    Map(BTreeMap<u8, Self>),
    Newtype(Newtype<Box<Self>>),
}

#[test]
fn endless_nesting_is_refused_before_the_stack_is_gone() {
    let deeper: [fn(Nested) -> Nested; 6] = [
        |inner| Nested::Option(Some(Box::new(inner))),
        |inner| Nested::Sequence(vec![inner]),
        |inner| Nested::Struct {
            inner: Box::new(inner),
        },
        |inner| Nested::Tuple(0, Box::new(inner)),
        |inner| Nested::Map(BTreeMap::from([(0, inner)])),
        |inner| Nested::Newtype(Newtype(Box::new(inner))),
    ];
    for wrap in deeper {
        let nested = (0..DEEPEST + 1).fold(Nested::End, |inner, _| wrap(inner));
        let mut arguments = Arguments::new();
        arguments.argument("tree", &nested);
        let error = arguments.finish(None).expect_err("it is too deep");
        assert_eq!(
            error,
            FingerprintError::TooDeep {
                argument: "tree",
                limit: DEEPEST
            }
        );
    }
    let fits = (0..DEEPEST).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    fingerprint(&fits);
}

#[test]
fn siblings_are_not_depth() {
    let nested = vec![vec![Some(&Newtype(1)); 3]; 1_000];
    fingerprint(&nested);
}

#[test]
fn a_key_changes_every_fingerprint_and_must_not_be_short() {
    let of = |key: Option<&FingerprintKey>| {
        let mut arguments = Arguments::new();
        arguments.argument("value", "x");
        arguments
            .finish(key)
            .expect("text can be serialized")
            .fingerprint()
    };
    let [one, other] = [[1; 32], [2; 32]].map(|key| FingerprintKey::new(key).expect("long"));
    assert_all_differ(&[of(None), of(Some(&one)), of(Some(&other))]);
    assert_eq!(of(Some(&one)), of(Some(&one.clone())));
    assert!(FingerprintKey::new("secret").is_err());
    assert_eq!(format!("{one:?}"), "FingerprintKey(…)");
}

#[test]
fn debug_output_is_short_and_shows_no_values() {
    let mut arguments = Arguments::new();
    arguments.argument("card", "4242");
    assert!(!format!("{arguments:?}").contains("4242"));
    let fingerprinted = arguments.finish(None).expect("text can be serialized");
    assert!(!format!("{fingerprinted:?}").contains("4242"));
    let shown = format!("{:?}", fingerprinted.fingerprint());
    let begin = &fingerprinted.fingerprint().to_hex()[..8];
    assert_eq!(shown, format!("Fingerprint({begin}…)"));
}

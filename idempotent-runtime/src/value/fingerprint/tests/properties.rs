//! The rules that hold for every value.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::value::{Value, values};
use super::{super::Fingerprint, fingerprint};

/// How many pairs of unequal values are compared.
const PAIRS: usize = 100_000;

#[test]
fn b03_b29_unequal_values_never_share_a_fingerprint_in_100_000_pairs() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::XorShift);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = values();
    let mut fresh = || {
        strategy
            .new_tree(&mut runner)
            .expect("nothing is filtered")
            .current()
    };
    let (mut unequal, mut equal, mut chance) = (0, 0, 1);
    let mut one = fresh();
    let (mut meaning, mut hash) = (one.meaning(), fingerprint(&one));
    while unequal < PAIRS {
        // Most pairs differ in one place at most: among those a collision would be likeliest.
        let nearly = (unequal + equal) % 8 > 0;
        let other = if nearly {
            one.tweaked(&mut chance)
        } else {
            fresh()
        };
        let (other_meaning, other_hash) = (other.meaning(), fingerprint(&other));
        if meaning == other_meaning {
            equal += 1;
            assert_eq!(hash, other_hash, "{one:?} means the same as {other:?}");
        } else {
            unequal += 1;
            assert_ne!(hash, other_hash, "{one:?} is not {other:?}");
        }
        (one, meaning, hash) = (other, other_meaning, other_hash);
    }
    assert!(
        equal > PAIRS / 100,
        "the values are too random to try equal ones: {equal}"
    );
}

fn split(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut rest = text;
    let mut parts: Vec<String> = cuts
        .iter()
        .map(|cut| {
            let (part, after) = rest.split_at(cut % (rest.len() + 1));
            rest = after;
            part.to_owned()
        })
        .collect();
    parts.push(rest.to_owned());
    parts
}

proptest! {
    #[test]
    fn b01_b29_the_order_of_fields_and_entries_never_matters(value in values()) {
        prop_assert_eq!(fingerprint(&value), fingerprint(&value.reversed()));
    }

    #[test]
    fn b01_the_order_of_a_hash_map_never_matters(map: BTreeMap<String, u32>) {
        let shuffled: HashMap<_, _> = map.iter().collect();
        prop_assert_eq!(fingerprint(&map), fingerprint(&shuffled));
    }

    #[test]
    fn the_width_of_an_integer_never_matters(narrow: i8, signed: i64, unsigned: u64) {
        prop_assert_eq!(fingerprint(&narrow), fingerprint(&i128::from(narrow)));
        prop_assert_eq!(fingerprint(&signed), fingerprint(&i128::from(signed)));
        prop_assert_eq!(fingerprint(&unsigned), fingerprint(&u128::from(unsigned)));
        prop_assert_eq!(fingerprint(&unsigned), fingerprint(&i128::from(unsigned)));
    }

    #[test]
    fn b03_the_same_text_cut_elsewhere_is_another_value(
        text in "[a-c]{0,20}",
        cuts in proptest::collection::vec(0_usize..21, 0..5),
        others in proptest::collection::vec(0_usize..21, 0..5),
    ) {
        let (one, other) = (split(&text, &cuts), split(&text, &others));
        prop_assert_eq!(fingerprint(&one) == fingerprint(&other), one == other);
    }

    #[test]
    fn some_around_a_field_never_matters(value in values()) {
        let (plain, wrapped) = (vec![(0, value.clone())], vec![(0, Value::Some(Box::new(value.clone())))]);
        let nothing = matches!(value.meaning(), super::value::Meaning::None | super::value::Meaning::SomeNone(_));
        let same = fingerprint(&Value::Struct(plain)) == fingerprint(&Value::Struct(wrapped));
        prop_assert_eq!(same, !nothing);
    }
}

#[test]
fn a_fingerprint_is_another_one_where_any_bit_differs() {
    let bytes = *fingerprint("v").as_bytes();
    assert_eq!(Fingerprint::from_bytes(bytes), fingerprint("v"));
    for bit in 0..256 {
        let mut other = bytes;
        other[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(
            Fingerprint::from_bytes(other),
            fingerprint("v"),
            "bit {bit}"
        );
    }
}

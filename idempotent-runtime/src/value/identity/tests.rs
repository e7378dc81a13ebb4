use std::collections::HashSet;

use super::*;
use crate::key::Key;

fn charge() -> RecordId {
    let framed = |text| Key::from_part(text).expect("it is a key");
    RecordId::new(
        "payments.charge",
        Some(framed("shop-1").framed()),
        framed("o-1").framed(),
    )
}

#[test]
fn b27_ids_are_those_of_every_release() {
    assert_eq!(
        charge().to_hex(),
        "623b041f84730550f34cf67a4cfa744fcc3f3a4236e3b160cd11c96945bc9a40"
    );
    assert_eq!(
        RecordId::new("payments.charge", None, b"k").to_hex(),
        "47d7d60a73e4b5111c25b91301d2aeddef3ff878d61999b1024bbb0df27ccbf2"
    );
    assert_eq!(
        charge().child_key("gateway.charge"),
        "00b13f540c536fa2e0c42175a7f288c8"
    );
    assert_eq!(
        Hex(&charge().child_id()).to_string(),
        "23aa26e28f498bb6a6412cd2444123f1"
    );
}

#[test]
fn b03_b23_operation_scope_and_key_do_not_run_into_each_other() {
    let ids = [
        RecordId::new("ab", None, b"c"),
        RecordId::new("a", None, b"bc"),
        RecordId::new("abc", None, b""),
        RecordId::new("a", Some(b""), b"bc"),
        RecordId::new("a", Some(b"b"), b"c"),
        RecordId::new("a", Some(b"bc"), b""),
        RecordId::new("ab", Some(b""), b"c"),
        RecordId::new("a", Some(b"c"), b"b"),
        RecordId::new("", None, b"abc"),
    ];
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}

#[test]
fn an_id_comes_back_from_a_store() {
    assert_eq!(RecordId::from_bytes(*charge().as_bytes()), charge());
}

#[test]
fn an_id_is_shown_by_its_first_eight_digits() {
    let (id, hex) = (charge(), charge().to_hex());
    assert_eq!(hex.len(), 64);
    assert_eq!(id.short(), hex[..8]);
    assert_eq!(id.to_string(), hex[..8]);
    assert_eq!(format!("{id:?}"), format!("RecordId({}…)", &hex[..8]));
}

#[test]
fn h35_child_keys_differ_by_name_and_by_record_and_never_by_attempt() {
    let other = RecordId::new("payments.charge", None, b"o-2");
    let names = [
        "stripe.charge",
        "stripe.refund",
        "adyen.charge",
        "stripe",
        " ",
    ];
    let keys: HashSet<_> = names
        .iter()
        .flat_map(|name| [charge().child_key(name), other.child_key(name)])
        .collect();
    assert_eq!(keys.len(), 2 * names.len());
    assert!(
        keys.iter()
            .all(|key| key.len() == 32
                && key.bytes().all(|byte| b"0123456789abcdef".contains(&byte)))
    );
    assert_eq!(
        charge().child_key("stripe.charge"),
        charge().child_key("stripe.charge")
    );
}

#[test]
#[should_panic(expected = "a child key needs a name")]
fn h35_a_child_key_without_a_name_is_refused() {
    let _ = charge().child_key("");
}

#[test]
fn h35_a_child_id_is_a_uuid_of_version_8() {
    for number in 0..100_u8 {
        let id = RecordId::new("payments.charge", None, &[number]).child_id();
        assert_eq!((id[6] >> 4, id[8] >> 6), (8, 0b10));
    }
    let other = RecordId::new("payments.charge", None, b"o-2");
    assert_ne!(charge().child_id(), other.child_id());
    assert_eq!(charge().child_id(), charge().child_id());
}

#[test]
fn first_hour_10_an_id_is_read_from_its_digits() {
    let id = RecordId::new("charge", None, b"key");
    assert_eq!(id.to_hex().parse(), Ok(id));
    let cut = &id.to_hex()[1..];
    for malformed in ["", &id.short(), cut, &format!("{cut}x"), &format!("{cut}é")] {
        assert_eq!(
            malformed.parse::<RecordId>(),
            Err(MalformedRecordId),
            "{malformed}"
        );
    }
}

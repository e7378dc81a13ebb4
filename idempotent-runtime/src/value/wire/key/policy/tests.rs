use proptest::prelude::*;

use super::*;

fn check(policy: &KeyPolicy, key: &str) -> Result<(), Reason> {
    let key = IdempotencyKey::new(key).expect("a sound key");
    policy.check(&key).map_err(|error| error.reason())
}

#[test]
fn s_21_a_key_must_have_the_length_that_the_policy_says() {
    let policy = KeyPolicy::new().length(3..=5);
    assert_eq!(check(&policy, "ab"), Err(Reason::TooShort));
    assert_eq!(check(&policy, "abc"), Ok(()));
    assert_eq!(check(&policy, "abcde"), Ok(()));
    assert_eq!(check(&policy, "abcdef"), Err(Reason::TooLong));
    assert_eq!(KeyPolicy::new().length(0..=1_000).characters(), 1..=255);
}

#[test]
#[should_panic(expected = "no key has 300 to 400 characters")]
fn a_length_that_no_key_has_is_refused_at_set_up() {
    let _ = KeyPolicy::new().length(300..=400);
}

#[test]
fn s_21_the_answer_says_what_the_policy_is_and_not_the_key() {
    let policy = KeyPolicy::new().length(4..=64).uuid();
    let key = IdempotencyKey::new("order-42").expect("a sound key");
    let error = policy.check(&key).expect_err("no UUID");
    assert_eq!(error.reason(), Reason::Policy);
    assert_eq!(
        error.to_string(),
        "expected a key of 4 to 64 characters, a UUID that is neither nil nor max"
    );
}

#[test]
fn s_21_only_uuids_that_somebody_set_pass_as_uuids() {
    let policy = KeyPolicy::new().uuid();
    for uuid in [
        "8e03978e-40d5-43e8-bc93-6894a57f9324",
        "8E03978E-40D5-43E8-BC93-6894A57F9324",
        "01939e2a-7b1c-7def-8123-456789abcdef",
        "00000000-0000-0000-0000-000000000001",
    ] {
        assert_eq!(check(&policy, uuid), Ok(()), "{uuid}");
    }
    for other in [
        "abc",
        "8e03978e40d543e8bc936894a57f9324",
        "{8e03978e-40d5-43e8-bc93-6894a57f9324}",
        "8e03978e-40d5-43e8-bc93-6894a57f932",
        "8e03978e-40d5-43e8-bc93-6894a57f93244",
        "8e03978e-40d5-43e8-bc93-6894a57f932g",
        "8e03978e-40d543-e8-bc93-6894a57f9324",
        "8e03978e-40d5-43e8-bc93 6894a57f9324",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "FFFFFFFF-FFFF-FFFF-FFFF-ffffffffffff",
    ] {
        assert_eq!(check(&policy, other), Err(Reason::Policy), "{other}");
    }
}

#[test]
fn s_21_only_ulids_that_somebody_set_pass_as_ulids() {
    let policy = KeyPolicy::new().ulid();
    for ulid in [
        "01JD6X2KTW8QF4ZB7NHG3M5VRC",
        "01jd6x2ktw8qf4zb7nhg3m5vrc",
        "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    ] {
        assert_eq!(check(&policy, ulid), Ok(()), "{ulid}");
    }
    for other in [
        "01JD6X2KTW8QF4ZB7NHG3M5VR",
        "01JD6X2KTW8QF4ZB7NHG3M5VRCX",
        "81JD6X2KTW8QF4ZB7NHG3M5VRC",
        "01JD6X2KTW8QF4ZB7NHG3M5VRI",
        "01JD6X2KTW8QF4ZB7NHG3M5VRl",
        "01JD6X2KTW8QF4ZB7NHG3M5VRO",
        "01JD6X2KTW8QF4ZB7NHG3M5VRu",
        "01JD6X2KTW8QF4ZB7NHG3M5VR-",
        "00000000000000000000000000",
    ] {
        assert_eq!(check(&policy, other), Err(Reason::Policy), "{other}");
    }
}

#[test]
fn s_21_a_key_that_was_counted_is_refused() {
    let policy = KeyPolicy::new().refuse_sequential();
    for counted in [
        "1",
        "42",
        "000000000123",
        "1732183200000",
        "9223372036854775807",
        "order-42",
        "ORDER_42",
        "payment/order: 1042",
        "#7",
        "abcdefgh",
        "12345678",
        "zyxwvu",
        "aaaaaaaaaaaaaaaa",
        "abababababababab",
        "00000000-0000-0000-0000-000000000001",
    ] {
        let found = check(&policy, counted);
        assert_eq!(found, Err(Reason::Policy), "{counted}");
    }
    for random in [
        "8e03978e-40d5-43e8-bc93-6894a57f9324",
        "12345678-1234-4234-8234-123456789012",
        "01JD6X2KTW8QF4ZB7NHG3M5VRC",
        "clkyoesmbgybucifusbbtdsbohtyuuwz",
        "V1StGXR8_Z5jdHi6B-myT",
        "order-8e03978e40d5",
        "Cart-17",
        "order42",
        "clkyoesmbgybucif-",
        "12345678901234567890",
    ] {
        assert_eq!(check(&policy, random), Ok(()), "{random}");
    }
}

#[test]
fn s_21_a_rule_of_the_service_s_own_counts_like_the_others() {
    let policy = KeyPolicy::new()
        .refuse_sequential()
        .require("beginning with `web-`", |key| key.starts_with("web-"));
    assert_eq!(check(&policy, "web-8e03978e"), Ok(()));
    assert_eq!(check(&policy, "app-8e03978e"), Err(Reason::Policy));
    assert_eq!(check(&policy, "web-1"), Err(Reason::Policy));
    assert_eq!(
        policy.to_string(),
        "1 to 255 characters, not sequential, beginning with `web-`"
    );
}

#[test]
fn the_example_of_a_policy_passes_it() {
    let policies = [
        KeyPolicy::new(),
        KeyPolicy::new().refuse_sequential(),
        KeyPolicy::new().uuid(),
        KeyPolicy::new().ulid(),
        KeyPolicy::new().length(1..=30),
    ];
    for policy in policies {
        let example = policy.example().expect("a usual form");
        assert_eq!(check(&policy, example), Ok(()), "{policy}");
    }
    assert_eq!(KeyPolicy::new().length(1..=8).example(), None);
}

/// Every character is as likely as every other one. A class in a regular expression is not drawn
/// so: each of its ranges is as likely as every other, and a key of base64 full of separators.
fn random(alphabet: &'static [u8], characters: usize) -> impl Strategy<Value = String> {
    let character = prop::sample::select(alphabet).prop_map(char::from);
    prop::collection::vec(character, characters).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn s_21_random_keys_are_not_taken_for_counted_ones(
        hex in random(b"0123456789abcdef", 20),
        uuid in "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        base64 in random(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 22),
        base36 in random(b"0123456789abcdefghijklmnopqrstuvwxyz", 25),
    ) {
        let policy = KeyPolicy::new().refuse_sequential();
        for key in [hex, uuid, base64, base36] {
            prop_assert_eq!(check(&policy, &key), Ok(()));
        }
    }

    #[test]
    fn s_21_what_fits_the_pattern_of_a_rule_passes_it(
        uuid in KeyPolicy::new().uuid().pattern().expect("a pattern"),
        ulid in KeyPolicy::new().ulid().pattern().expect("a pattern"),
    ) {
        prop_assert_eq!(check(&KeyPolicy::new().uuid(), &uuid), Ok(()));
        prop_assert_eq!(check(&KeyPolicy::new().ulid(), &ulid), Ok(()));
    }
}

//! `settle` and `undo`.

use std::fs;

use expect_test::expect;
use idempotent_runtime::{Error, RawEnding, RawOutcome, operate::State};

use crate::shop::{Shop, on_every_store};

on_every_store! {
    a_value_answers_every_duplicate
    an_error_answers_every_duplicate
    a_call_that_is_done_without_a_value_refuses_duplicates
    the_same_command_twice_is_harmless
    a_version_is_asked_for_where_no_outcome_shows_one
    steps_are_undone_by_the_next_call
    another_change_for_the_same_reason_is_no_repeat
    a_long_number_stands_as_it_was_said
    undo_goes_by_the_version_of_the_operation
    nothing_is_settled_in_json_where_outcomes_are_something_else
}

const SIGNED: [&str; 3] = ["--reason", "dashboard, row 7", "--yes"];

async fn a_value_answers_every_duplicate(shop: Shop) {
    shop.charged("order-1").await;
    let id = shop.uncertain("order-2").await.to_hex();
    let settle = ["settle", &id, "--value", r#""receipt-99""#];
    let settled = shop.run(&[&settle[..], &SIGNED].concat());
    expect![[r#"
        RECORD
        id  6d8e2350d439b7e9238548aeb7462125523d0fbdee85c18fb9f0ca2fcb400437
        operation  payments.charge
        key  "order-2"
        state  uncertain
        attempt  1
        holder  till-3
        created  TIME (AGO)
        finished  TIME (AGO)
        lease end  TIME (SOON)
        version  VERSION

        It happened. Every duplicate will get this value: "receipt-99"
        By anna@HOST because: dashboard, row 7
        Done: every duplicate gets this outcome.
        The newest outcome of `payments.charge`: "receipt of order-1"
        exit code 0
    "#]]
    .assert_eq(&settled.all());
    let call = shop.idem.call("payments.charge").key("order-2");
    let answer = call.run(async |_| Ok::<_, Error>(String::new())).await;
    assert_eq!(answer.as_deref(), Ok("receipt-99"));
    let note = shop.run(&["explain", &id]);
    assert!(note.out.contains("dashboard, row 7"), "{}", note.all());
}

async fn an_error_answers_every_duplicate(shop: Shop) {
    let id = shop.uncertain("order-2").await.to_hex();
    let settle = [
        "settle",
        &id,
        "--error",
        r#"{"declined":true}"#,
        "--version",
        "0",
    ];
    let settled = shop.run(&[&settle[..], &SIGNED].concat());
    assert_eq!(settled.code, 0, "{}", settled.all());
    let shown = shop.run(&["show", &id]);
    assert!(
        shown.out.contains(r#"{"declined":true}"#),
        "{}",
        shown.all()
    );
}

async fn a_call_that_is_done_without_a_value_refuses_duplicates(shop: Shop) {
    let id = shop.uncertain("order-2").await.to_hex();
    let settled = shop.run(&[&["settle", &id, "--done"][..], &SIGNED].concat());
    assert_eq!(settled.code, 0, "{}", settled.all());
    let call = shop.idem.call("payments.charge").key("order-2");
    let answer = call.run(async |_| Ok::<_, Error>(String::new())).await;
    assert!(
        matches!(answer, Err(Error::NotReplayable { .. })),
        "{answer:?}"
    );
}

async fn the_same_command_twice_is_harmless(shop: Shop) {
    let id = shop.uncertain("order-2").await.to_hex();
    let settle = ["settle", &id, "--value", "1", "--version", "0"];
    let settle = [&settle[..], &SIGNED].concat();
    assert_eq!(shop.run(&settle).code, 0);
    expect![[r#"
        Done: already.
        The newest outcome of `payments.charge`: 1
        This was done already, by the same person and for the same reason.
        exit code 0
    "#]]
    .assert_eq(&shop.run(&settle).all());
    let other = [
        "settle",
        &id,
        "--value",
        "2",
        "--version",
        "0",
        "--by",
        "bert",
    ];
    let other = shop.run(&[&other[..], &SIGNED].concat());
    assert_eq!(other.code, 4, "{}", other.all());
    let shown = shop.run(&["show", &id]);
    assert!(shown.out.ends_with("\n1\n"), "{}", shown.all());
}

async fn a_version_is_asked_for_where_no_outcome_shows_one(shop: Shop) {
    let id = shop.uncertain("order-2").await.to_hex();
    let settle = ["settle", &id, "--value", "1"];
    expect![[r#"
        idempotent: the newest outcomes of this operation do not show one version: say `--version N`, which is 0 unless the function says `version`
        exit code 2
    "#]].assert_eq(&shop.run(&[&settle[..], &SIGNED].concat()).all());
}

async fn steps_are_undone_by_the_next_call(shop: Shop) {
    let id = shop.trip("trip-1").await;
    let hex = id.to_hex();
    let undo = ["undo", &hex, "--error", r#""no hotel""#, "--version", "0"];
    let undone = shop.run(&[&undo[..], &SIGNED].concat());
    assert_eq!(undone.code, 0, "{}", undone.all());
    let record = shop
        .idem
        .store()
        .load(&id)
        .await
        .expect("it answers")
        .record;
    assert_eq!(record.map(|it| it.state), Some(State::Undoing));
}

async fn nothing_is_settled_in_json_where_outcomes_are_something_else(shop: Shop) {
    let sealed = shop.idem.call("files.convert").key("file-7");
    let outcome = RawOutcome::value(&b"\x93\xff sealed"[..]);
    let sealed = sealed.run_raw(|_| async { RawEnding::Record(outcome) });
    sealed.await.expect("it runs");
    let id = shop.id("files.convert", "file-7").await.to_hex();
    let shown = shop.run(&["show", &id]);
    assert!(
        shown.out.contains("sealed, or no JSON, 9 bytes"),
        "{}",
        shown.all()
    );
    let id = shop.uncertain("order-2").await.to_hex();
    let settle = ["settle", &id, "--value", "1", "--version", "0"];
    expect![[r#"
        idempotent: the outcomes in this store are sealed, or no JSON: a value in JSON could not be read. Settle it in a program that has the handle, by `idempotent_cli::run(idem)`
        exit code 4
    "#]].assert_eq(&shop.run(&[&settle[..], &SIGNED].concat()).all());
    let done = shop.run(&[&["settle", &id, "--done"][..], &SIGNED].concat());
    assert_eq!(done.code, 0, "no value is written: {}", done.all());
}

async fn another_change_for_the_same_reason_is_no_repeat(shop: Shop) {
    let id = shop.uncertain("order-2").await.to_hex();
    let settle = |value| {
        let settle = ["settle", &id, "--value", value, "--version", "0"];
        shop.run(&[&settle[..], &SIGNED].concat())
    };
    assert_eq!(settle("1").code, 0);
    let other = settle("2");
    assert_eq!(other.code, 4, "{}", other.all());
    let invalidate = shop.run(&[&["invalidate", &id][..], &SIGNED].concat());
    assert_eq!(invalidate.code, 0, "{}", invalidate.all());
    assert!(invalidate.out.contains("Done"), "{}", invalidate.all());
    let moved = [
        "invalidate",
        &id,
        "--at-version",
        "00000000000000000000000000000001",
    ];
    let moved = shop.run(&[&moved[..], &["--reason", "another", "--yes"]].concat());
    assert_eq!(moved.code, 4, "{}", moved.all());
}

async fn a_long_number_stands_as_it_was_said(shop: Shop) {
    let id = shop.uncertain("order-2").await.to_hex();
    let value = "340282366920938463463374607431768211455";
    let settle = ["settle", &id, "--value", value, "--version", "0"];
    let settled = shop.run(&[&settle[..], &SIGNED].concat());
    assert_eq!(settled.code, 0, "{}", settled.all());
    let call = shop.idem.call("payments.charge").key("order-2");
    let answer = call.run(async |_| Ok::<_, Error>(0_u128)).await;
    assert_eq!(answer, Ok(u128::MAX));
    let (shown, _) = shop.raw(&["show", &id, "--json"]);
    assert!(shown.contains(&format!(r#""value":{value}"#)), "{shown}");
}

async fn undo_goes_by_the_version_of_the_operation(shop: Shop) {
    let call = shop.idem.call("trips.book").key("trip-0").version(3);
    call.run(async |_| Ok::<_, Error>(()))
        .await
        .expect("it is booked");
    let id = shop.trip("trip-1").await;
    let undo = ["undo", &id.to_hex(), "--error", r#""no hotel""#];
    let undone = shop.run(&[&undo[..], &SIGNED].concat());
    assert_eq!(undone.code, 0, "{}", undone.all());
    let record = shop
        .idem
        .store()
        .load(&id)
        .await
        .expect("it answers")
        .record;
    let outcome = record
        .and_then(|it| it.outcome.clone())
        .expect("it has one");
    assert_eq!(outcome.schema, 3);
}

#[tokio::test]
async fn a_value_may_stand_in_a_file() {
    let shop = Shop::sqlite().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("value.json");
    // An argument of this length is refused by the system.
    let value = format!("\"{}\"", "x".repeat(200_000));
    fs::write(&file, &value).expect("it is written");
    let id = shop.uncertain("order-1").await.to_hex();
    let file = format!("@{}", file.display());
    let settle = ["settle", &id, "--value", &file, "--version", "0"];
    let settled = shop.run(&[&settle[..], &SIGNED].concat());
    assert_eq!(settled.code, 0, "{}", settled.err);
    let call = shop.idem.call("payments.charge").key("order-1");
    let answer = call.run(async |_| Ok::<_, Error>(String::new())).await;
    assert_eq!(answer.map(|it| it.len()), Ok(200_000));
    let missing = ["settle", &id, "--value", "@/no/such/file", "--version", "0"];
    assert_eq!(shop.run(&[&missing[..], &SIGNED].concat()).code, 2);
}

//! `sequence` and `outbox`.

use expect_test::expect;
use idempotent_runtime::{Error, sequence::Decision};

use crate::shop::{Shop, on_every_store};

on_every_store! {
    a_number_is_settled
    a_number_is_skipped
    a_number_that_fails_is_skipped_by_name
    a_number_that_never_comes_is_skipped_by_name
}

const SIGNED: [&str; 3] = ["--reason", "the bank's statement", "--yes"];

/// The second number of the stream is uncertain.
async fn stopped(shop: &Shop) -> String {
    let payouts = || shop.idem.sequence("payouts", "merchant-7").first(1);
    let first = payouts().number(1).run(async |_| Ok::<_, Error>(1)).await;
    assert!(matches!(first, Ok(Decision::Applied(1))));
    let second = payouts().number(2).uncertain_errors();
    let second = second.run(async |_| Err::<u8, _>(Error::InvalidPolicy("no answer")));
    second.await.expect_err("the bank is silent");
    shop.id("sequence:payouts", "merchant-7").await.to_hex()
}

async fn a_number_is_settled(shop: Shop) {
    let id = stopped(&shop).await;
    expect![[r#"
        It is a stream of numbered calls of `sequence:payouts` with the key "merchant-7".
        Its last number is 1.
        Number 2 is uncertain: it began in `till-3`, and nobody knows whether it happened. No other number runs.
        Find out whether it happened: `settle_number_id(id).await?.with_value(&value)`, `.with_error(&error)`, `.as_done()`, or `.release()` if it did not.
          idempotent sequence settle c5c9459c9270 --number N --value JSON (or --done, or --not-done) --reason TEXT
        exit code 0
    "#]].assert_eq(&shop.run(&["sequence", "show", &id]).all());
    let other = ["sequence", "settle", &id, "--number", "3", "--done"];
    let other = shop.run(&[&other[..], &SIGNED].concat());
    assert_eq!(other.code, 4, "{}", other.all());
    let settle = ["sequence", "settle", &id, "--number", "2", "--value", "2"];
    expect![[r#"
        RECORD
        id  c5c9459c92702c6e37068e6aba652be75cb847db74ba998a512274f427dae32a
        operation  sequence:payouts
        key  "merchant-7"
        state  uncertain
        attempt  1
        holder  till-3
        created  TIME (AGO)
        finished  TIME (AGO)
        lease end  TIME (SOON)
        version  VERSION
        outcome  stream, 91 bytes

        Number 2 happened. A copy of it will get 2
        By anna@HOST because: the bank's statement
        Done: number 2 is settled.
        exit code 0
    "#]]
    .assert_eq(&shop.run(&[&settle[..], &SIGNED].concat()).all());
    let third = shop
        .idem
        .sequence("payouts", "merchant-7")
        .first(1)
        .number(3);
    let third = third.run(async |_| Ok::<_, Error>(3)).await;
    assert!(matches!(third, Ok(Decision::Applied(3))), "{third:?}");
}

async fn a_number_is_skipped(shop: Shop) {
    let id = stopped(&shop).await;
    let skip = ["sequence", "skip", &id, "--number", "2"];
    let refused = shop.run(&[&skip[..], &SIGNED].concat());
    assert_eq!(
        refused.code,
        4,
        "an uncertain one may have happened: {}",
        refused.all()
    );
    let settle = ["sequence", "settle", &id, "--number", "2", "--not-done"];
    let settled = shop.run(&[&settle[..], &SIGNED].concat());
    assert_eq!(settled.code, 0, "{}", settled.all());
    let call = shop.uncertain("order-1").await.to_hex();
    let shown = shop.run(&["sequence", "show", &call]);
    assert_eq!(shown.code, 2, "{}", shown.all());
}

async fn a_number_that_fails_is_skipped_by_name(shop: Shop) {
    let payouts = || shop.idem.sequence("payouts", "merchant-7").first(1);
    let first = payouts().number(1).run(async |_| Ok::<_, Error>(1)).await;
    assert!(matches!(first, Ok(Decision::Applied(1))));
    let failed = payouts().number(2);
    let failed = failed
        .run(async |_| Err::<u8, _>(Error::InvalidPolicy("refused")))
        .await;
    failed.expect_err("it fails");
    let id = shop.id("sequence:payouts", "merchant-7").await.to_hex();
    let by_id = ["sequence", "skip", &id, "--number", "2"];
    let by_id = shop.run(&[&by_id[..], &SIGNED].concat());
    assert_eq!(by_id.code, 4, "{}", by_id.all());
    let by_name = [
        "sequence",
        "skip",
        "--operation",
        "payouts",
        "--key",
        "merchant-7",
        "--number",
        "2",
    ];
    let by_name = shop.run(&[&by_name[..], &SIGNED].concat());
    assert_eq!(by_name.code, 0, "{}", by_name.all());
    let third = payouts().number(3).run(async |_| Ok::<_, Error>(3)).await;
    assert!(matches!(third, Ok(Decision::Applied(3))), "{third:?}");
}

async fn a_number_that_never_comes_is_skipped_by_name(shop: Shop) {
    let payouts = || shop.idem.sequence("payouts", "merchant-7").first(1);
    let first = payouts().number(1).run(async |_| Ok::<_, Error>(1)).await;
    assert!(matches!(first, Ok(Decision::Applied(1))));
    let skip = [
        "sequence",
        "skip",
        "--operation",
        "payouts",
        "--key",
        "merchant-7",
        "--number",
        "2",
    ];
    let skip = [&skip[..], &["--first", "1"], &SIGNED].concat();
    let skipped = shop.run(&skip);
    assert_eq!(skipped.code, 0, "{}", skipped.all());
    let third = payouts().number(3).run(async |_| Ok::<_, Error>(3)).await;
    assert!(matches!(third, Ok(Decision::Applied(3))), "{third:?}");
}

//! `show`, `explain` and `steps`, and the ways to name a record.

use expect_test::expect;

use crate::shop::{Shop, on_every_store};

on_every_store! {
    a_record_is_shown_with_its_outcome
    a_record_is_found_by_digits_and_by_its_key
    a_story_is_told
    steps_are_listed
}

async fn a_record_is_shown_with_its_outcome(shop: Shop) {
    let id = shop.charged("order-1").await.to_hex();
    expect![[r#"
        RECORD
        id  a7ba5fc94c5f57f35a1bdf77107a7ebc7ce5315b143a7713cc865cf46645ade3
        operation  payments.charge
        key  "order-1"
        state  done
        attempt  1
        holder  till-3
        created  TIME (AGO)
        finished  TIME (AGO)
        lease end  TIME (SOON)
        expires  TIME (SOON)
        version  VERSION
        outcome  value, 20 bytes
        "receipt of order-1"
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["show", &id]).all());
    expect![[r#"
        {"attempt":1,"created":"TIME","expires":"TIME","finished":"TIME","holder":"till-3","id":"a7ba5fc94c5f57f35a1bdf77107a7ebc7ce5315b143a7713cc865cf46645ade3","is_stream":false,"key":"order-1","lease_end":"TIME","note":null,"operation":"payments.charge","outcome":{"bytes":20,"kind":"value","schema":0},"scope":null,"state":"done","steps":[],"value":"receipt of order-1","version":"VERSION"}
        exit code 0
    "#]].assert_eq(&shop.run(&["show", &id, "--json"]).all());
}

async fn a_record_is_found_by_digits_and_by_its_key(shop: Shop) {
    for number in 0..30 {
        shop.charged(&format!("order-{number}")).await;
    }
    let id = shop.charged("order-7").await.to_hex();
    let call = shop
        .idem
        .call("reports.make")
        .key(&(7_u64, "a"))
        .scope("shop 1");
    let made = call
        .run(async |_| Ok::<_, idempotent_runtime::Error>(1))
        .await;
    made.expect("it is made");
    // A number and its text are one key; with other zeros, it is another key.
    let other = [
        "show",
        "--operation",
        "reports.make",
        "--scope",
        "shop 1",
        "--key",
        "007",
        "--key",
        "a",
    ];
    assert_eq!(shop.run(&other).code, 3);
    for named in [
        &[&id[..]][..],
        &[&id[..8]],
        &[&id[..20]],
        &["--operation", "payments.charge", "--key", "order-7"],
    ] {
        let shown = shop.run(&[&["show"], named].concat());
        assert!(
            shown.out.contains(r#""order-7""#),
            "{named:?}: {}",
            shown.all()
        );
    }
    let parts = [
        "show",
        "--operation",
        "reports.make",
        "--scope",
        "shop 1",
        "--key",
        "7",
        "--key",
        "a",
    ];
    let shown = shop.run(&parts);
    assert!(shown.out.contains(r#""7, a""#), "{}", shown.all());
    expect![[r#"
        idempotent: not found under this id: 0123456789. Search by the text of the key: `idempotent list --operation NAME --key TEXT`
        exit code 3
    "#]].assert_eq(&shop.run(&["show", "0123456789"]).all());
    expect![[r#"
        idempotent: not found under this id: no record of `payments.charge` has this key and scope as they were said. Search by text: `idempotent list --operation payments.charge --key TEXT`
        exit code 3
    "#]].assert_eq(
        &shop
            .run(&[
                "show",
                "--operation",
                "payments.charge",
                "--key",
                "order-99",
            ])
            .all(),
    );
    expect![[r#"
        idempotent: `0123` is no id: it has 64 hexadecimal digits, and 8 of them at least name a record
        exit code 2
    "#]].assert_eq(&shop.run(&["show", "0123"]).all());
}

async fn a_story_is_told(shop: Shop) {
    let id = shop.uncertain("order-1").await.to_hex();
    expect![[r#"
        It is a call of `payments.charge` with the key "order-1".
        It is uncertain: the body began in `till-3` (attempt 1), and nobody knows since TIME whether it happened.
        Find out whether it happened: `settle_id(id).await?.with_value(&value)`, `.with_error(&error)` or `.as_done()`.
          idempotent settle a7ba5fc94c5f --value JSON (or --error JSON, or --done) --reason TEXT
          idempotent undo a7ba5fc94c5f --error JSON --reason TEXT
        exit code 0
    "#]].assert_eq(&shop.run(&["explain", &id]).all());
}

async fn steps_are_listed(shop: Shop) {
    let id = shop.trip("trip-1").await.to_hex();
    expect![[r#"
        STEP  STATE  UNDO  OUTCOME  NOTE
        flight  done  yes  value, 8 bytes
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["steps", &id]).all());
    let none = shop.charged("order-1").await.to_hex();
    expect![[r#"
        idempotent: the call has no steps
        exit code 3
    "#]]
    .assert_eq(&shop.run(&["steps", &none]).all());
}

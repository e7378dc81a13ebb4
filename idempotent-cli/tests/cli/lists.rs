//! `list`.

use expect_test::expect;
use idempotent_runtime::operate::State;

use crate::shop::{Shop, on_every_store};

on_every_store! {
    what_needs_somebody_is_listed
    filters_are_joined
    nothing_found_is_3
    a_list_goes_on_where_it_ended
    keys_do_not_move_a_terminal
    json_has_one_object_a_line
}

async fn what_needs_somebody_is_listed(shop: Shop) {
    shop.charged("order-1").await;
    shop.uncertain("order-2").await;
    expect![[r#"
        ID  STATE  SINCE  OPERATION  KEY  HOLDER
        6d8e2350d439  uncertain  AGO  payments.charge  "order-2"  till-3
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["list", "--attention"]).all());
}

async fn filters_are_joined(shop: Shop) {
    shop.charged("order-1").await;
    shop.charged("order-2").await;
    let parked = shop.charged("order-3").await;
    shop.put(parked, State::Parked, None).await;
    let abandoned = shop.charged("order-4").await;
    shop.put(abandoned, State::Running, None).await;
    for (filters, keys) in [
        (&["--state", "parked"][..], &["order-3"][..]),
        (&["--abandoned"], &["order-4"]),
        (
            &["--operation", "payments.charge", "--key", "order-2"],
            &["order-2"],
        ),
        (
            &["--attention", "--operation", "payments.charge"],
            &["order-3"],
        ),
        (&["--key", "order-1", "--state", "parked"], &[]),
        (&["--older-than", "1h"], &[]),
        (&["--operation", "payments.refund"], &[]),
    ] {
        let listed = shop.run(&[&["list"], filters].concat());
        let lines = listed.out.lines().count();
        assert_eq!(
            lines,
            if keys.is_empty() { 0 } else { keys.len() + 1 },
            "{}",
            listed.all()
        );
        for key in keys {
            assert!(listed.out.contains(key), "{filters:?}: {}", listed.all());
        }
    }
}

async fn nothing_found_is_3(shop: Shop) {
    expect![[r#"
        idempotent: no record is like that
        exit code 3
    "#]]
    .assert_eq(&shop.run(&["list", "--attention"]).all());
}

async fn a_list_goes_on_where_it_ended(shop: Shop) {
    for number in 0..150 {
        shop.charged(&format!("order-{number}")).await;
    }
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = vec!["list", "--limit", "40", "--json"];
        if let Some(after) = &after {
            arguments.extend(["--after", after]);
        }
        let output = shop.raw(&arguments);
        seen.extend(output.0.lines().map(str::to_owned));
        let next = output
            .1
            .split_once("--after ")
            .map(|(_, next)| next.trim().to_owned());
        match next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 150);
}

async fn keys_do_not_move_a_terminal(shop: Shop) {
    shop.uncertain("\u{1b}[2J\u{202e}\nevil").await;
    expect![[r#"
        ID  STATE  SINCE  OPERATION  KEY  HOLDER
        b24e9f417489  uncertain  AGO  payments.charge  "\u{1b}[2J\u{202e}\nevil"  till-3
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["list", "--attention"]).all());
}

async fn json_has_one_object_a_line(shop: Shop) {
    shop.charged("order-1").await;
    shop.uncertain("order-2").await;
    expect![[r#"
        {"attempt":1,"created":"TIME","expires":"TIME","finished":"TIME","holder":"till-3","id":"6d8e2350d439b7e9238548aeb7462125523d0fbdee85c18fb9f0ca2fcb400437","is_stream":false,"key":"order-2","lease_end":"TIME","note":null,"operation":"payments.charge","outcome":null,"scope":null,"state":"uncertain","version":"VERSION"}
        exit code 0
    "#]].assert_eq(&shop.run(&["list", "--attention", "--json"]).all());
    assert_eq!(shop.run(&["list", "--json"]).out.lines().count(), 2);
}

#[tokio::test]
async fn a_table_fits_forty_columns() {
    let shop = Shop::sqlite().await;
    let key = "a key that is longer than the terminal is wide, by far";
    let id = shop.uncertain(key).await;
    let (narrow, _) = shop.raw_with(&["list"], |it| {
        it.env("COLUMNS", "40");
    });
    let widest = narrow.lines().map(|it| it.chars().count()).max();
    assert!(widest <= Some(40), "{narrow}");
    assert!(
        narrow.contains(&id.to_hex()[..12]),
        "an id is copied: {narrow}"
    );
}

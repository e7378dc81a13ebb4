//! The entries of one record, and a task that verifies.

use idempotent_audit::{DivergenceKind, TimelineEntry};
use idempotent_runtime::{Error, identity::RecordId};

use crate::{
    harness::{Place, Shop},
    sealed::{pay, sealed},
};

on_every_database![
    a_record_has_its_entries_the_newest_first,
    a_task_verifies_again_and_again,
];

async fn id<DB: Place>(shop: &Shop<DB>, key: &str) -> RecordId {
    let records = shop.idem.records().key(key);
    records.page(1).await.expect("a page").rows[0].id
}

fn words(entry: &TimelineEntry) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    format!(
        "{} {} {}>{}",
        entry.kind,
        word(&entry.step),
        word(&entry.before),
        word(&entry.after)
    )
}

async fn a_record_has_its_entries_the_newest_first<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let call = shop
        .idem
        .call("payments.charge")
        .key("open")
        .uncertain_errors();
    let silent = call.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer")));
    silent.await.expect_err("the gateway is silent");
    let open = id(&shop, "open").await;
    let settle = shop.idem.settle_id(open).await.expect("a record");
    let settle = settle.by("anna").because("dashboard, row 7");
    settle.with_value(&1).await.expect("it is settled");

    let entries = audit.timeline(open, 10).await.expect("it is read");
    let expected = [
        "operator - uncertain>done",
        "call - running>uncertain",
        "call - ->running",
    ];
    assert_eq!(entries.iter().map(words).collect::<Vec<_>>(), expected);
    let by = (entries[0].by.as_deref(), entries[0].because.as_deref());
    assert_eq!(by, (Some("anna"), Some("dashboard, row 7")));
    assert!(entries[0].number > entries[1].number);
    assert!(entries.iter().all(|it| it.batch.is_none()), "they are open");
    let newest = audit.timeline(open, 1).await.expect("it is read");
    assert_eq!(newest, entries[..1]);
    audit.seal().await.expect("they are sealed");
    let after = audit.timeline(open, 10).await.expect("it is read");
    assert!(after.iter().all(|it| it.batch == Some(4)), "{after:?}");
    assert_eq!(after.iter().map(words).collect::<Vec<_>>(), expected);

    let paid = audit
        .timeline(id(&shop, "a").await, 10)
        .await
        .expect("it is read");
    let expected = [
        "call - running>done",
        "call gateway ->done",
        "call - ->running",
    ];
    assert_eq!(paid.iter().map(words).collect::<Vec<_>>(), expected);
    let none = audit.timeline(RecordId::from_bytes([7; 32]), 10).await;
    assert_eq!(none.expect("it is read"), []);
}

async fn a_task_verifies_again_and_again<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let too_often = audit.verify_every("10ms").expect_err("it is refused");
    assert!(
        matches!(too_often, Error::InvalidPolicy(_)),
        "{too_often:?}"
    );
    let verifying = audit.verify_every("1s").expect("it begins");
    let shown = verifying.verifications();
    let first = loop {
        match shown.last() {
            Some(last) => break last,
            None => tokio::task::yield_now().await,
        }
    };
    assert!(first.holds(), "{first}");
    let expected = "The audit trail holds: 9 entries in 3 batches.";
    assert_eq!(first.to_string(), expected);

    pay(&shop, "d").await;
    let change = "UPDATE {p}audit SET attempt = 77 WHERE batch = 2";
    shop.done_by_hand(change).await;
    let found = loop {
        match verifying.last() {
            Some(last) if !last.holds() => break last,
            _ => tokio::task::yield_now().await,
        }
    };
    let report = found.result.as_ref().expect("it is read");
    let divergence = report.divergence.as_ref().expect("a divergence");
    assert_eq!(divergence.kind, DivergenceKind::Content);
    assert!(
        found
            .to_string()
            .starts_with("The audit trail is not what it was")
    );
}

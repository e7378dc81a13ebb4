//! A program of its own: the linker knows its annotated functions before their first call.

#![forbid(unsafe_code)]

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, MemoryStore, OnCrash, RawOutcome, Store, assert_operations, idempotent,
    identity::RecordId,
    operate::OperationChange,
    record::{Draft, Moment, State, TokenRule, Version},
    store::Swap,
};
use serde::Serialize;

#[idempotent(name = "orders.place", key = order, scope = tenant, ttl = "24h", on_crash = uncertain)]
async fn place(tenant: &str, order: u64) -> Result<u64, Error> {
    Ok(order + tenant.len() as u64)
}

struct Desk;

impl Desk {
    #[idempotent(name = "orders.cancel", key = order)]
    async fn cancel<T: Clone + Send + Sync + Serialize>(
        &self,
        order: u64,
        why: T,
    ) -> Result<u64, Error> {
        drop(why);
        Ok(order)
    }
}

#[test]
fn the_list_is_that_of_the_program() {
    assert_operations![
        "orders.place: key = order, scope = tenant, ttl = 86400s, on_crash = Uncertain",
        "orders.cancel: key = order",
    ];
}

#[test]
#[should_panic = "+ orders.place: key = order, scope = tenant, ttl = 86400s, on_crash = Uncertain\n- orders.place: key = tenant, "]
fn a_key_that_was_changed_is_told() {
    assert_operations![
        "orders.place: key = tenant, scope = tenant, ttl = 86400s, on_crash = Uncertain",
        "orders.cancel: key = order",
    ];
}

#[tokio::test]
async fn operations_are_known_before_their_first_call() -> Result<(), Error> {
    let idem = Idempotency::memory();
    let seen = || {
        let operations = idem.operations().into_iter();
        let seen = operations.filter(|operation| operation.is_seen);
        seen.map(|operation| operation.name).collect::<Vec<_>>()
    };
    let operations = idem.operations();
    let place = operations.iter().find(|it| it.name == "orders.place");
    let place = place.expect("the linker knows it");
    assert_eq!((place.key, place.scope), (Some("order"), Some("tenant")));
    assert_eq!(place.ttl, Some(Duration::from_secs(24 * 60 * 60)));
    assert_eq!(place.on_crash, Some(OnCrash::Uncertain));
    assert!(place.file.ends_with("operations.rs"), "{place:?}");
    assert_eq!(place.line, 16);
    assert_eq!(seen(), [""; 0]);

    idem.enter(place_and_cancel()).await?;
    assert_eq!(seen(), ["orders.cancel", "orders.place"]);
    assert_eq!(idem.operations().len(), 2);
    Ok(())
}

async fn place_and_cancel() -> Result<(), Error> {
    place("shop", 7).await?;
    Desk.cancel(7, "changed their mind").await?;
    Desk.cancel(8, 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_deploy_is_told_what_it_changes() -> Result<(), Error> {
    let store = MemoryStore::new();
    let idem = Idempotency::new(store.clone());
    assert_eq!(idem.keep_operations("shop").await?, []);
    assert_eq!(idem.keep_operations("shop").await?, []);
    assert_eq!(idem.keep_operations("another").await?, []);

    let rows = idem.records().operation("operations:").page(10).await?.rows;
    assert_eq!(rows.len(), 2);
    let row = rows
        .iter()
        .find(|row| row.key.as_deref() == Some("\"shop\""));
    let id = row.expect("it is kept").id;
    // As a build before would have kept it.
    let before = r#"{"orders.place": {"key": "cart", "version": "2", "scope": "tenant", "ttl": "86400s", "on_crash": "Uncertain"},
        "orders.cancel": {"key": "order"}, "orders.old": {}}"#;
    write(&store, id, before).await?;
    let changed = |setting: &str, before: &str, after: Option<&str>| OperationChange::Changed {
        name: "orders.place".to_owned(),
        setting: setting.to_owned(),
        before: Some(before.to_owned()),
        after: after.map(str::to_owned),
    };
    let name = "orders.old".to_owned();
    let changes = idem.keep_operations("shop").await?;
    assert_eq!(
        changes,
        [
            OperationChange::Vanished { name },
            changed("key", "cart", Some("order")),
            changed("version", "2", None),
        ]
    );
    assert_eq!(
        changes[1].to_string(),
        "orders.place: key was cart, and is order"
    );
    assert_eq!(idem.keep_operations("shop").await?, []);

    write(&store, id, "no list").await?;
    let damaged = idem.keep_operations("shop").await;
    assert!(matches!(damaged, Err(Error::Store(_))), "{damaged:?}");
    // An operator has it begin anew.
    idem.invalidate(id, "it is damaged").await?;
    assert_eq!(idem.keep_operations("shop").await?, []);
    Ok(())
}

async fn write(store: &MemoryStore, id: RecordId, text: &'static str) -> Result<(), Error> {
    let record = store.load(&id).await?.record.expect("it is kept");
    let draft = Draft {
        version: Version::from_u128(7),
        subject: None,
        state: State::Done,
        token: TokenRule::Keep,
        attempt: 1,
        attempt_id: record.attempt_id,
        holder: record.holder.clone(),
        on_crash: record.on_crash,
        lease: Moment::Keep,
        expires: Moment::Keep,
        keep: Duration::ZERO,
        outcome: Some(RawOutcome::value(text)),
        note: None,
    };
    let put = store.swap(&id, Some(record.version), &draft).await?;
    assert!(matches!(put, Swap::Applied(_)));
    Ok(())
}

#[tokio::test]
async fn the_names_under_which_they_are_kept_are_reserved() {
    let idem = Idempotency::memory();
    let call = idem.call("operations:").key("shop");
    let refused = call.run(async |_| Ok::<_, Error>(())).await;
    assert!(
        matches!(refused, Err(Error::InvalidPolicy(_))),
        "{refused:?}"
    );
}

//! Operators list records: what needs somebody, what an operation has done, and pages of both.

use std::time::Duration;

use idempotent_runtime::{
    Error, NotSettled, OutcomeKind,
    operate::{RecordCursor, RecordPage, Records, State},
    store::StoreErrorKind,
    testing::{Gate, On, StoreOperation},
};

use crate::harness::{Owner, World, not_settled};

on_every_store![
    what_needs_somebody_is_listed_with_its_key_and_its_note,
    the_records_of_an_operation_come_in_pages,
    filters_are_joined,
    a_stream_that_stops_needs_somebody,
    what_a_vanished_holder_left_is_found,
    a_list_settles_what_it_shows,
    records_that_cannot_be_read_are_passed,
];

async fn charge(owner: &Owner, key: &str) {
    let call = owner.call("payments.charge").scope("m-7").key(key);
    let charged = call.run(async |_| Ok::<_, Error>("a receipt".to_owned()));
    charged.await.expect("it runs");
}

async fn leave_uncertain(owner: &Owner, key: &str) {
    let call = owner.call("payments.charge").scope("m-7").key(key);
    let left = call.uncertain_errors();
    let left = left.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());
}

async fn page(records: Records<'_>) -> RecordPage {
    records.page(100).await.expect("the store answers")
}

/// The keys of all pages of two, in quotes, in their order.
async fn keys(records: Records<'_>) -> Vec<String> {
    let (mut keys, mut records) = (Vec::new(), records);
    loop {
        let page = records.page(2).await.expect("the store answers");
        keys.extend(page.rows.into_iter().filter_map(|row| row.key));
        match page.next {
            // As a command line has it.
            Some(next) => {
                let next: RecordCursor = next.to_string().parse().expect("a cursor");
                records = records.after(next);
            }
            None => return keys,
        }
    }
}

async fn what_needs_somebody_is_listed_with_its_key_and_its_note(world: World) {
    let owner = world.owner().await;
    assert_eq!(page(owner.idem.records().attention()).await.rows, []);
    charge(&owner, "fine").await;
    leave_uncertain(&owner, "order \"42\"").await;

    let page = page(owner.idem.records().attention()).await;
    let [row] = &page.rows[..] else {
        panic!("{page:?}");
    };
    assert_eq!(&*row.operation, "payments.charge");
    assert_eq!(row.key.as_deref(), Some(r#""order \"42\"""#));
    assert_eq!(row.scope.as_deref(), Some(r#""m-7""#));
    assert_eq!(
        (row.state, row.attempt, row.outcome),
        (State::Uncertain, 1, None)
    );
    assert_eq!(&*row.holder, "owner-1");
    assert!(row.created <= page.now && row.finished.is_some());
    assert_eq!(page.next, None);

    let settle = owner.idem.settle_id(row.id).await.expect("it stands");
    let settle = settle.by("anna").because("the dashboard shows it");
    settle.with_value(&7_u64).await.expect("it is uncertain");
    assert_eq!(keys(owner.idem.records().attention()).await, [""; 0]);
    let done = owner
        .idem
        .records()
        .operation("payments.charge")
        .key("order \"42\"");
    let done = self::page(done).await.rows;
    assert_eq!(done.len(), 1);
    let outcome = done[0].outcome.expect("it was settled");
    assert_eq!((outcome.kind, outcome.bytes), (OutcomeKind::Value, 1));
    let note = done[0].note.as_deref().expect("anna signed it");
    assert_eq!(note.by.as_deref(), Some("anna"));
    assert_eq!(&*note.text, "the dashboard shows it");
}

async fn the_records_of_an_operation_come_in_pages(world: World) {
    let owner = world.owner().await;
    for key in ["1", "2", "3", "4", "5"] {
        charge(&owner, key).await;
        let other = owner.call("payments.refund").key(key);
        let other = other.run(async |_| Ok::<_, Error>(()));
        other.await.expect("it runs");
        world.advance(Duration::from_secs(1)).await;
    }

    let none = owner.idem.records().page(0).await;
    let none = none.expect("the store answers");
    assert!(!none.rows.is_empty() && none.next.is_some(), "{none:?}");
    let mut found = keys(owner.idem.records().operation("payments.charge")).await;
    if !world.lists_by_id() {
        let newest_first = [r#""5""#, r#""4""#, r#""3""#, r#""2""#, r#""1""#];
        assert_eq!(found, newest_first);
    }
    found.sort();
    assert_eq!(found, [r#""1""#, r#""2""#, r#""3""#, r#""4""#, r#""5""#]);
    assert_eq!(keys(owner.idem.records()).await.len(), 10);
    let refunds = owner.idem.records().operation("payments.refund");
    let counted = refunds.count().await.expect("the store answers");
    assert_eq!((counted.records, counted.is_capped), (5, false));

    // A call that begins anew has one place, and is the newest.
    world.advance(Duration::from_secs(25 * 60 * 60)).await;
    charge(&owner, "1").await;
    let found = keys(owner.idem.records().operation("payments.charge")).await;
    assert_eq!(found.iter().filter(|key| **key == r#""1""#).count(), 1);
}

async fn filters_are_joined(world: World) {
    let owner = world.owner().await;
    charge(&owner, "1").await;
    leave_uncertain(&owner, "2").await;
    world.advance(Duration::from_secs(60)).await;
    charge(&owner, "3").await;

    let records = || owner.idem.records();
    let count = async |records: Records<'_>| page(records).await.rows.len();
    assert_eq!(count(records().state(State::Done)).await, 2);
    assert_eq!(
        count(records().state(State::Done).older_than("30s")).await,
        1
    );
    assert_eq!(count(records().older_than("30s")).await, 2);
    assert_eq!(count(records().key("1")).await, 1);
    assert_eq!(count(records().key("1").attention()).await, 0);
    assert_eq!(count(records().scope("m-7").key("2").attention()).await, 1);
    assert_eq!(count(records().scope("m-8")).await, 0);
    assert_eq!(
        count(records().attention().operation("payments.charge")).await,
        1
    );
    assert_eq!(
        count(records().attention().operation("payments.refund")).await,
        0
    );
    let refused = records().older_than("a week or so").page(1).await;
    assert!(
        matches!(refused, Err(Error::InvalidPolicy(_))),
        "{refused:?}"
    );
    let refused = records().key("").page(1).await;
    assert!(
        matches!(refused, Err(Error::InvalidKey { .. })),
        "{refused:?}"
    );
}

async fn a_stream_that_stops_needs_somebody(world: World) {
    let owner = world.owner().await;
    let account = owner.idem.sequence("accounts", "account-7").first(1);
    let in_doubt = account.clone().number(1).uncertain_errors();
    let left = in_doubt.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
    assert!(left.await.is_err());

    let rows = page(owner.idem.records().attention()).await.rows;
    assert_eq!(rows.len(), 1);
    assert!(rows[0].is_stream);

    account.settle(1).as_done().await.expect("it is uncertain");
    assert_eq!(page(owner.idem.records().attention()).await.rows, []);
}

async fn what_a_vanished_holder_left_is_found(world: World) {
    let (owner, dead) = (world.owner().await, world.owner().await);
    charge(&owner, "1").await;
    let gate = Gate::new();
    let its = gate.clone();
    let call = dead.call("payments.charge").key("2");
    let task = dead.spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(())
        };
        call.run(body).await
    });
    gate.arrived(1).await;
    assert_eq!(page(owner.idem.records().abandoned()).await.rows, []);
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;

    let rows = page(owner.idem.records().abandoned()).await.rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].key.as_deref(), Some(r#""2""#));
    assert_eq!(rows[0].state, State::Running);
}

/// The ten lines of the manual.
async fn a_list_settles_what_it_shows(world: World) {
    let owner = world.owner().await;
    for key in ["1", "2", "3"] {
        leave_uncertain(&owner, key).await;
    }
    let idem = &owner.idem;
    loop {
        let page = idem.records().attention().page(2).await.expect("an answer");
        if page.rows.is_empty() {
            break;
        }
        for row in page.rows {
            let settle = idem.settle_id(row.id).await.expect("it stands");
            settle.by("anna").as_done().await.expect("it is uncertain");
        }
    }
    let done = idem.records().state(State::Done);
    assert_eq!(done.count().await.expect("an answer").records, 3);
}

/// A small page has only such records, or a look for the operation meets one.
async fn records_that_cannot_be_read_are_passed(world: World) {
    let owner = world.owner().await;
    charge(&owner, "1").await;
    let damaged = || owner.fails(StoreOperation::Scan, On::Next, StoreErrorKind::Corrupt);
    damaged();
    let page = owner.idem.records().page(2).await;
    assert_eq!(page.expect("the rest is read").rows.len(), 1);
    damaged();
    let settle = owner
        .idem
        .settle("payments.charge", None::<&str>, "unknown");
    let settled = settle.expect("a key").as_done().await;
    assert_eq!(not_settled(settled), Some(NotSettled::UnknownKey));
}

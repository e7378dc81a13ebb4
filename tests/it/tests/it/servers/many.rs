//! Lists over 50,000 records: a page looks at what it lists, and all pages have each record once.

use std::collections::HashSet;

use idempotent_runtime::{
    Error, Idempotency,
    identity::RecordId,
    operate::{RecordPage, Records},
    store::{MemoryStore, Store},
};
use sqlx::{MySql, Postgres, Sqlite};

use crate::{harness::claim, transactions::shop::Shop};

pub(super) const RECORDS: usize = 50_000;

/// How many records need somebody, and are of an operation of their own.
pub(super) const UNCERTAIN: usize = 3;

on_every_database![a_page_of_many_records_looks_at_what_it_lists];

/// A database that makes records of the one that stands.
trait Fills {
    /// As many rows as there are to be records.
    fn numbers() -> String;

    /// An id of each row.
    const ID: &'static str;
}

impl Fills for Postgres {
    fn numbers() -> String {
        format!("generate_series(1, {RECORDS}) AS made(number)")
    }

    const ID: &'static str = "sha256(number::text::bytea)";
}

impl Fills for MySql {
    fn numbers() -> String {
        format!("seq_1_to_{RECORDS}")
    }

    const ID: &'static str = "unhex(sha2(seq, 256))";
}

impl Fills for Sqlite {
    fn numbers() -> String {
        format!(
            "(WITH RECURSIVE made(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM made WHERE number < {RECORDS})
              SELECT number FROM made)"
        )
    }

    const ID: &'static str = "randomblob(32)";
}

/// The columns of a record but its id.
const REST: [&str; 24] = [
    "version",
    "operation",
    "scope",
    "call_key",
    "fingerprint",
    "digests",
    "state",
    "token",
    "attempt",
    "attempt_id",
    "holder",
    "trace_parent",
    "on_crash",
    "lease_end",
    "created",
    "finished",
    "expires",
    "outcome_kind",
    "outcome_schema",
    "outcome",
    "note",
    "note_by",
    "note_of",
    "purge_from",
];

pub(super) async fn charge(idem: &Idempotency) {
    let call = idem.call("charge").key("k");
    let charged = call.run(async |_| Ok::<_, Error>(7_u64)).await;
    assert_eq!(charged, Ok(7));
}

pub(super) async fn leave_uncertain(idem: &Idempotency) {
    for key in 0..UNCERTAIN {
        let call = idem.call("transfer").key(&key).uncertain_errors();
        let left = call.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
        assert!(left.await.is_err());
    }
}

pub(super) async fn page(records: &Records<'_>) -> RecordPage {
    records.page(50).await.expect("the store answers")
}

/// How many records all pages have together.
pub(super) async fn in_pages(mut records: Records<'_>) -> usize {
    let mut met = HashSet::new();
    loop {
        let page = records.page(5_000).await.expect("the store answers");
        met.extend(page.rows.iter().map(|row| row.id));
        match page.next {
            Some(next) => records = records.after(next),
            None => return met.len(),
        }
    }
}

/// An index has these records, so that others are not looked at.
pub(super) async fn looks_at_what_it_lists(records: Records<'_>) {
    let page = page(&records).await;
    assert_eq!((page.rows.len(), page.next), (UNCERTAIN, None));
    assert_eq!(page.looked, UNCERTAIN as u64);
}

async fn a_page_of_many_records_looks_at_what_it_lists<S: Shop<Database: Fills>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    charge(&idem).await;
    let (records, rest) = (shop.records(), REST.join(", "));
    let (id, numbers) = (S::Database::ID, S::Database::numbers());
    let fill =
        format!("INSERT INTO {records} (id, {rest}) SELECT {id}, {rest} FROM {records}, {numbers}");
    let mut connection = shop.pool().acquire().await.expect("a connection");
    S::run(&mut connection, fill).await.expect("it fills");
    drop(connection);
    leave_uncertain(&idem).await;

    looks_at_what_it_lists(idem.records().attention()).await;
    looks_at_what_it_lists(idem.records().operation("transfer")).await;
    let first = page(&idem.records().operation("charge")).await;
    assert_eq!((first.rows.len(), first.looked), (50, 50));
    let counted = idem.records().operation("charge").count().await;
    let counted = counted.expect("the store answers");
    assert_eq!((counted.records, counted.is_capped), (10_000, true));
    assert_eq!(in_pages(idem.records()).await, RECORDS + 1 + UNCERTAIN);
}

#[tokio::test]
async fn a_page_of_many_records_in_memory_looks_at_what_it_lists() {
    let store = MemoryStore::new();
    for number in 0..RECORDS as u64 {
        let mut id = [0x5a; 32];
        id[24..].copy_from_slice(&number.to_be_bytes());
        let (id, claim) = (RecordId::from_bytes(id), claim());
        let claimed = store.swap(&id, None, &claim);
        claimed.await.expect("it is claimed");
    }
    let idem = Idempotency::new(store);
    leave_uncertain(&idem).await;
    looks_at_what_it_lists(idem.records().attention()).await;
    assert_eq!(in_pages(idem.records()).await, RECORDS + UNCERTAIN);
}

//! Files and rows that fail.

use idempotent_runtime::{Error, Idempotency, RawEnding, RawOutcome};

use super::*;
use crate::answers::failed_as;

const OTHER: RecordId = RecordId::from_bytes([8; 32]);

#[tokio::test]
async fn e17_a_file_that_may_only_be_read_answers_looks_and_denies_writes() {
    let folder = folder();
    let (path, _writer, draft) = claimed(&folder).await;
    let url = format!("sqlite:{}?mode=ro", path.display());
    let store = SqliteStore::builder().connect_url(&url).await;
    let store = store.expect("a current file needs no write to open");

    assert!(stands(&store).await);
    let duplicate = store.swap(&ID, None, &claim()).await;
    assert!(!is_applied(duplicate), "a replay is a look");
    let answer = store.swap(&OTHER, None, &claim()).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Denied));
    let ending = completion(&draft, vec![]);
    let answer = store.swap(&ID, Some(draft.version), &ending).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Denied));
    let answer = store.purge(1, Duration::ZERO).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Denied));

    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, b"").expect("the file is made");
    let url = format!("sqlite:{}?mode=ro", empty.display());
    let answer = SqliteStore::builder().connect_url(&url).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Denied));
}

#[tokio::test]
async fn a_file_that_somebody_locks_is_busy_until_the_lock_is_gone() {
    let folder = folder();
    let (path, _, draft) = claimed(&folder).await;
    let soon = SqliteStore::builder().busy_timeout(Duration::from_millis(20));
    let store = soon.clone().open(&path).await.expect("the file opens");
    let mut other = side(&path).await;
    run(&mut other, "BEGIN IMMEDIATE").await;

    let answer = store.swap(&OTHER, None, &claim()).await;
    assert!(answer.as_ref().is_err_and(StoreError::is_transient));
    assert_eq!(kind(answer), Some(StoreErrorKind::Busy));
    let ending = completion(&draft, vec![]);
    let answer = store.swap(&ID, Some(draft.version), &ending).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Busy));
    assert!(stands(&store).await, "a look needs no lock");
    let duplicate = store.swap(&ID, None, &claim()).await;
    assert!(!is_applied(duplicate), "a replay needs no lock");
    let again = soon.open(&path).await;
    again.expect("a current file needs no lock to open");

    run(&mut other, "ROLLBACK").await;
    applied(&store, &ID, Some(draft.version), &ending).await;
}

/// A claim that is dropped so is neither written nor shown, and would be asked for without end.
#[tokio::test]
async fn a_trigger_that_drops_claims_is_denied_and_runs_no_body() {
    let folder = folder();
    let (path, store) = opened(&folder).await;
    let trigger =
        "CREATE TRIGGER drops BEFORE INSERT ON idempotent_records BEGIN SELECT RAISE(IGNORE); END";
    run(&mut side(&path).await, trigger).await;
    let idem = Idempotency::new(store);
    let call = idem.call("sqlite.dropped").key("k");
    let call = call.run(|_| async { panic!("the body runs") as Result<u32, Error> });

    let refused = tokio::time::timeout(Duration::from_secs(10), call).await;

    let refused = refused.expect("it is told");
    assert!(failed_as(&refused, StoreErrorKind::Denied), "{refused:?}");
}

#[tokio::test]
async fn a_full_file_refuses_the_outcome_and_keeps_the_claim() {
    let folder = folder();
    let path = folder.path().join("records.db");
    let pool = pool(&path).await;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("the tables are made");
    let draft = claim();
    applied(&store, &ID, None, &draft).await;
    run_in(&pool, "PRAGMA max_page_count = 20").await;

    let ending = completion(&draft, vec![7; 1 << 20]);
    let answer = store.swap(&ID, Some(draft.version), &ending).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Full));
    let (_, stands) = only(&store).await;
    assert_eq!(
        (stands.state, stands.version),
        (State::Running, draft.version)
    );

    run_in(&pool, "PRAGMA max_page_count = 100000").await;
    applied(&store, &ID, Some(draft.version), &ending).await;
}

/// Every column, with values that do not belong there, in a table without a single constraint.
#[tokio::test]
async fn f20_f21_damaged_rows_are_a_typed_error() {
    let folder = folder();
    let path = folder.path().join("records.db");
    let pool = pool(&path).await;
    let store = SqliteStore::builder().table_prefix("lax_");
    let store = store.pool(pool.clone()).expect("a safe prefix");
    let blob = ["NULL", "x''", "x'00'", "x'ff00ff'", "17", "zeroblob(33)"];
    let number = [
        "NULL",
        "-1",
        "99",
        "x'01'",
        "'text'",
        "9223372036854775807",
        "1e300",
    ];
    let text = ["NULL", "CAST(x'ff80' AS TEXT)"];
    let time = ["NULL", "x'01'", "'text'", "1e300"];
    let damages: [(&str, &[&str]); 18] = [
        ("version", &blob),
        ("operation", &text),
        ("scope", &["NULL", "17"]),
        ("call_key", &["NULL", "17"]),
        ("fingerprint", &blob),
        ("digests", &["NULL", "x''", "x'09'", "x'01ff'"]),
        ("state", &number),
        ("token", &["NULL", "-1", "x'01'", "'text'"]),
        ("attempt", &["NULL", "-1", "4294967296", "x'01'"]),
        ("attempt_id", &blob),
        ("holder", &text),
        ("trace_parent", &["CAST(x'ff80' AS TEXT)"]),
        ("on_crash", &number),
        ("lease_end", &time),
        ("created", &time),
        ("finished", &["x'01'", "'text'"]),
        ("expires", &time),
        ("outcome_kind", &["0", "5", "-1", "x'01'", "256"]),
    ];
    let outcomes: [(&str, &[&str]); 2] = [
        ("outcome_schema", &["NULL", "-1", "4294967296"]),
        ("outcome", &["NULL", "17"]),
    ];
    let columns = damages.iter().chain(&outcomes).map(|(column, _)| *column);
    let columns = columns.collect::<Vec<_>>().join(", ");
    let table = format!(
        "CREATE TABLE lax_records (id, {columns}, note, note_by, note_of, purge_from, UNIQUE (id))"
    );
    run_in(&pool, table).await;

    for (column, values) in damages.into_iter().chain(outcomes) {
        for value in values {
            let about = format!("{column} = {value}");
            run_in(&pool, "DELETE FROM lax_records").await;
            let draft = finished(&store, &ID, vec![1, 2]).await;
            run_in(&pool, format!("UPDATE lax_records SET {about}")).await;

            let stale = completion(&draft, vec![]);
            let kinds = [
                kind(store.load(&ID).await),
                kind(store.swap(&ID, None, &claim()).await),
                kind(store.swap(&ID, Some(Version::random()), &stale).await),
                kind(store.scan(None, 10).await),
            ];
            assert_eq!(kinds, [Some(StoreErrorKind::Corrupt); 4], "{about}");
        }
    }
}

#[tokio::test]
async fn s_59n_a_fingerprint_of_another_version_is_compared_with_none() {
    let folder = folder();
    let (path, store) = opened(&folder).await;
    let idem = Idempotency::new(store);
    let receipt = RawOutcome::value("receipt");
    let call = |amount: u32| {
        let call = idem.call("payments.charge").key("k");
        let call = call.argument("amount", &amount);
        let ending = RawEnding::Record(receipt.clone());
        async move {
            call.run_raw(|_| async { ending })
                .await
                .map(|(outcome, _)| outcome)
        }
    };
    assert_eq!(call(12).await, Ok(receipt.clone()));
    let of_version = |version: u8| {
        format!(
            "UPDATE idempotent_records SET digests = CAST(x'0{version}' || substr(digests, 2) AS BLOB)"
        )
    };
    run(&mut side(&path).await, of_version(2)).await;

    for amount in [12, 13] {
        let refused = call(amount).await;
        assert!(failed_as(&refused, StoreErrorKind::Corrupt), "{refused:?}");
    }

    run(&mut side(&path).await, of_version(1)).await;
    assert_eq!(call(12).await, Ok(receipt.clone()));
    assert!(matches!(call(13).await, Err(Error::KeyReused { .. })));
}

/// A damaged record is no reason to say that nothing was written.
#[tokio::test]
async fn f20_a_write_over_a_damaged_row_may_stand() {
    let folder = folder();
    let (path, store, draft) = claimed(&folder).await;
    let mut side = side(&path).await;
    run(&mut side, "UPDATE idempotent_records SET token = -5").await;

    let ending = completion(&draft, vec![]);
    let answer = store.swap(&ID, Some(draft.version), &ending).await;

    run(&mut side, "UPDATE idempotent_records SET token = 5").await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Other));
    let stands = store.load(&ID).await.expect("it is sound again").record;
    assert_eq!(stands.map(|record| record.version), Some(ending.version));
}

#[tokio::test]
async fn f20_a_damaged_file_is_a_typed_error() {
    let folder = folder();
    let (path, store) = opened(&folder).await;
    let ids: Vec<_> = (0..200)
        .map(|number| RecordId::from_bytes([number; 32]))
        .collect();
    for id in &ids {
        finished(&store, id, vec![3; 5000]).await;
    }
    run(&mut side(&path).await, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    drop(store);
    let whole = std::fs::read(&path).expect("the file is read");

    let scribbled = |from: usize| {
        let mut bytes = whole.clone();
        for (place, byte) in bytes.iter_mut().enumerate().skip(from) {
            *byte ^= u8::try_from(place % 251).unwrap_or(1) | 1;
        }
        bytes
    };
    let damages = [
        scribbled(100),
        scribbled(4096 * 3),
        scribbled(whole.len() / 2),
        whole[..whole.len() / 3].to_vec(),
        whole[..5000].to_vec(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let path = folder.path().join(format!("damaged-{number}.db"));
        std::fs::write(&path, damage).expect("the file is written");
        let mut kinds = Vec::new();
        match SqliteStore::open(&path).await {
            Err(error) => kinds.push(error.kind()),
            Ok(store) => {
                for id in &ids {
                    kinds.extend(store.load(id).await.err().map(|error| error.kind()));
                }
                let listed = store.scan(None, u32::MAX).await;
                kinds.extend(listed.err().map(|error| error.kind()));
            }
        }
        assert!(!kinds.is_empty(), "damage {number} is found");
        let known = [StoreErrorKind::Corrupt, StoreErrorKind::Schema];
        assert!(
            kinds.iter().all(|kind| known.contains(kind)),
            "damage {number}: {kinds:?}"
        );
    }
}

#[tokio::test]
async fn mend_27_an_error_of_the_store_says_its_cause_and_blames_no_migration_for_a_trigger() {
    let folder = folder();
    let nowhere = folder.path().join("no such folder").join("records.db");
    let error = SqliteStore::open(&nowhere).await.expect_err("no folder");
    let said = Error::from(error).to_string();
    let words = said.matches("unable to open database file").count();
    assert_eq!(words, 1, "{said}");

    let (path, store) = opened(&folder).await;
    let trigger = "CREATE TRIGGER refuses BEFORE INSERT ON idempotent_records BEGIN SELECT RAISE(ABORT, 'closed for the night'); END";
    run(&mut side(&path).await, trigger).await;
    let refused = store.swap(&OTHER, None, &claim()).await;
    let said = refused.expect_err("the trigger refuses").to_string();
    assert!(said.ends_with("closed for the night"), "{said}");
    assert!(!said.contains("migrate"), "{said}");
}

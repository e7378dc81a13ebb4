//! Locks that other sessions hold, and deadlocks.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use idempotent_runtime::{
    identity::RecordId,
    record::{Draft, FencingToken, Moment, TokenRule, Version},
    store::Swap,
};
use sqlx::MySqlConnection;
use tokio::task::JoinSet;

use super::{Arc, Duration, MariaDb, Store, StoreErrorKind, StoreUnderTest, kind, run, side, text};
use crate::{
    harness::{applied, claim, completion, in_time},
    servers::{
        purges::what_a_purge_goes_by_stays,
        together::{heartbeats_pass_a_locked_record, one_refused_record_fails_alone},
    },
};

fn id(number: u32) -> RecordId {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    RecordId::from_bytes(bytes)
}

/// A record that is expired as soon as it is done.
async fn expired(store: &dyn Store, number: u32) {
    let draft = claim();
    let ending = Draft {
        expires: Moment::In(Duration::ZERO),
        ..completion(&draft, vec![])
    };
    for (seen, draft) in [(None, &draft), (Some(draft.version), &ending)] {
        applied(store, &id(number), seen, draft).await;
    }
}

/// One claim over any record that stands there, and its ending. Each is tried as a call tries it.
async fn call(store: &dyn Store, id: &RecordId) {
    let first = claim();
    let (mut seen, mut draft) = (None, first.clone());
    for _ in 0..3 {
        match store.swap(id, seen, &draft).await.expect("an answer") {
            Swap::Applied(_) => {
                let ending = completion(&draft, b"v".to_vec());
                let ended = store.swap(id, Some(draft.version), &ending).await;
                ended.expect("an answer");
                return;
            }
            Swap::Refused(snapshot) => {
                let record = snapshot.record;
                seen = record.as_ref().map(|record| record.version);
                let token = record.map_or(FencingToken::from_u64(0), |record| record.token);
                draft = Draft {
                    version: Version::random(),
                    token: TokenRule::Above(token),
                    ..first.clone()
                };
            }
        }
    }
}

/// Claims, endings and purges of 64 callers, on one record that all of them want and on a thousand
/// that few do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn callers_who_write_and_purge_the_same_records_meet_no_deadlock() {
    for database in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let mut callers = JoinSet::new();
        let turns = Arc::new(AtomicU32::new(0));
        for _ in 0..4 {
            let builder = database.builder().max_connections(16);
            let store = builder.connect(&database.url).await;
            let store: Arc<dyn Store> = Arc::new(store.expect("the server answers"));
            for _ in 0..16 {
                let (store, turns) = (Arc::clone(&store), Arc::clone(&turns));
                callers.spawn(async move {
                    loop {
                        let turn = turns.fetch_add(1, Ordering::Relaxed);
                        match turn % 4 {
                            _ if turn >= 4000 => return,
                            0 => call(&*store, &id(0)).await,
                            1 => expired(&*store, 10_000 + turn).await,
                            2 => drop(store.purge(20, Duration::ZERO).await.expect("an answer")),
                            _ => call(&*store, &id(1 + turn % 1000)).await,
                        }
                    }
                });
            }
        }
        callers.join_all().await;
    }
}

/// A deadlock lets another transaction through. A trigger stands in for it, and counts in a table
/// that is no part of any transaction.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_deadlock_is_tried_again_and_busy_at_last() {
    let database = MariaDb::new().await;
    let (store, prefix) = (database.store().await, &database.prefix);
    let mut side = side(&database.url).await;
    let deadlocks = format!(
        "CREATE TABLE {prefix}met (n INT) ENGINE = MyISAM;
         CREATE TABLE {prefix}left (n INT) ENGINE = InnoDB;
         INSERT INTO {prefix}left VALUES (3);
         CREATE TRIGGER {prefix}deadlock BEFORE INSERT ON {prefix}records FOR EACH ROW BEGIN
             IF (SELECT COUNT(*) FROM {prefix}met) < (SELECT n FROM {prefix}left) THEN
                 INSERT INTO {prefix}met VALUES (1);
                 SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213;
             END IF;
         END"
    );
    run(&mut side, deadlocks).await;

    applied(&store, &id(1), None, &claim()).await;
    let met = format!("SELECT CAST(COUNT(*) AS CHAR) FROM {prefix}met");
    assert_eq!(text(&mut side, met, 0).await, "3");

    run(&mut side, format!("UPDATE {prefix}left SET n = 1000000")).await;
    let swap = store.swap(&id(2), None, &claim()).await;
    assert_eq!(kind(swap), StoreErrorKind::Busy);
    let drop = format!("DROP TRIGGER {prefix}deadlock; DROP TABLE {prefix}met, {prefix}left");
    run(&mut side, drop).await;
}

/// An audit trail, for example, may hang on the table, and insert rows of its own.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn triggers_of_the_application_change_no_answer() {
    for database in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let (store, prefix) = (database.store().await, &database.prefix);
        let triggers: String = ["INSERT", "UPDATE"]
            .map(|what| {
                format!(
                    "CREATE TRIGGER {prefix}{what} BEFORE {what} ON {prefix}records
                     FOR EACH ROW INSERT INTO {prefix}trail VALUES (NULL);"
                )
            })
            .concat();
        let trail = format!("CREATE TABLE {prefix}trail (n INT AUTO_INCREMENT PRIMARY KEY);");
        database.run(trail + &triggers).await;

        let draft = claim();
        applied(&store, &id(1), None, &draft).await;
        let swap = store.swap(&id(1), None, &claim()).await;
        assert!(matches!(swap, Ok(Swap::Refused(_))), "{swap:?}");
        let ending = completion(&draft, vec![]);
        let swap = store.swap(&id(1), Some(Version::random()), &ending).await;
        assert!(matches!(swap, Ok(Swap::Refused(_))), "{swap:?}");
        let stamp = applied(&store, &id(1), Some(draft.version), &ending).await;
        let Ok(Swap::Refused(replay)) = store.swap(&id(1), None, &claim()).await else {
            panic!("it is done")
        };
        let found = store.load(&id(1)).await.expect("a look is answered");
        assert_eq!(replay.record, found.record, "what is remembered stands");
        let found = found.record.expect("it stands");
        assert_eq!(
            (stamp.version, stamp.token, stamp.lease_end, stamp.expires),
            (found.version, found.token, found.lease_end, found.expires)
        );
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_locked_record_is_replayed_at_once_and_a_write_of_it_is_busy() {
    let database = MariaDb::new().await;
    let builder = database.builder().answer_timeout(Duration::from_secs(2));
    let store = builder.connect(&database.url).await;
    let store = store.expect("the server answers");
    let draft = claim();
    applied(&store, &id(1), None, &draft).await;
    let mut side = side(&database.url).await;
    let lock = format!(
        "START TRANSACTION; SELECT id FROM {}records FOR UPDATE",
        database.prefix
    );
    run(&mut side, lock).await;

    let duplicate = store.swap(&id(1), None, &claim()).await;
    assert!(matches!(duplicate, Ok(Swap::Refused(_))), "{duplicate:?}");
    let began = Instant::now();
    let ending = completion(&draft, vec![]);
    let ended = store.swap(&id(1), Some(draft.version), &ending).await;
    assert_eq!(kind(ended), StoreErrorKind::Busy);
    assert!(began.elapsed() < Duration::from_secs(10));

    run(&mut side, "COMMIT".to_owned()).await;
    applied(&store, &id(1), Some(draft.version), &ending).await;
}

/// The server gives up by itself. Else it would wait on, in a connection that the store has left.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_look_at_a_locked_table_is_busy() {
    let database = MariaDb::new().await;
    let builder = database.builder().answer_timeout(Duration::from_secs(3));
    let store = builder.connect(&database.url).await;
    let store = store.expect("the server answers");
    let mut side = side(&database.url).await;
    let statement = format!("LOCK TABLES {}records WRITE", database.prefix);
    run(&mut side, statement).await;

    assert_eq!(kind(store.load(&id(1)).await), StoreErrorKind::Busy);

    run(&mut side, "UNLOCK TABLES".to_owned()).await;
    assert!(store.load(&id(1)).await.is_ok());
}

/// It goes by what stands when its turn comes, and not by what stood when it was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_write_that_waited_for_another_one_is_refused() {
    for database in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let (store, prefix) = (database.store().await, &database.prefix);
        let mut side = side(&database.url).await;
        // A store that knows the record says less. Another store lets the server show it.
        for (number, writer) in [(1, &store), (2, &database.store().await)] {
            let draft = claim();
            applied(&store, &id(number), None, &draft).await;
            let other: u128 = rand::random();
            let write = format!(
                "START TRANSACTION; UPDATE {prefix}records SET version = x'{:032x}' WHERE id = x'{}'",
                other,
                id(number).to_hex()
            );
            run(&mut side, write).await;
            let ending = completion(&draft, vec![]);
            let (writer, seen) = (Arc::clone(writer), draft.version);
            let writing =
                tokio::spawn(async move { writer.swap(&id(number), Some(seen), &ending).await });
            let waits = format!(
                "SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.INNODB_TRX
                 WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%{prefix}records%'"
            );
            let mut observer = super::side(&database.url).await;
            let is_waiting = async {
                while text(&mut observer, waits.clone(), 0).await == "0" {
                    // The server repeats its last answer if it is asked more often than every tenth
                    // of a second.
                    tokio::time::sleep(Duration::from_millis(150)).await;
                }
            };
            in_time(is_waiting).await;

            run(&mut side, "COMMIT".to_owned()).await;

            let swap = in_time(writing).await.expect("no panic");
            let Ok(Swap::Refused(snapshot)) = swap else {
                panic!("it was written over: {swap:?}")
            };
            let stands = snapshot.record.map(|record| record.version);
            assert_eq!(stands, Some(Version::from_u128(other)));
        }
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn only_a_claim_writes_what_a_purge_goes_by() {
    for database in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let purge_from = format!(
            "SELECT CAST(purge_from AS CHAR) FROM {}records",
            database.prefix
        );
        let purge_from = async || {
            let said = text(&mut side(&database.url).await, purge_from.clone(), 0).await;
            said.parse().expect("a number")
        };
        what_a_purge_goes_by_stays(&database, purge_from).await;
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f19_a_purge_leaves_alone_what_somebody_has_locked() {
    let database = MariaDb::new().await;
    let store = database.store().await;
    for number in 0..5 {
        expired(&*store, number).await;
    }
    let mut side = side(&database.url).await;
    let lock = format!(
        "START TRANSACTION; SELECT id FROM {}records WHERE id = x'{}' FOR UPDATE",
        database.prefix,
        id(2).to_hex()
    );
    run(&mut side, lock).await;

    let purged = store.purge(10, Duration::ZERO).await;
    assert_eq!(purged, Ok(4), "it does not wait");
    run(&mut side, "COMMIT".to_owned()).await;
    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(1));
}

/// A trigger refuses the purge here. A foreign key or a limit on the time of statements does it,
/// too.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_that_fails_keeps_no_lock() {
    let database = MariaDb::new().await;
    let (store, prefix) = (database.store().await, &database.prefix);
    expired(&*store, 1).await;
    let guard = format!(
        "CREATE TRIGGER {prefix}guard BEFORE DELETE ON {prefix}records FOR EACH ROW
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'records are kept'"
    );
    database.run(guard).await;

    let purged = store.purge(10, Duration::ZERO).await;

    assert_eq!(kind(purged), StoreErrorKind::Other);
    // This fails if another session still holds the lock.
    let lock = format!("SELECT id FROM {prefix}records FOR UPDATE NOWAIT");
    database.run(lock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_16_no_heartbeat_waits_for_a_record_of_another() {
    for database in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let store = database.store().await;
        let lock = async |id: &RecordId| {
            let (mut side, id) = (side(&database.url).await, id.to_hex());
            let of = &database.prefix;
            let lock = format!(
                "START TRANSACTION; SELECT id FROM {of}records WHERE id = x'{id}' FOR UPDATE"
            );
            run(&mut side, lock).await;
            side
        };
        let unlock = async |side: &mut MySqlConnection| run(side, "COMMIT".to_owned()).await;
        in_time(heartbeats_pass_a_locked_record(&*store, lock, unlock)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_16_a_heartbeat_that_the_server_refuses_fails_alone() {
    for database in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let store = database.store().await;
        let refuse = async |id: &RecordId| {
            let (of, id) = (&database.prefix, id.to_hex());
            let guard = format!(
                "CREATE TRIGGER {of}guard BEFORE UPDATE ON {of}records FOR EACH ROW
                     IF OLD.id = x'{id}' THEN
                         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'it stays';
                     END IF"
            );
            database.run(guard).await;
        };
        in_time(one_refused_record_fails_alone(&*store, refuse)).await;
    }
}

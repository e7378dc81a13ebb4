//! Connections, shared and own.

use idempotent_runtime::{Error, Idempotency};

use super::*;
use crate::{answers::failed_as, harness::runtime_here};

#[tokio::test]
async fn what_is_in_memory_is_shared_by_clones_and_heartbeats_and_nobody_else() {
    let store = SqliteStore::in_memory().await.expect("memory opens");
    let stranger = SqliteStore::in_memory().await.expect("memory opens");
    assert!(is_applied(store.swap(&ID, None, &claim()).await));

    let heartbeats = of_heartbeats(&store).await;
    assert!(stands(&*heartbeats).await);
    assert!(stands(&store.clone()).await);
    assert!(!stands(&stranger).await);
    drop(store);
    assert!(stands(&*heartbeats).await);

    let private = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(SqliteConnectOptions::new())
        .await
        .expect("memory opens");
    let own = SqliteStore::new(private).for_heartbeats().await;
    assert!(own.expect("is answered").is_none());
}

/// The future that has the store's one connection is never polled again, as when user code blocks
/// its runtime.
#[tokio::test]
async fn a_blocked_caller_does_not_keep_heartbeats_from_the_file() {
    let folder = folder();
    let (_, store, draft) = claimed(&folder).await;
    let mut context = Context::from_waker(Waker::noop());
    // A look that is answered by its first poll holds nothing.
    let blocked = loop {
        let mut load = store.load(&ID);
        if load.as_mut().poll(&mut context).is_pending() {
            break load;
        }
    };

    let heartbeats = of_heartbeats(&store).await;
    let beat = std::thread::spawn(move || {
        let (runtime, beat) = (runtime_here(), heartbeat(&draft));
        runtime.block_on(heartbeats.swap(&ID, Some(draft.version), &beat))
    });
    assert!(is_applied(beat.join().expect("the thread ends")));
    assert!(blocked.await.expect("a look is answered").record.is_some());
}

/// A second connection would find the file locked for ever, and the lease of every long call would
/// end.
#[tokio::test]
async fn heartbeats_share_the_pool_that_keeps_everybody_else_from_the_file() {
    let folder = folder();
    let options = |name: &str| {
        SqliteConnectOptions::new()
            .filename(folder.path().join(name))
            .create_if_missing(true)
    };
    let alone = || SqlitePoolOptions::new().max_connections(1);
    let exclusive = options("options").locking_mode(SqliteLockingMode::Exclusive);
    let in_wal = options("wal")
        .locking_mode(SqliteLockingMode::Exclusive)
        .journal_mode(SqliteJournalMode::Wal);
    let by_hook = alone().after_connect(|connection, _| {
        Box::pin(async { run_on(connection, "PRAGMA locking_mode = EXCLUSIVE").await })
    });
    for pool in [
        alone().connect_with(exclusive).await,
        alone().connect_with(in_wal).await,
        by_hook.connect_with(options("hook")).await,
    ] {
        let pool = pool.expect("the file opens");
        let store = SqliteStore::new(pool);
        store.migrate().await.expect("nobody else has it");
        assert!(is_applied(store.swap(&ID, None, &claim()).await));

        let asking = tokio::time::timeout(Duration::from_secs(4), store.for_heartbeats());

        let own = asking.await.expect("long before a lease ends");
        assert!(own.expect("it is answered").is_none());
        assert!(stands(&store).await);
    }
}

async fn run_on(connection: &mut SqliteConnection, statement: &'static str) -> sqlx::Result<()> {
    connection.execute(statement).await.map(drop)
}

/// The file comes free again. Heartbeats that were given the pool meanwhile would share it for as
/// long as anything is held.
#[tokio::test]
async fn heartbeats_have_a_connection_of_their_own_also_where_the_file_is_locked_for_a_moment() {
    let folder = folder();
    let path = folder.path().join("records.db");
    // The journal is no WAL: in a WAL no reader has to wait.
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .busy_timeout(Duration::from_millis(1));
    let pool = SqlitePool::connect_with(options).await;
    let store = SqliteStore::new(pool.expect("the file opens"));
    store.migrate().await.expect("nobody else has it");
    let mut other = side(&path).await;
    run(&mut other, "BEGIN EXCLUSIVE").await;
    let asking = tokio::spawn(async move { store.for_heartbeats().await.map(|own| own.is_some()) });
    // Time for it to find the lock. If it does not, the test says less, and nothing that is wrong.
    tokio::time::sleep(Duration::from_millis(100)).await;

    run(&mut other, "COMMIT").await;

    assert_eq!(asking.await.expect("no panic"), Ok(true));
}

/// The tables are where only the connections of the pool look, as in a file whose key they are
/// given when they are made.
#[tokio::test]
async fn heartbeats_that_do_not_find_the_table_share_the_pool() {
    let folder = folder();
    let (path, _) = opened(&folder).await;
    let attach = format!("ATTACH '{}' AS attached", path.display());
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .after_connect(move |connection, _| {
            let attach = AssertSqlSafe(attach.clone());
            Box::pin(async move { connection.execute(attach).await.map(drop) })
        });
    let other = SqliteConnectOptions::new()
        .filename(folder.path().join("other.db"))
        .create_if_missing(true);
    let store = SqliteStore::new(pool.connect_with(other).await.expect("the files open"));
    assert!(is_applied(store.swap(&ID, None, &claim()).await));

    let own = store.for_heartbeats().await;

    assert_eq!(kind(own), Some(StoreErrorKind::Schema));
}

/// A write there is answered, and lost when the application rolls back the transaction that it
/// forgot.
#[tokio::test]
async fn a_transaction_that_the_application_left_open_in_the_pool_runs_no_body() {
    let folder = folder();
    let pool = pool(&folder.path().join("records.db")).await;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("the file is new");
    let idem = Idempotency::new(store);
    let call = || {
        let call = idem.call("sqlite.left_open").key("k");
        call.run(|_| async { Ok::<_, Error>(7) })
    };
    for (begin, end) in [("BEGIN", "ROLLBACK"), ("SAVEPOINT s", "RELEASE s")] {
        run_in(&pool, begin).await;

        let refused = call().await;

        let configuration = StoreErrorKind::Configuration;
        assert!(failed_as(&refused, configuration), "{refused:?}");
        run_in(&pool, end).await;
    }
    assert_eq!(call().await, Ok(7));
}

/// As in a loop that takes its calls from a buffered stream, and makes another call before it asks
/// for the next one.
#[tokio::test]
async fn calls_that_nobody_polls_keep_no_other_one_from_the_file() {
    let folder = folder();
    let idem = Idempotency::new(opened(&folder).await.1);
    let call = |key: usize| {
        let call = idem.call("sqlite.buffered").key(&key);
        Box::pin(call.run(move |_| async move { Ok::<_, Error>(key) }))
    };
    let mut buffered: Vec<_> = (0..8).map(call).collect();
    let mut context = Context::from_waker(Waker::noop());
    for call in &mut buffered {
        assert!(call.as_mut().poll(&mut context).is_pending());
    }

    for key in 8..10 {
        let beside = tokio::time::timeout(Duration::from_secs(10), call(key)).await;
        assert_eq!(beside.expect("in time"), Ok(key));
    }

    for (key, call) in buffered.into_iter().enumerate() {
        assert_eq!(call.await, Ok(key));
    }
}

/// As in a loop that waits for a purge and for messages, and handles a message.
#[tokio::test]
async fn a_purge_that_nobody_polls_keeps_no_call_from_the_file() {
    let folder = folder();
    let idem = Idempotency::new(opened(&folder).await.1);
    let mut purging = Box::pin(idem.purge());
    let mut context = Context::from_waker(Waker::noop());
    assert!(purging.as_mut().poll(&mut context).is_pending());

    let call = idem.call("sqlite.beside").key("k");
    let call = call.run(|_| async { Ok::<_, Error>(7) });
    let beside = tokio::time::timeout(Duration::from_secs(10), call).await;

    assert_eq!(beside.expect("in time"), Ok(7));
    assert_eq!(purging.await.ok(), Some(0));
}

/// A future of the store may be dropped at any await: what it asked for is applied whole or not at
/// all, and the next caller finds a working connection.
#[tokio::test]
async fn c05_a_dropped_call_leaves_a_working_store() {
    let folder = folder();
    let path = folder.path().join("records.db");
    for pooled in [false, true] {
        let store = if pooled {
            SqliteStore::new(pool(&path).await)
        } else {
            SqliteStore::open(&path).await.expect("the file opens")
        };
        for polls in 0..12_u8 {
            let id = RecordId::from_bytes([100 * u8::from(pooled) + polls; 32]);
            let draft = claim();
            {
                let mut swap = pin!(store.swap(&id, None, &draft));
                for _ in 0..polls {
                    let mut context = Context::from_waker(Waker::noop());
                    if swap.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            match store
                .swap(&id, None, &draft)
                .await
                .expect("the connection works")
            {
                Swap::Applied(_) => {}
                Swap::Refused(snapshot) => {
                    let record = snapshot.record.expect("what was applied stands");
                    assert_eq!(record.attempt_id, draft.attempt_id);
                }
            }
        }
    }
}

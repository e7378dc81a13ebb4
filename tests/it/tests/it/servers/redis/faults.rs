//! Servers that refuse, starve, hang, or are something else: a typed error each, within the limits.

use std::{
    error::Error as _,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use idempotent_runtime::{
    Error, Idempotency, OnCrash,
    identity::RecordId,
    store::{RedisStore, Store, StoreErrorKind},
};
use tokio::{io::AsyncWriteExt, net::TcpListener, task::JoinSet};

use super::private::{Private, charge, kind};
use crate::{
    answers::is_not_replayable,
    harness::{in_time, only},
    servers::{
        crowds::{Callers, all_are_answered_by_the_first, looks_are_few},
        spare::Ending,
    },
};

const ID: RecordId = RecordId::from_bytes([7; 32]);

fn key() -> String {
    format!("idempotent:{}", ID.to_hex())
}

/// A call that is refused by the store, and whose body does not run.
async fn refused(idem: &Idempotency) -> StoreErrorKind {
    let runs = AtomicU32::new(0);
    let answer = charge(idem, OnCrash::Rerun, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    match answer {
        Err(Error::Store(error)) => error.kind(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_wrong_password_and_no_password_are_configuration() {
    let server = Private::new().await;
    server.tell("ACL SETUSER app on >s3cret +@all ~* &*").await;
    server.tell("ACL SETUSER default off").await;
    let with = |query: &str| format!("{}?{query}", server.url());

    for query in ["user=app&pass=gu3ss", "user=nobody&pass=s3cret", "db=0"] {
        let answer = RedisStore::connect(&with(query)).await;
        let error = answer.expect_err(query);
        assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error:?}");
        let said = format!("{error} {error:?} {:?}", error.source());
        assert!(
            !said.contains("gu3ss") && !said.contains("s3cret"),
            "{said}"
        );
    }
    let right = RedisStore::connect(&with("user=app&pass=s3cret")).await;
    assert!(right.is_ok(), "{right:?}");
    assert!(!format!("{right:?}").contains("s3cret"), "{right:?}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_user_without_permission_is_denied() {
    let server = Private::new().await;
    server
        .tell("ACL SETUSER reader on >pass +@read +@connection +@scripting +info +time ~* &*")
        .await;
    server
        .tell("ACL SETUSER elsewhere on >pass +@all ~other:* &*")
        .await;
    for user in ["reader", "elsewhere"] {
        let url = format!("{}?user={user}&pass=pass", server.url());
        let store = RedisStore::connect(&url).await.expect("it may connect");
        let idem = Idempotency::new(store);
        assert_eq!(refused(&idem).await, StoreErrorKind::Denied, "{user}");
    }
    let left: u64 = server.ask("DBSIZE").await;
    assert_eq!(left, 0, "nothing was written");
}

/// A client that may not look at the server's settings can still claim by lease.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_whose_operator_took_a_command_away_is_used_without_it() {
    let server = Private::with(&["--rename-command", "INFO", ""]).await;
    assert_eq!(kind(server.strict().await), Some(StoreErrorKind::Denied));

    let idem = Idempotency::new(server.store().await);
    let runs = AtomicU32::new(0);
    for _ in 0..2 {
        assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn the_permissions_of_the_manual_are_enough() {
    let server = Private::new().await;
    let rules = "ACL SETUSER app on >pass +@read +@write +@scripting +@connection +@pubsub +time +info ~idempotent:* &idempotent:moved";
    server.tell(rules).await;
    let url = format!("{}?user=app&pass=pass", server.url());
    let store = RedisStore::connect(&url).await.expect("it may connect");
    let idem = Idempotency::new(store.clone());
    let runs = AtomicU32::new(0);
    for _ in 0..2 {
        assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    }
    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(0));
    let (id, record) = only(&store).await;
    let waits = store.wait(&id, record.version, Duration::from_millis(50));
    assert_eq!(waits.await, Ok(()));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_without_memory_is_full_and_writes_nothing() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    server.tell("CONFIG SET maxmemory 1").await;
    assert_eq!(refused(&idem).await, StoreErrorKind::Full);
    let left: u64 = server.ask("DBSIZE").await;
    assert_eq!(left, 0);

    server.tell("CONFIG SET maxmemory 0").await;
    let runs = AtomicU32::new(0);
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    // The records that stand can still be read.
    server.tell("CONFIG SET maxmemory 1").await;
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
}

/// The server hangs up in the middle of the write, which looks like an outage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn an_outcome_that_is_too_long_for_the_server_is_recorded_as_happened() {
    let server = Private::new().await;
    server.tell("CONFIG SET proto-max-bulk-len 1048576").await;
    let short = Idempotency::builder(server.store().await).lease("1s");
    let idem = short.build().expect("a handle");
    let runs = AtomicU32::new(0);
    let print = || {
        idem.call("redis.print").key("k").run(async |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Error>("long".repeat(1 << 20))
        })
    };
    assert_eq!(print().await.map(|text| text.len()), Ok(4 << 20));

    let duplicate = print().await.map(|text| text.len());

    assert!(is_not_replayable(&duplicate), "{duplicate:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// A waiter is not noted there, so it is not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_hundred_who_wait_at_a_server_without_memory_look_rarely() {
    let server = Private::new().await;
    let callers = async || Callers::over(Idempotency::new(server.store().await));
    let (holder, waiters) = (callers().await, callers().await);
    let mut running = JoinSet::new();
    running.spawn(holder.clone().call("k".into()));
    holder.gate.arrived(1).await;
    server.tell("CONFIG SET maxmemory 1").await;
    for _ in 0..100 {
        running.spawn(waiters.clone().call("k".into()));
    }
    looks_are_few(async || server.ran("evalsha").await).await;
    server.tell("CONFIG SET maxmemory 0").await;
    holder.gate.open();

    all_are_answered_by_the_first(running).await;
    assert_eq!(waiters.runs(), 0);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_takes_no_more_clients_may_be_tried_again() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    server.tell("CONFIG SET maxclients 1").await;
    server.tell("CLIENT KILL TYPE normal SKIPME yes").await;
    let another = kind(RedisStore::connect(&server.url()).await);
    assert_eq!(another, Some(StoreErrorKind::Unavailable));
    assert_eq!(refused(&idem).await, StoreErrorKind::Unavailable);

    server.tell("CONFIG SET maxclients 100").await;
    let runs = AtomicU32::new(0);
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_is_no_record_is_corrupt() {
    let server = Private::new().await;
    let store = server.store().await;
    for damage in [
        format!("SET {} text", key()),
        format!("HSET {} version short", key()),
        format!("HSET {} state 9", key()),
        format!("HSET {} lease_end soon", key()),
    ] {
        server.tell("FLUSHALL").await;
        server.tell(&format!("HSET {} version 0123456789abcdef operation o scope s call_key k fingerprint 01234567890123456789012345678901 digests 1 state 1 token 1 attempt 1 attempt_id 0123456789abcdef holder h on_crash 1 lease_end 1 created 1 expires 1", key())).await;
        server.tell(&damage).await;
        let answer = store.load(&ID).await;
        assert_eq!(kind(answer), Some(StoreErrorKind::Corrupt), "{damage}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_primary_that_became_a_replica_may_be_tried_again() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    server.tell("REPLICAOF 127.0.0.1 1").await;
    assert_eq!(refused(&idem).await, StoreErrorKind::Unavailable);
    server.tell("REPLICAOF NO ONE").await;
    let charged = charge(&idem, OnCrash::Rerun, &AtomicU32::new(0)).await;
    assert_eq!(charged, Ok(1));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn e16_a_server_that_is_killed_has_kept_what_it_answered() {
    let mut server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    let runs = AtomicU32::new(0);
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    server.restart(Ending::Killed).await;
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_hangs_is_unavailable_within_the_limit() {
    let server = Private::new().await;
    let store = server
        .builder()
        .connect_timeout(Duration::from_millis(300))
        .answer_timeout(Duration::from_millis(300))
        .connect(&server.url())
        .await
        .expect("the server answers");
    server.tell("CLIENT PAUSE 2000 ALL").await;
    let began = Instant::now();
    for _ in 0..2 {
        let answer = store.load(&ID).await;
        assert_eq!(kind(answer), Some(StoreErrorKind::Unavailable));
    }
    let took = began.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
    let answered = async { while kind(store.load(&ID).await).is_some() {} };
    in_time(answered).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn nobody_silence_and_another_server_are_told_apart() {
    let quick = || RedisStore::builder().connect_timeout(Duration::from_millis(300));
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = nobody.local_addr().expect("an address");
    let url = format!("redis://{address}");

    let began = Instant::now();
    let answer = quick().connect(&url).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Unavailable), "silence");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");

    let other = tokio::spawn(async move {
        while let Ok((mut client, _)) = nobody.accept().await {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let told = kind(quick().connect(&url).await);
    assert_eq!(told, Some(StoreErrorKind::Configuration), "another server");
    other.abort();
    let _ = other.await;
    let answer = quick().connect(&url).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Unavailable), "nobody");

    for url in [
        "",
        "localhost",
        "postgres://localhost",
        "redis://",
        "redis://localhost/x",
    ] {
        let answer = quick().connect(url).await;
        assert_eq!(kind(answer), Some(StoreErrorKind::Configuration), "{url}");
    }
    for prefix in ["", "{a}", "a*"] {
        let made = quick()
            .key_prefix(prefix)
            .connect("redis://localhost")
            .await;
        assert_eq!(kind(made), Some(StoreErrorKind::Configuration), "{prefix}");
    }
}

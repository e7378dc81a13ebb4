//! The requests of a call to the server.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{Error, Idempotency, OnCrash};

use super::private::{Private, charge};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_first_call_is_two_commands_and_a_replay_one() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    // A server is given each script once, when it is first called for.
    for _ in 0..2 {
        let warm = idem.call("warm").key("k");
        assert_eq!(warm.run(|_| async { Ok::<_, Error>(0) }).await, Ok(0));
    }
    server.tell("CONFIG RESETSTAT").await;

    let runs = AtomicU32::new(0);
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    assert_eq!(server.ran("evalsha").await, 2);
    assert_eq!(server.ran("hmget").await, 2, "one in each script");
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    assert_eq!(server.ran("evalsha").await, 2);
    assert_eq!(server.ran("hmget").await, 3);

    // Another process knows nothing of the record: it claims, and is refused.
    let elsewhere = Idempotency::new(server.store().await);
    assert_eq!(charge(&elsewhere, OnCrash::Rerun, &runs).await, Ok(1));
    assert_eq!(server.ran("evalsha").await, 3);

    // Nothing else was asked, and nothing is told if no call waits for it.
    for other in ["eval", "script|load", "publish", "ping"] {
        assert_eq!(server.ran(other).await, 0, "{other}");
    }
    assert_eq!(server.ran("hset").await, 2, "a replay writes nothing");
    assert_eq!(server.ran("pexpireat").await, 1);
}

/// A connection of the application's may answer plain reads by itself.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn over_a_connection_of_the_applications_nothing_but_scripts_is_sent() {
    let server = Private::new().await;
    let client = redis::Client::open(server.url()).expect("a URL");
    let manager = client.get_connection_manager().await.expect("a connection");
    let store = server.builder().connection(manager).await;
    let idem = Idempotency::new(store.expect("the server answers"));
    server.tell("CONFIG RESETSTAT").await;
    let runs = AtomicU32::new(0);
    for _ in 0..3 {
        assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    }
    let scripts = server.ran("evalsha").await;
    assert!(scripts >= 4, "{scripts}");
    assert_eq!(server.ran("hmget").await, 4, "one in each that ran");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    let runs = AtomicU32::new(0);
    server.tell("SCRIPT FLUSH").await;
    let answer = idem
        .call("charge")
        .key("k")
        .run(|_| async {
            server.tell("SCRIPT FLUSH").await;
            Ok::<_, Error>(runs.fetch_add(1, Ordering::SeqCst) + 1)
        })
        .await;
    assert_eq!(answer, Ok(1));
    server.tell("SCRIPT FLUSH").await;
    assert_eq!(charge(&idem, OnCrash::Rerun, &runs).await, Ok(1));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// People read records with `HGETALL`: the names are a promise.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_record_can_be_read() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    let charged = charge(&idem, OnCrash::Rerun, &AtomicU32::new(0)).await;
    assert_eq!(charged, Ok(1));
    let key = server.key().await;
    for (field, expected) in [
        ("operation", "charge"),
        ("state", "2"),
        ("attempt", "1"),
        ("outcome", "1"),
    ] {
        let found: String = server.ask(&format!("HGET {key} {field}")).await;
        assert_eq!(found, expected, "{field}");
    }
}

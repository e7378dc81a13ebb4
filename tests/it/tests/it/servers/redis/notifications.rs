//! Waiters in another process are told, and look by themselves if they are not.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, InFlight,
    identity::RecordId,
    record::Version,
    store::{RedisStore, Store, StoreError},
    testing::Gate,
};
use tokio::task::JoinHandle;

use super::private::Private;
use crate::harness::{abandoned, applied, claim, completion, heartbeat, in_time};

const ID: RecordId = RecordId::from_bytes([1; 32]);
const OTHER: RecordId = RecordId::from_bytes([2; 32]);

struct Pair {
    gate: Gate,
    holder: JoinHandle<Result<u32, Error>>,
    waiter: JoinHandle<Result<u32, Error>>,
}

impl Pair {
    /// One process runs the call, and another waits for it.
    async fn of(holder: RedisStore, waiter: RedisStore) -> Self {
        let gate = Gate::new();
        let call = |store| {
            let (idem, gate) = (Idempotency::new(store), gate.clone());
            tokio::spawn(async move {
                let call = idem.call("charge").key("k");
                let call = call.in_flight(InFlight::Wait(Duration::from_secs(50)));
                call.run(|_| async {
                    gate.pass().await;
                    Ok(1)
                })
                .await
            })
        };
        let holder = call(holder);
        gate.arrived(1).await;
        let waiter = call(waiter);
        Self {
            gate,
            holder,
            waiter,
        }
    }

    async fn end(self) {
        self.gate.open();
        let ended = async { (self.holder.await, self.waiter.await) };
        let (holder, waiter) = in_time(ended).await;
        let (holder, waiter) = (holder.expect("no panic"), waiter.expect("no panic"));
        assert_eq!((holder, waiter), (Ok(1), Ok(1)));
    }
}

async fn listeners(server: &Private, expected: u64) {
    let heard = async {
        loop {
            let (_, count): (String, u64) = server.ask("PUBSUB NUMSUB idempotent:moved").await;
            // Our own hello comes back once it was published.
            if count == expected && server.ran("publish").await >= expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(heard).await;
}

/// Whether the only record notes a waiter.
async fn is_marked(server: &Private) -> bool {
    let key = server.key().await;
    server.ask(&format!("HEXISTS {key} waited")).await
}

/// A process that waits for a record, and has begun to.
async fn waits(
    server: &Private,
    store: RedisStore,
    seen: Version,
) -> JoinHandle<Result<(), StoreError>> {
    const HOUR: Duration = Duration::from_secs(3600);
    let waiter = tokio::spawn(async move { store.wait(&ID, seen, HOUR).await });
    listeners(server, 1).await;
    while !is_marked(server).await {
        tokio::task::yield_now().await;
    }
    waiter
}

/// A server of the test's own, and a pair over it, of which one listens.
async fn listening() -> (Private, Pair) {
    let server = Private::new().await;
    let pair = Pair::of(server.store().await, server.store().await).await;
    listeners(&server, 1).await;
    (server, pair)
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_waiter_is_told_by_one_publication() {
    let (server, pair) = listening().await;
    let before = server.ran("publish").await;
    pair.end().await;
    assert_eq!(server.ran("publish").await - before, 1);
    assert!(!is_marked(&server).await, "who waits next says so again");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_waiter_is_told_of_a_holder_that_was_dropped() {
    let (server, pair) = listening().await;
    let before = server.ran("publish").await;

    pair.holder.abort();

    in_time(pair.gate.arrived(2)).await;
    assert_eq!(server.ran("publish").await - before, 1);
    pair.gate.open();
    assert_eq!(pair.waiter.await.expect("no panic"), Ok(1));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_waiter_is_told_of_a_purge() {
    let server = Private::new().await;
    let (store, other) = (server.store().await, server.store().await);
    let gone = abandoned();
    applied(&store, &ID, None, &gone).await;
    let waiter = waits(&server, other, gone.version).await;
    applied(&store, &OTHER, None, &abandoned()).await;
    let before = server.ran("publish").await;

    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(2));

    let waited = in_time(waiter).await;
    assert_eq!(waited.expect("no panic"), Ok(()));
    assert_eq!(server.ran("publish").await - before, 1);
}

/// A heartbeat ends nothing: no waiter is told, and none needs to be noted again.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_heartbeat_is_told_nobody_and_leaves_the_mark() {
    let server = Private::new().await;
    let (store, other) = (server.store().await, server.store().await);
    let first = claim();
    applied(&store, &ID, None, &first).await;
    let waiter = waits(&server, other, first.version).await;
    let before = server.ran("publish").await;
    let beat = heartbeat(&first);

    applied(&store, &ID, Some(first.version), &beat).await;

    assert_eq!(server.ran("publish").await, before);
    assert!(is_marked(&server).await);
    let done = completion(&beat, Vec::new());
    applied(&store, &ID, Some(beat.version), &done).await;
    assert_eq!(server.ran("publish").await - before, 1);
    let waited = in_time(waiter).await;
    assert_eq!(waited.expect("no panic"), Ok(()));
}

/// Otherwise a mark would stand there without a record, for ever.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn who_waits_for_what_is_gone_leaves_no_mark() {
    let server = Private::new().await;
    let store = server.store().await;
    let hour = Duration::from_secs(3600);
    let gone = async || {
        let wait = store.wait(&ID, Version::random(), hour);
        assert_eq!(in_time(wait).await, Ok(()));
    };

    gone().await;

    assert_eq!(server.ask::<u64>("DBSIZE").await, 0);
    applied(&store, &ID, None, &claim()).await;

    gone().await;

    assert!(!is_marked(&server).await);
}

/// A write stands and is answered so, whether or not the client may tell the waiters.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn who_may_not_tell_writes_and_purges() {
    let server = Private::new().await;
    server
        .tell("ACL SETUSER mute on >pass +@all ~* resetchannels")
        .await;
    let url = format!("{}?user=mute&pass=pass", server.url());
    let store = RedisStore::connect(&url).await.expect("it may connect");
    let first = abandoned();
    applied(&store, &ID, None, &first).await;
    let mark = format!("HSET {} waited 1", server.key().await);
    server.tell(&mark).await;

    applied(&store, &ID, Some(first.version), &heartbeat(&first)).await;

    server.tell(&mark).await;
    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(1));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_waiter_whose_listener_is_killed_is_answered() {
    let (server, pair) = listening().await;
    server.tell("CLIENT KILL TYPE pubsub").await;
    pair.end().await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_waiter_who_may_not_listen_is_answered() {
    let server = Private::new().await;
    server
        .tell("ACL SETUSER deaf on >pass +@all ~* resetchannels")
        .await;
    let url = format!("{}?user=deaf&pass=pass", server.url());
    let connect = || async { RedisStore::connect(&url).await.expect("it may connect") };
    Pair::of(connect().await, connect().await).await.end().await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_of_the_applications_is_the_only_one() {
    let server = Private::new().await;
    let client = redis::Client::open(server.url()).expect("a URL");
    let bare = async || {
        let manager = client.get_connection_manager().await.expect("a connection");
        let made = RedisStore::builder().connection(manager).await;
        made.expect("the server answers")
    };
    let own = bare().await.for_heartbeats().await;
    assert!(own.expect("an answer").is_none());
    Pair::of(bare().await, bare().await).await.end().await;
    let listening: Vec<String> = server.ask("PUBSUB CHANNELS").await;
    assert_eq!(listening, [""; 0]);

    let own = RedisStore::builder().client(client.clone()).await;
    let own = own.expect("the server answers");
    assert!(own.for_heartbeats().await.expect("an answer").is_some());
}

//! Waiters in another process are told of the end of their wait, and of nothing else.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use idempotent_runtime::{
    identity::RecordId,
    record::{Draft, Moment, Version},
    store::{PostgresStore, Store, StoreError},
    testing::{Disconnect, Proxy, conformance::StoreUnderTest},
};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::task::JoinHandle;

use super::{Postgres, run, side};
use crate::{
    harness::{applied, claim, completion, heartbeat, in_time},
    servers::Server as _,
};

const HOUR: Duration = Duration::from_secs(3600);
const WAITED_FOR: RecordId = RecordId::from_bytes([1; 32]);
const OTHER: RecordId = RecordId::from_bytes([2; 32]);

/// The server's notifications about the records of one table.
struct Told {
    listener: PgListener,
    channel: String,
}

impl Told {
    async fn of(server: &Postgres) -> Self {
        let mut listener = PgListener::connect(&server.url).await.expect("a listener");
        let channel = format!("{}moved", server.prefix);
        listener.listen(&channel).await.expect("it listens");
        Self { listener, channel }
    }

    /// All that was told until now.
    async fn so_far(&mut self) -> Vec<String> {
        const END: &str = "end";
        let end = sqlx::query("SELECT pg_notify($1, $2)")
            .bind(&self.channel)
            .bind(END);
        end.execute(&mut self.listener).await.expect("it is told");
        let mut told = Vec::new();
        loop {
            match self.next().await {
                last if last == END => return told,
                next => told.push(next),
            }
        }
    }

    async fn next(&mut self) -> String {
        let told = in_time(self.listener.recv()).await;
        let told = told.expect("it still listens");
        told.payload().to_owned()
    }
}

/// A process that waits, and has begun to: it has marked the record, and says that it listens.
async fn waiting(
    server: &Postgres,
    told: &mut Told,
    seen: Version,
) -> JoinHandle<Result<(), StoreError>> {
    let waiter = Arc::new(server.open().await);
    let waiting = tokio::spawn(async move { waiter.wait(&WAITED_FOR, seen, HOUR).await });
    assert_eq!(told.next().await, "hello");
    waiting
}

/// Two records of one holder. A call waits for one of them.
struct Held {
    server: Postgres,
    holder: PostgresStore,
    claims: [(RecordId, Draft); 2],
    told: Told,
    waiting: JoinHandle<Result<(), StoreError>>,
}

async fn held() -> Held {
    let server = Postgres::new().await;
    let (holder, mut told) = (server.open().await, Told::of(&server).await);
    let claims = [OTHER, WAITED_FOR].map(|id| (id, claim()));
    for (id, claim) in &claims {
        applied(&holder, id, None, claim).await;
    }
    let waiting = waiting(&server, &mut told, claims[1].1.version).await;
    Held {
        server,
        holder,
        claims,
        told,
        waiting,
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_completion_is_told_where_somebody_waits() {
    for knows in [true, false] {
        let mut held = held().await;
        if !knows {
            held.holder = held.server.open().await;
        }

        for (id, claim) in &held.claims {
            let done = completion(claim, Vec::new());
            applied(&held.holder, id, Some(claim.version), &done).await;
        }

        let told = held.told.so_far().await;
        assert_eq!(told, [WAITED_FOR.to_hex()], "it knows the claim: {knows}");
        assert_eq!(in_time(held.waiting).await.expect("no panic"), Ok(()));
    }
}

/// A dropped call does this: another one may take over at once. A heartbeat ends nothing.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_lease_that_its_holder_ended_is_told_where_somebody_waits() {
    let mut held = held().await;

    for (id, claim) in &held.claims {
        let beat = heartbeat(claim);
        applied(&held.holder, id, Some(claim.version), &beat).await;
        let stopped = Draft {
            version: Version::random(),
            lease: Moment::In(Duration::ZERO),
            expires: Moment::Keep,
            ..beat.clone()
        };
        applied(&held.holder, id, Some(beat.version), &stopped).await;
    }

    assert_eq!(held.told.so_far().await, [WAITED_FOR.to_hex()]);
    assert_eq!(in_time(held.waiting).await.expect("no panic"), Ok(()));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_is_told_where_somebody_waits() {
    let mut held = held().await;

    held.server.advance(2 * HOUR).await;
    assert_eq!(held.holder.purge(10, Duration::ZERO).await, Ok(2));

    assert_eq!(held.told.so_far().await, [WAITED_FOR.to_hex()]);
    assert_eq!(in_time(held.waiting).await.expect("no panic"), Ok(()));
}

/// A client for which the server has no room left in its queue of notifications, as behind a client
/// that listens in an endless transaction. That queue holds 8 GB, so a function stands in for it.
/// As the server does, it refuses the commit.
async fn no_room_to_tell(server: &Postgres) -> PostgresStore {
    let prefix = &server.prefix;
    let full = format!(
        "CREATE SCHEMA {prefix}queue;
         CREATE FUNCTION {prefix}queue.pg_notify(text, text) RETURNS void LANGUAGE sql AS
             $$ SELECT set_config('{prefix}queue.told', $2, true) $$;
         CREATE FUNCTION {prefix}full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('{prefix}queue.told', true) <> '' THEN
                 RAISE EXCEPTION 'too many notifications' USING ERRCODE = 'program_limit_exceeded';
             END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER {prefix}full AFTER UPDATE OR DELETE ON {prefix}records
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {prefix}full()"
    );
    run(&mut side(&server.url).await, full).await;
    let path = format!("{prefix}queue,public,pg_catalog");
    let options = PgConnectOptions::from_str(&server.url).expect("a URL");
    let pool = PgPoolOptions::new().connect_lazy_with(options.options([("search_path", path)]));
    let builder = PostgresStore::builder().table_prefix(prefix);
    builder.pool(pool).expect("a store")
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_outcome_is_recorded_where_there_is_no_room_to_tell_of_it() {
    for knows in [true, false] {
        let mut held = held().await;
        let holder = no_room_to_tell(&held.server).await;
        let [_, (id, claim)] = &held.claims;
        if knows {
            holder.load(id).await.expect("it is there");
        }

        let done = completion(claim, Vec::new());
        applied(&holder, id, Some(claim.version), &done).await;

        assert!(
            held.told.so_far().await.is_empty(),
            "it knows the claim: {knows}"
        );
        let waited = in_time(held.waiting).await.expect("no panic");
        assert_eq!(waited, Ok(()), "who waits looks, too");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_goes_on_where_there_is_no_room_to_tell_of_it() {
    let mut held = held().await;
    let purger = no_room_to_tell(&held.server).await;

    held.server.advance(2 * HOUR).await;
    assert_eq!(purger.purge(10, Duration::ZERO).await, Ok(2));

    assert!(held.told.so_far().await.is_empty());
    assert_eq!(in_time(held.waiting).await.expect("no panic"), Ok(()));
}

/// This is as behind a firewall that forgot a connection: requests are neither answered nor
/// refused.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_hangs_is_listened_to_anew() {
    let requests = [
        "opening a connection to listen",
        "listening",
        "opening another one to say hello",
        "preparing to say hello",
        "saying hello",
    ];
    let places = (0..).zip(requests);
    let hangs = places.map(|(before, hangs)| tokio::spawn(listens_anew(before, hangs)));
    for hangs in hangs.collect::<Vec<_>>() {
        hangs.await.expect("no panic");
    }
}

/// The server hangs after so many requests of the listener.
async fn listens_anew(before: u64, hangs: &str) {
    const LIMIT: Duration = Duration::from_secs(2);
    let server = Postgres::new().await;
    let (holder, mut told) = (server.open().await, Told::of(&server).await);
    let claim = claim();
    applied(&holder, &WAITED_FOR, None, &claim).await;
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let url = crate::servers::url_at(&server.url, proxy.address());
    let options = PgConnectOptions::from_str(&server.url).expect("a URL");
    let pool = PgPoolOptions::new().connect_lazy_with(options);
    let waiter = PostgresStore::builder()
        .table_prefix(&server.prefix)
        .connect_timeout(LIMIT)
        .answer_timeout(LIMIT)
        .pool(pool.clone());
    let waiter = waiter.expect("a store");
    waiter.load(&WAITED_FOR).await.expect("it is there");
    // From now on new connections lead through the proxy: the two by which it listens.
    pool.set_connect_options(PgConnectOptions::from_str(&url).expect("a URL"));
    proxy.cut_after(before, Disconnect::Silence);
    let seen = claim.version;
    let waiting = tokio::spawn(async move { waiter.wait(&WAITED_FOR, seen, HOUR).await });

    assert_eq!(told.next().await, "hello", "{hangs}");
    if hangs == "saying hello" {
        assert_eq!(told.next().await, "hello", "the first one was not answered");
    }
    let done = completion(&claim, Vec::new());
    applied(&holder, &WAITED_FOR, Some(seen), &done).await;
    assert_eq!(in_time(waiting).await.expect("no panic"), Ok(()));
    assert!(proxy.round_trips() > before, "{hangs}");
}

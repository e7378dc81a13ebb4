//! A waiter is noted in the record, if that can be done at once.

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency,
    store::Store,
    testing::{Fault, FaultyStore, Gate, On, StoreOperation},
};
use sqlx::{AssertSqlSafe, PgConnection};
use tokio::task::JoinSet;

use super::{Postgres, run, side};
use crate::{
    harness::in_time,
    servers::{
        Server as _,
        crowds::{
            Callers, a_hundred_waiters_look_far_fewer_than_a_hundred_times_a_second,
            all_are_answered_by_the_first,
        },
    },
};

/// A server whose disk is full refuses the note. Then no waiter is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_hundred_who_wait_and_cannot_note_it_look_rarely() {
    let server = Postgres::new().await;
    let prefix = &server.prefix;
    let full = format!(
        "CREATE FUNCTION {prefix}full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full';
         END $$;
         CREATE TRIGGER {prefix}full BEFORE UPDATE ON {prefix}records FOR EACH ROW
             WHEN (NEW.waited AND NOT OLD.waited) EXECUTE FUNCTION {prefix}full()"
    );
    run(&mut side(&server.url).await, full).await;
    a_hundred_waiters_look_far_fewer_than_a_hundred_times_a_second(server).await;
}

/// A call that is held, a store of one connection over which a duplicate waits for it, and the
/// session that has locked its record.
struct Locked {
    running: JoinSet<Result<u64, Error>>,
    holder: Callers,
    store: Arc<dyn Store>,
    side: PgConnection,
    prefix: String,
}

impl Locked {
    async fn new() -> Self {
        let server = Postgres::new().await;
        let holder = Callers::over(Idempotency::new(server.at(server.address(), 2).await));
        let store = FaultyStore::new(server.at(server.address(), 1).await);
        let mut running = JoinSet::new();
        running.spawn(holder.clone().call("k".into()));
        holder.gate.arrived(1).await;
        let mut side = side(&server.url).await;
        let lock = format!("BEGIN; SELECT FROM {}records FOR SHARE", server.prefix);
        run(&mut side, lock).await;
        // An open gate holds no call, and counts those that come by.
        let waiting = Gate::new();
        waiting.open();
        store.fault(
            StoreOperation::Wait,
            On::Every,
            Fault::Delay(waiting.clone()),
        );
        let store: Arc<dyn Store> = Arc::new(store);
        let waiter = Callers::over(Idempotency::new(Arc::clone(&store)));
        running.spawn(waiter.call("k".into()));
        in_time(waiting.arrived(1)).await;
        Self {
            running,
            holder,
            store,
            side,
            prefix: server.prefix,
        }
    }

    /// Other calls are answered over the only connection, after the duplicate came by.
    async fn others_are_answered(&self) {
        let idem = Idempotency::new(Arc::clone(&self.store));
        let others = async {
            for key in 0..20 {
                let call = idem.call("charge").key(&key);
                let answer = call.run(|_| async move { Ok::<u32, Error>(key) }).await;
                assert_eq!(answer, Ok(key));
            }
        };
        let answered = tokio::time::timeout(Duration::from_secs(5), others).await;
        answered.expect("other calls do not wait for the lock");
    }

    /// Whether the record notes a waiter.
    async fn is_marked(&mut self) -> bool {
        let marked = format!("SELECT bool_or(waited) FROM {}records", self.prefix);
        let marked = sqlx::query_scalar(AssertSqlSafe(marked));
        marked.fetch_one(&mut self.side).await.expect("an answer")
    }

    async fn is_free(&mut self) {
        run(&mut self.side, "COMMIT".to_owned()).await;
    }

    async fn ends(self) {
        self.holder.gate.open();
        in_time(all_are_answered_by_the_first(self.running)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn who_waits_for_a_record_that_somebody_has_locked_keeps_no_connection() {
    let mut locked = Locked::new().await;

    locked.others_are_answered().await;

    assert!(!locked.is_marked().await, "it is still locked");
    locked.is_free().await;
    locked.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn that_somebody_waits_is_noted_once_nobody_locks_the_record_any_more() {
    let mut locked = Locked::new().await;
    locked.others_are_answered().await;

    locked.is_free().await;

    let noted = async {
        while !locked.is_marked().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // This is sooner than the next heartbeat, after which every waiter begins anew.
    let noted = tokio::time::timeout(Duration::from_secs(5), noted).await;
    noted.expect("it is tried again");
    locked.ends().await;
}

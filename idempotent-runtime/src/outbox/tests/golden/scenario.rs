//! All that an outbox does, in an order that lets no text depend on the time: a relay begins when
//! the messages that it finds are there, and ends when it has done what it is there for.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::sent;
use crate::{
    Idempotency, MemoryStore, Observer,
    outbox::{
        Envelope, Message, OnPoison, Outbox, PublishError, Publisher, RelayBuilder,
        dialect::OutboxDatabase, send::OF_A_KEY,
    },
    store::sealed::Sealed,
};

/// How far the clock is ahead of the database's, in microseconds: three days.
const AHEAD: i64 = 3 * 24 * 60 * 60 * 1_000_000;

/// Stands at the end of a text that the test sends itself.
pub(super) const OF_THE_TEST: &str = " /* of the test */";

pub(super) struct Scenario<DB: OutboxDatabase> {
    pub(super) outbox: Outbox<DB>,
    /// Whether writers notify relays that sleep.
    pub(super) notifies: bool,
}

/// What a publisher does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Confirms,
    /// It takes longer than a third of a lease of three seconds.
    TakesTime,
    /// It keeps the relay from prolonging a lease of three seconds.
    Blocks,
    FailsOnce,
    Rejects,
}

struct Planned {
    plan: Plan,
    was_asked: AtomicBool,
}

impl Publisher for Planned {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let is_first = !self.was_asked.swap(true, Ordering::SeqCst);
        let answer = match self.plan {
            Plan::Rejects => Err(PublishError::Rejected("no".to_owned())),
            Plan::FailsOnce if is_first => Err(PublishError::Outage),
            _ => Ok(()),
        };
        match self.plan {
            Plan::TakesTime => tokio::time::sleep(Duration::from_millis(1500)).await,
            Plan::Blocks => std::thread::sleep(Duration::from_millis(3500)),
            _ => {}
        }
        vec![answer; batch.len()]
    }
}

/// Has relays measure how old messages are.
#[derive(Debug)]
struct Watches;

impl Observer for Watches {}

fn message(id: &str) -> Message {
    Message::raw("orders", "paid").id(id)
}

impl<DB: OutboxDatabase> Scenario<DB> {
    pub(super) async fn run(self) {
        let outbox = &self.outbox;
        for _ in 0..2 {
            outbox.migrate().await.expect("the tables are made");
        }
        outbox.check_schema().await.expect("they can be used");
        self.sends_and_takes_back().await;
        self.publishes().await;
        self.parks().await;
        self.sets_aside().await;
        self.purges().await;
    }

    /// Sends these in a transaction, which is committed.
    async fn send<const N: usize>(&self, messages: [Message; N]) {
        let mut transaction = self.outbox.pool.begin().await.expect("a connection");
        let sent = self.outbox.send_all(&mut transaction, messages).await;
        sent.expect("they are sent");
        transaction.commit().await.expect("they are committed");
    }

    /// Sends messages of each kind, and walks over many keys. No relay sees any of them.
    async fn sends_and_takes_back(&self) {
        let mut transaction = self.outbox.pool.begin().await.expect("a connection");
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let outbox = self.outbox.clone();
        let traced = outbox.clone().trace_parent(move || Some(parent.to_owned()));
        let ahead = outbox.clone().clock_ahead(AHEAD);
        let long = || Message::raw("orders", vec![7; 300_000]);
        let headed = message("c").key("headed").header("name", "value");
        for (outbox, message) in [
            (&outbox, message("a").key("keyed")),
            (&outbox, message("a").key("keyed")),
            (&outbox, message("b")),
            (&outbox, headed),
            (&traced, message("d").key("traced")),
            (&ahead, message("e").key("ahead")),
            (&ahead, message("f")),
            (&outbox, long().id("g").key("long")),
            (&outbox, long().id("g").key("long")),
            (&outbox, long().id("h").header("name", "value")),
            (&ahead, long().id("i").key("long")),
        ] {
            let sent = outbox.send(&mut transaction, message).await;
            sent.expect("it is sent");
        }
        let many = self.many() + OF_THE_TEST;
        let made = Sealed::execute(&mut *transaction, many).await;
        made.expect("they are made");
        for after in [&[][..], &[OF_A_KEY, 8]] {
            let met = DB::walk(&mut transaction, &outbox.tables, after).await;
            assert!(met.expect("a walk").len() > 10);
        }
        transaction.rollback().await.expect("they are taken back");
    }

    /// A text that makes messages of 130 keys.
    fn many(&self) -> String {
        let row = |number: u8| {
            let (key, text) = (DB::bytes(&[OF_A_KEY, number]), DB::bytes(b"many"));
            let id = DB::bytes(&[0, number]);
            format!("({id}, {key}, 1, {text}, {text}, {text}, 1)")
        };
        let rows: Vec<_> = (0..130).map(row).collect();
        let (messages, rows) = (&self.outbox.tables.messages, rows.join(", "));
        format!(
            "INSERT INTO {messages} (id, message_key, number, topic, headers, payload, created)
             VALUES {rows}"
        )
    }

    /// Has a relay do its work until so many rows are there.
    async fn relay(
        &self,
        plan: Plan,
        outbox: &Outbox<DB>,
        set: impl FnOnce(RelayBuilder<DB, Planned>) -> RelayBuilder<DB, Planned>,
        (rows, expected): (&str, usize),
    ) {
        let was_asked = AtomicBool::new(false);
        let relay = outbox.relay(Planned { plan, was_asked });
        let short = Duration::from_millis(20);
        let relay = set(relay.pauses(short, short)).start().await;
        let relay = relay.expect("it starts");
        let done = async {
            while self.rows(rows).await != expected {
                tokio::time::sleep(short).await;
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(40), done).await;
        done.expect("the relay does its work");
        relay.stop().await;
    }

    async fn rows(&self, rows: &str) -> usize {
        let mut connection = self.outbox.pool.acquire().await.expect("a connection");
        let found = Sealed::query(&mut *connection, format!("{rows}{OF_THE_TEST}")).await;
        found.expect("an answer").len()
    }

    fn messages(&self) -> String {
        format!("SELECT id FROM {}", self.outbox.tables.messages)
    }

    /// Relays that publish all that they find.
    async fn publishes(&self) {
        let (outbox, messages) = (&self.outbox, self.messages());
        let none = (&*messages, 0);
        self.send([message("1").key("k1"), message("2").key("k2"), message("3")])
            .await;
        let handle = Idempotency::builder(MemoryStore::new()).observer(Watches);
        let handle = handle.build().expect("a handle");
        let watched = |relay: RelayBuilder<DB, _>| relay.lease("3s").idempotency(&handle);
        self.relay(Plan::TakesTime, outbox, watched, none).await;

        self.send([message("4").key("k1")]).await;
        self.relay(Plan::FailsOnce, outbox, |it| it, none).await;

        self.send([message("5").key("k1")]).await;
        let leases = |relay: RelayBuilder<DB, _>| relay.lease("3s");
        self.relay(Plan::Blocks, outbox, leases, none).await;

        self.send([message("6").key("k1")]).await;
        let keeping = outbox.clone().audit_retention("1d").expect("a duration");
        self.relay(Plan::Confirms, &keeping, |it| it, none).await;
        if self.notifies {
            self.sleeps().await;
        }
    }

    /// A relay that says that it sleeps, and takes that back.
    async fn sleeps(&self) {
        let (plan, was_asked) = (Plan::Confirms, AtomicBool::new(false));
        let long = Duration::from_millis(400);
        let relay = self.outbox.relay(Planned { plan, was_asked });
        let relay = relay.pauses(long, long).start().await.expect("it starts");
        let relays = format!("INSERT INTO {} ", self.outbox.tables.relays);
        let done = async {
            while !sent(&relays).iter().any(|it| it.contains("sleeps_until)")) {
                tokio::time::sleep(long).await;
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(40), done).await;
        done.expect("the relay sleeps");
        relay.stop().await;
    }

    /// Keys that are parked, and what operators do with them.
    async fn parks(&self) {
        let (outbox, messages) = (&self.outbox, self.messages());
        let claims = &outbox.tables.claims;
        let parked = format!("SELECT message_key FROM {claims} WHERE blocked_since > 0");
        let twice = |relay: RelayBuilder<DB, _>| relay.budget(2);
        self.send([message("7").key("k1"), message("8").key("k1")])
            .await;
        for _ in 0..2 {
            self.relay(Plan::Rejects, outbox, twice, (&parked, 1)).await;
            assert_eq!(outbox.parked().await.expect("a list").len(), 1);
            assert!(outbox.resume("k1").await.expect("an answer"));
        }
        self.relay(Plan::Rejects, outbox, twice, (&parked, 1)).await;
        assert!(
            outbox
                .discard("k1", "7")
                .because("why")
                .await
                .expect("an answer")
        );
        let none = (&*messages, 0);
        self.relay(Plan::Confirms, outbox, |it| it, none).await;
    }

    async fn sets_aside(&self) {
        let messages = self.messages();
        let set_aside = |relay: RelayBuilder<DB, _>| relay.budget(1).on_poison(OnPoison::SetAside);
        self.send([message("9").key("k1"), message("10")]).await;
        let none = (&*messages, 0);
        self.relay(Plan::Rejects, &self.outbox, set_aside, none)
            .await;
    }

    /// The first purge notes which counters the second one deletes.
    async fn purges(&self) {
        let ahead = self.outbox.clone().clock_ahead(AHEAD);
        let keeping = ahead.clone().audit_retention("1d").expect("a duration");
        for outbox in [&self.outbox, &keeping, &keeping, &ahead] {
            outbox.purge().await.expect("it is purged");
        }
    }
}

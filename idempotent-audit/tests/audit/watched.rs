//! A handle that demands an audit runs no body whose call leaves no entry.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_audit::Audit;
use idempotent_runtime::{
    AuditEvent, AuditTrail, BoxError, Error, FingerprintKey, Idempotency, OnOutage, TrailState,
    step,
    store::{MemoryStore, SqlConnection},
    testing::{Gate, ManualClock},
};
use sqlx::Sqlite;

use crate::harness::{Place, Shop};

on_every_database![
    a_process_leaves_its_start_its_stop_and_its_build,
    a_trail_that_does_not_stand_refuses_every_way_to_write,
    a_trail_that_does_not_stand_refuses_the_word_about_a_step,
    a_trail_that_breaks_refuses_calls_until_it_is_mended,
    calls_that_ran_while_it_was_switched_off_are_counted,
    the_trail_of_another_store_is_none,
];

/// A handle over the shop's store that demands this audit.
async fn demanding<DB: Place>(
    shop: &Shop<DB>,
    trail: impl AuditTrail,
    clock: &ManualClock,
) -> Idempotency {
    let store = DB::store(&shop.pool, &shop.prefix).await.expect("tables");
    let idem = Idempotency::builder(store)
        .holder_name("till-3")
        .build_id("8f3c2e");
    let key = FingerprintKey::new([7; 32]).expect("a secret");
    let idem = idem.audit(trail).timer(clock.clone()).fingerprint_key(key);
    idem.build().expect("a handle")
}

async fn connect<DB: Place>(shop: &Shop<DB>) -> Audit {
    shop.audit().connect().await.expect("it stands")
}

async fn pay(idem: &Idempotency, key: &str) -> Result<u64, Error> {
    idem.call("payments.charge")
        .key(key)
        .run(async |_| Ok::<_, Error>(7_u64))
        .await
}

fn assert_missing<T: std::fmt::Debug>(answer: Result<T, Error>, expected: &str) {
    match answer {
        Err(Error::AuditMissing { reason, .. }) => assert!(reason.contains(expected), "{reason}"),
        other => panic!("{other:?}"),
    }
}

/// The events, each with its detail.
async fn events<DB: Place>(shop: &Shop<DB>) -> Vec<(String, String)> {
    let entries = shop.entries().await.into_iter();
    let events = entries.filter(|entry| entry.source == "event" && entry.kind == "event");
    let told = events.map(|it| (it.label.expect("a name"), it.note.unwrap_or_default()));
    told.collect()
}

/// Waits until the task has done what it does at this time.
async fn until<T>(mut done: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        match done().await {
            Some(done) => return done,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn a_process_leaves_its_start_its_stop_and_its_build<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let idem = demanding(&shop, connect(&shop).await, &ManualClock::new()).await;
    for key in ["a", "b"] {
        assert_eq!(pay(&idem, key).await.ok(), Some(7));
    }
    assert!(idem.shutdown(Duration::from_secs(10)).await);
    let events = events(&shop).await;
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "stop"]);
    let version = env!("CARGO_PKG_VERSION");
    let about = format!("idempotent-runtime {version}, build 8f3c2e, fingerprint key ");
    assert!(events[0].1.starts_with(&about), "{events:?}");
    let entries = shop.entries().await;
    let holder = entries.last().and_then(|entry| entry.holder.clone());
    assert_eq!(holder, Some(format!("till-3 ({version}, 8f3c2e)")));
}

async fn a_trail_that_does_not_stand_refuses_every_way_to_write<DB: Place>(shop: Shop<DB>)
where
    DB::Connection: SqlConnection,
{
    let shop = shop.audited().await;
    let idem = demanding(&shop, connect(&shop).await, &ManualClock::new()).await;
    shop.done_by_hand("DROP TABLE {p}audit_outcomes").await;
    assert_missing(pay(&idem, "k").await, "audit_outcomes");
    let mut transaction = shop.pool.begin().await.expect("a transaction");
    let call = idem.call("orders.place").key("k");
    let refused = call
        .run_in(&mut *transaction, async |_| Ok::<_, Error>(7_u64))
        .await;
    transaction.rollback().await.expect("it ends");
    assert_missing(refused, "audit_outcomes");
    let account = idem.sequence("accounts", "account-7").first(1).number(1);
    assert_missing(
        account.run(async |_| Ok::<_, Error>(1_u64)).await,
        "audit_outcomes",
    );
    let settle = idem
        .settle("payments.charge", None::<&str>, "k")
        .expect("a key");
    let refused = settle.as_done().await;
    assert_missing(refused, "audit_outcomes");
    shop.expect("record", &[]).await;
}

async fn a_trail_that_does_not_stand_refuses_the_word_about_a_step<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let gate = Gate::new();
    let (its, dropped) = (gate.clone(), shop.idem.clone());
    let dropped = tokio::spawn(async move {
        let body = async |_| {
            let asks = async |_| {
                its.pass().await;
                Ok::<_, Error>(1_u64)
            };
            step("hotel", asks).at_most_once().await
        };
        dropped.call("trip.book").key("k").run(body).await
    });
    gate.arrived(1).await;
    dropped.abort();
    let _ = dropped.await;
    assert!(shop.idem.shutdown(Duration::from_secs(10)).await);
    let idem = demanding(&shop, connect(&shop).await, &ManualClock::new()).await;
    let table = "ALTER TABLE {p}audit_outcomes RENAME TO {p}elsewhere";
    shop.done_by_hand(table).await;
    let told = shop.told("step").await;
    let settle = idem.settle("trip.book", None::<&str>, "k").expect("a key");
    let refused = settle.step("hotel").with_value(&3_u64).await;
    let refused = refused.expect_err("it leaves no entry");
    let refused = refused.downcast::<Error>().expect("an error of ours");
    assert_missing(Err::<u64, _>(*refused), "audit_outcomes");
    assert_eq!(shop.told("step").await, told);
}

async fn a_trail_that_breaks_refuses_calls_until_it_is_mended<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let clock = ManualClock::new();
    let idem = demanding(&shop, connect(&shop).await, &clock).await;
    let gate = Gate::new();
    let (its, under_way) = (gate.clone(), idem.clone());
    let under_way = tokio::spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(1_u64)
        };
        under_way
            .call("payments.charge")
            .key("under way")
            .run(body)
            .await
    });
    gate.arrived(1).await;
    shop.done_by_hand("DROP TABLE {p}audit_outcomes").await;
    assert_eq!(pay(&idem, "unseen yet").await.ok(), Some(7));
    let refused = until(async || {
        advance(&clock, 10).await;
        pay(&idem, &rand::random::<u64>().to_string()).await.err()
    });
    assert_missing(Err::<u64, _>(refused.await), "audit_outcomes");
    gate.open();
    assert_eq!(under_way.await.expect("it ends").ok(), Some(1));

    let table = "CREATE TABLE {p}audit_outcomes (number BIGINT NOT NULL PRIMARY KEY, outcome <long> NOT NULL)";
    let long = if DB::NAME == "MySQL" {
        "LONGBLOB"
    } else {
        "<bytes>"
    };
    let long = long.replace("<bytes>", if DB::IS_SQLITE { "BLOB" } else { "bytea" });
    shop.done_by_hand(&table.replace("<long>", &long)).await;
    let answered = until(async || {
        advance(&clock, 10).await;
        pay(&idem, "mended").await.ok()
    });
    assert_eq!(answered.await, 7);
}

async fn calls_that_ran_while_it_was_switched_off_are_counted<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let store = DB::store(&shop.pool, &shop.prefix).await.expect("tables");
    let clock = ManualClock::new();
    let idem = Idempotency::builder(store).audit(connect(&shop).await);
    let idem = idem
        .timer(clock.clone())
        .enabled(false)
        .build()
        .expect("a handle");
    for _ in 0..3 {
        assert_eq!(pay(&idem, "k").await.ok(), Some(7));
    }
    let told = until(async || {
        clock.advance(Duration::from_secs(10));
        Some(events(&shop).await).filter(|events| !events.is_empty())
    });
    let switched_off = |count| {
        (
            "kill_switch".to_owned(),
            format!("{count} calls ran unprotected"),
        )
    };
    assert_eq!(told.await, [switched_off(3)]);
    pay(&idem, "k").await.expect("a call");
    idem.shutdown(Duration::from_secs(10)).await;
    assert_eq!(events(&shop).await, [switched_off(3), switched_off(1)]);
    shop.expect("record", &[]).await;
}

async fn the_trail_of_another_store_is_none<DB: Place>(shop: Shop<DB>) {
    let (shop, other) = (
        shop.audited().await,
        Shop::<DB>::new().await.audited().await,
    );
    let idem = demanding(&shop, connect(&other).await, &ManualClock::new()).await;
    assert_missing(pay(&idem, "k").await, "another store");
}

/// A trail that may be out of sight.
#[derive(Clone, Debug)]
struct Flaky {
    inner: Audit,
    is_hidden: Arc<AtomicBool>,
}

#[async_trait]
impl AuditTrail for Flaky {
    async fn look(&self) -> Result<TrailState, BoxError> {
        match self.is_hidden.load(Ordering::SeqCst) {
            true => Err("the network is gone".into()),
            false => self.inner.look().await,
        }
    }

    async fn write(&self, event: &AuditEvent) -> Result<(), BoxError> {
        self.inner.write(event).await
    }
}

/// Advances the clock in steps, and lets the task look between.
async fn advance(clock: &ManualClock, seconds: u64) {
    for _ in 0..seconds {
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_trail_may_be_out_of_sight_for_half_a_minute() {
    let shop = Shop::<Sqlite>::new().await.audited().await;
    let flaky = Flaky {
        inner: connect(&shop).await,
        is_hidden: Arc::default(),
    };
    let clock = ManualClock::new();
    let idem = demanding(&shop, flaky.clone(), &clock).await;
    assert_eq!(pay(&idem, "seen").await.ok(), Some(7));
    flaky.is_hidden.store(true, Ordering::SeqCst);
    advance(&clock, 25).await;
    assert_eq!(pay(&idem, "for 25 seconds").await.ok(), Some(7));
    let refused = until(async || {
        advance(&clock, 1).await;
        pay(&idem, &rand::random::<u64>().to_string()).await.err()
    });
    assert_missing(Err::<u64, _>(refused.await), "the network is gone");
    flaky.is_hidden.store(false, Ordering::SeqCst);
    let answered = until(async || {
        advance(&clock, 1).await;
        pay(&idem, "seen again").await.ok()
    });
    assert_eq!(answered.await, 7);
}

#[test]
fn a_watch_whose_runtime_ended_looks_again() {
    let run = |work: std::pin::Pin<Box<dyn Future<Output = ()>>>| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(work);
    };
    let made = std::rc::Rc::new(std::cell::OnceCell::new());
    let first = std::rc::Rc::clone(&made);
    run(Box::pin(async move {
        let shop = Shop::<Sqlite>::new().await.audited().await;
        let idem = demanding(&shop, connect(&shop).await, &ManualClock::new()).await;
        assert_eq!(pay(&idem, "a").await.ok(), Some(7));
        assert!(first.set((shop, idem)).is_ok());
    }));
    run(Box::pin(async move {
        let (shop, idem) = made.get().expect("it was made");
        shop.done_by_hand("DROP TRIGGER {p}audit_record_insert")
            .await;
        assert_missing(pay(idem, "b").await, "audit_record_insert");
    }));
}

#[tokio::test]
async fn what_leaves_no_entry_is_refused() {
    let shop = Shop::<Sqlite>::new().await.audited().await;
    let memory = Idempotency::builder(MemoryStore::new())
        .audit(connect(&shop).await)
        .build();
    assert!(matches!(memory, Err(Error::InvalidPolicy(_))), "{memory:?}");
    let store = Sqlite::store(&shop.pool, &shop.prefix)
        .await
        .expect("tables");
    let open = Idempotency::builder(store).audit(connect(&shop).await);
    let open = open.on_outage(OnOutage::Open).build();
    assert!(matches!(open, Err(Error::InvalidPolicy(_))), "{open:?}");
    let idem = demanding(&shop, connect(&shop).await, &ManualClock::new()).await;
    let open = idem
        .call("payments.charge")
        .key("k")
        .on_outage(OnOutage::Open);
    let open = open.run(async |_| Ok::<_, Error>(7_u64)).await;
    assert!(matches!(open, Err(Error::InvalidPolicy(_))), "{open:?}");
}

//! Each metric of the table has the value of what happened.

mod outbox;
mod sampled;

use std::time::Duration;

use idempotent_runtime::{
    Builder, CallOutcome, Error, RecordChange, StoreErrorKind,
    consumer::Disposition,
    metrics::MetricsObserver,
    sequence::Decision,
    step,
    store::Store as _,
    testing::{Gate, On, StoreOperation},
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::{
    booking::{BookError, verdict},
    harness::{Owner, World},
};

on_every_store![
    calls_are_counted_and_timed,
    consumers_and_sequences_are_counted,
    steps_and_undos_are_counted,
    purged_records_are_counted,
];

const LEASE: Duration = Duration::from_secs(30);

/// What Prometheus would read.
#[derive(Clone)]
pub(crate) struct Scrape(PrometheusHandle);

impl Scrape {
    /// An observer, and what it shows.
    pub(crate) fn new() -> (MetricsObserver, Self) {
        let builder = PrometheusBuilder::new().with_recommended_naming(true);
        let builder = builder.set_buckets(MetricsObserver::buckets());
        let recorder = builder.expect("there are bounds").build_recorder();
        let handle = recorder.handle();
        (MetricsObserver::with_recorder(recorder), Self(handle))
    }

    /// The value of this sample; `None` if there is none.
    pub(crate) fn get(&self, sample: &str) -> Option<f64> {
        let rendered = self.0.render();
        let line = rendered.lines().find_map(|line| {
            let value = line.strip_prefix(sample)?;
            value.strip_prefix(' ')
        });
        line.map(|value| value.parse().expect("a number"))
    }

    #[track_caller]
    pub(crate) fn assert(&self, sample: &str, value: f64) {
        assert_eq!(
            self.get(sample),
            Some(value),
            "{sample}: {}",
            self.0.render()
        );
    }
}

async fn owner(world: &World) -> (Owner, Scrape) {
    let (observer, scrape) = Scrape::new();
    let set_up = |builder: Builder| builder.observer(observer);
    (world.owner_with(set_up).await, scrape)
}

async fn pay(owner: &Owner, key: &str, gate: Gate) -> Result<u32, Error> {
    let call = owner.call("pay").key(key);
    call.run(async |_| {
        gate.pass().await;
        Ok(1)
    })
    .await
}

fn open() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

async fn calls_are_counted_and_timed(world: World) {
    let (owner, scrape) = owner(&world).await;
    let calls = |outcome: CallOutcome| {
        let outcome = outcome.name();
        format!(r#"idempotent_calls_total{{operation="pay",outcome="{outcome}"}}"#)
    };
    let (gate, first) = (Gate::new(), owner.clone());
    let held = gate.clone();
    let first = tokio::spawn(async move { pay(&first, "k", held).await });
    gate.arrived(1).await;
    let second = owner.clone();
    let second = tokio::spawn(async move { pay(&second, "k", open()).await });
    owner.log.await_step(RecordChange::Waiting).await;
    world.advance(Duration::from_secs(5)).await;
    gate.open();
    for call in [first, second] {
        assert_eq!(call.await.expect("it does not panic"), Ok(1));
    }
    for _ in 0..3 {
        assert_eq!(pay(&owner, "k", open()).await, Ok(1));
    }
    scrape.assert(&calls(CallOutcome::Executed), 1.0);
    scrape.assert(&calls(CallOutcome::ReplayedAfterWait), 1.0);
    scrape.assert(&calls(CallOutcome::Replayed), 3.0);
    let of = |outcome: &str, what: &str| {
        format!(r#"idempotent_call_duration_seconds{what}{{operation="pay",outcome="{outcome}"}}"#)
    };
    scrape.assert(&of("executed", "_sum"), 5.0);
    scrape.assert(&of("executed", "_count"), 1.0);
    scrape.assert(&of("replayed", "_count"), 3.0);
    scrape.assert(
        r#"idempotent_wait_duration_seconds_sum{operation="pay"}"#,
        5.0,
    );
    scrape.assert(
        r#"idempotent_wait_duration_seconds_count{operation="pay"}"#,
        1.0,
    );

    // A holder vanishes, and so it loses its lease.
    owner.fails(
        StoreOperation::Heartbeat,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let (gate, stale) = (Gate::new(), owner.clone());
    let held = gate.clone();
    let stale = tokio::spawn(async move { pay(&stale, "stale", held).await });
    gate.arrived(1).await;
    world.advance(LEASE).await;
    owner.log.await_step(RecordChange::LeaseLost).await;
    let next = world.owner().await;
    assert_eq!(pay(&next, "stale", open()).await, Ok(1));
    gate.open();
    assert_eq!(stale.await.expect("it does not panic"), Ok(1));
    // Observers are told one after another, on the heartbeat thread.
    let lost = r#"idempotent_leases_lost_total{operation="pay"}"#;
    sampled::until(&scrape, lost, |it| it == Some(1.0)).await;
    scrape.assert(r#"idempotent_takeovers_total{operation="pay"}"#, 0.0);
    owner.store.heal();

    // The store does not take an outcome at once.
    owner.fails(StoreOperation::Ending, On::Next, StoreErrorKind::Busy);
    assert_eq!(pay(&owner, "late", open()).await, Ok(1));
    owner.settled().await;
    scrape.assert(
        r#"idempotent_completions_retried_total{operation="pay"}"#,
        1.0,
    );
    stores_are_timed(&owner, &scrape).await;
}

async fn stores_are_timed(owner: &Owner, scrape: &Scrape) {
    let name = owner.store.name();
    let of = |action: &str, error: &str| {
        let labels = format!(r#"store="{name}",action="{action}",error="{error}""#);
        format!("idempotent_store_duration_seconds_count{{{labels}}}")
    };
    let endings = scrape.get(&of("ending", "none")).expect("there were some");
    assert!(endings >= 2.0, "{endings}");
    scrape.assert(&of("ending", "busy"), 1.0);
    assert!(scrape.get(&of("claim", "none")).is_some());
    assert!(scrape.get(&of("heartbeat", "unavailable")).is_some());
}

async fn consumers_and_sequences_are_counted(world: World) {
    let (owner, scrape) = owner(&world).await;
    let consumer = owner
        .idem
        .consumer("billing")
        .ttl("7d")
        .broker_retention("3d");
    let consumer = consumer.build().expect("a consumer");
    for delivery in 1..=3 {
        let message = consumer.message("m").payload("an order").delivery(delivery);
        let disposition = message.run(async |_| Ok::<_, std::io::Error>(())).await;
        assert!(
            matches!(disposition, Disposition::Ack { .. }),
            "{disposition:?}"
        );
    }
    let of = |disposition: &str| {
        let labels = format!(r#"consumer="billing",disposition="{disposition}""#);
        format!("idempotent_consumer_messages_total{{{labels}}}")
    };
    scrape.assert(&of("ack"), 1.0);
    scrape.assert(&of("duplicate"), 2.0);

    let decide = async |number, answer: Result<u32, Error>| {
        let account = owner.idem.sequence("accounts", "a").first(1);
        account.number(number).run(async |_| answer).await
    };
    assert!(decide(1, Err(Error::AlreadyInstalled)).await.is_err());
    assert_eq!(decide(1, Ok(1)).await, Ok(Decision::Applied(1)));
    assert_eq!(decide(2, Ok(2)).await, Ok(Decision::Applied(2)));
    assert_eq!(decide(2, Ok(2)).await, Ok(Decision::Replayed(2)));
    assert_eq!(decide(1, Ok(1)).await, Ok(Decision::Past { last: 2 }));
    let gap = Decision::Gap {
        expected: 3,
        got: 7,
    };
    assert_eq!(decide(7, Ok(7)).await, Ok(gap));
    for (decision, count) in [
        ("failed", 1.0),
        ("applied", 2.0),
        ("replayed", 1.0),
        ("past", 1.0),
        ("gap", 1.0),
    ] {
        let labels = format!(r#"sequence="accounts",decision="{decision}""#);
        scrape.assert(
            &format!("idempotent_sequence_numbers_total{{{labels}}}"),
            count,
        );
    }
}

async fn steps_and_undos_are_counted(world: World) {
    let (owner, scrape) = owner(&world).await;
    let of = |metric: &str, step: &str, outcome: &str| {
        let labels = format!(r#"operation="book",step="{step}",outcome="{outcome}""#);
        format!("idempotent_{metric}_total{{{labels}}}")
    };
    let call = || owner.call("book").key("k").classify_errors(verdict);
    // It is released behind its first step, and then goes on to its end, which undoes that.
    let released = call().run(async |_| {
        step("flight", async |_| Ok::<u32, BookError>(7))
            .undo(undone)
            .await?;
        let ours = async |_| Err::<u32, BookError>(Error::AlreadyInstalled.into());
        step("hotel", ours).await
    });
    assert!(released.await.is_err());
    scrape.assert(&of("steps", "flight", "executed"), 1.0);
    scrape.assert(&of("steps", "hotel", "released"), 1.0);
    let failed = call().run(async |_| {
        step("flight", async |_| Ok::<u32, BookError>(7))
            .undo(undone)
            .await?;
        Err::<u32, _>(BookError::Refused)
    });
    assert!(failed.await.is_err());
    scrape.assert(&of("steps", "flight", "executed"), 1.0);
    scrape.assert(&of("steps", "flight", "replayed"), 1.0);
    scrape.assert(&of("undos", "flight", "undone"), 1.0);
}

async fn undone(_: idempotent_runtime::Undo<u32>) -> Result<(), Error> {
    Ok(())
}

async fn purged_records_are_counted(world: World) {
    let (observer, scrape) = Scrape::new();
    let owner = world.owner_with(|builder| builder.ttl("1m").observer(observer));
    let owner = owner.await;
    for key in ["a", "b", "c"] {
        assert_eq!(pay(&owner, key, open()).await, Ok(1));
    }
    world.advance(Duration::from_secs(60)).await;
    let purged = owner.idem.purge().await.expect("the store answers");
    assert_eq!(purged, world.to_purge(3));
    scrape.assert("idempotent_purged_total", purged as f64);
}

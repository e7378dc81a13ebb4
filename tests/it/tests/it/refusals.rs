//! Refusals of ours that a body tells of in its own words: they are no outcome.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, InFlight, MemoryStore, OnCrash, RawEnding, RawOutcome, Status, StepContext,
    Verdict, idempotent, step, testing::Gate,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::harness::{Owner, World};

on_every_store![
    mend_05_an_error_that_tells_of_a_refusal_is_no_outcome,
    mend_05_a_refusal_of_a_call_inside_a_call_is_none_of_those_around,
    mend_05_an_outcome_takes_an_earlier_refusal_back,
    mend_05_a_raw_error_after_a_refusal_is_no_outcome,
    mend_05_a_step_that_changed_is_no_reason_to_undo,
    mend_05_a_step_with_a_refused_call_inside_is_not_recorded,
    mend_05_a_refusal_in_a_step_without_a_record_is_none_of_the_calls_around,
];

#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
enum PayError {
    #[error("declined")]
    Declined,
    #[error("{0}")]
    Text(String),
    #[error("not paid")]
    Hidden {
        #[source]
        #[serde(skip)]
        source: Option<Error>,
    },
}

impl From<Error> for PayError {
    fn from(error: Error) -> Self {
        Self::Text(error.to_string())
    }
}

type Paid = Result<u32, PayError>;

/// Another process makes the inner call, and stands inside its body.
async fn held(world: &World) -> (Gate, JoinHandle<Result<u32, Error>>) {
    let (gate, other) = (Gate::new(), world.owner().await);
    let its = gate.clone();
    let running = tokio::spawn(async move {
        let charge = other.call("charge").key("k");
        charge
            .run(async |_| {
                its.pass().await;
                Ok::<_, Error>(7)
            })
            .await
    });
    gate.arrived(1).await;
    (gate, running)
}

/// The inner call, which does not wait.
async fn charge(owner: &Owner) -> Result<u32, Error> {
    let charge = owner.call("charge").key("k").in_flight(InFlight::Reject);
    charge.run(async |_| Ok::<_, Error>(8)).await
}

/// The same in a task of its own, told in text.
#[idempotent(name = "pay.detached", key = key, on_cancel = detach, handle = owner.idem, skip(owner))]
async fn detached(owner: Owner, key: String) -> Paid {
    charge(&owner).await.map_err(PayError::from)
}

/// The ways in which a body tells of a refusal.
fn told(way: &str, refusal: Error) -> PayError {
    match way {
        "text" => PayError::Text(refusal.to_string()),
        "source" => PayError::Hidden {
            source: Some(refusal),
        },
        _ => PayError::Declined,
    }
}

async fn mend_05_an_error_that_tells_of_a_refusal_is_no_outcome(world: World) {
    let owner = world.owner().await;
    let pays = async |way: &'static str, on_crash: OnCrash| -> Paid {
        let call = owner.call("pay").key(way).on_crash(on_crash);
        call.run(async |_| {
            world.happened(way);
            charge(&owner).await.map_err(|refusal| told(way, refusal))
        })
        .await
    };
    let (gate, running) = held(&world).await;
    for way in ["text", "source", "other"] {
        for _ in 0..2 {
            assert!(pays(way, OnCrash::Rerun).await.is_err());
        }
        assert_eq!(world.runs(way), 2, "{way}");
    }
    let strict: Paid = owner
        .call("pay")
        .key("strict")
        .on_crash(OnCrash::Uncertain)
        .run(async |_| charge(&owner).await.map_err(PayError::from))
        .await;
    assert!(strict.is_err());
    let status = owner.idem.lookup("pay", None::<&str>, "strict").await;
    assert!(
        matches!(status, Ok(Status::Uncertain)),
        "it may have done something: {status:?}"
    );
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(7));
    for way in ["text", "source", "other"] {
        assert_eq!(pays(way, OnCrash::Rerun).await, Ok(7));
        assert_eq!(pays(way, OnCrash::Rerun).await, Ok(7));
        assert_eq!(world.runs(way), 3, "{way}");
    }
}

async fn mend_05_a_refusal_of_a_call_inside_a_call_is_none_of_those_around(world: World) {
    let owner = world.owner().await;
    let pays = async |is_detached: bool| -> Paid {
        let outer = owner.call("order").key(&is_detached);
        outer
            .run(async |_| {
                if is_detached {
                    return detached(owner.clone(), "detached".to_owned()).await;
                }
                let inner = owner.call("pay").key("k");
                let body = async |_| charge(&owner).await.map_err(PayError::from);
                inner.run(body).await
            })
            .await
    };
    let (gate, running) = held(&world).await;
    for is_detached in [false, true] {
        assert!(pays(is_detached).await.is_err());
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(7));
    for is_detached in [false, true] {
        assert_eq!(pays(is_detached).await, Ok(7), "{is_detached}");
    }
}

async fn mend_05_an_outcome_takes_an_earlier_refusal_back(world: World) {
    let owner = world.owner().await;
    let (gate, running) = held(&world).await;
    let running = std::sync::Mutex::new(Some(running));
    let pays = async || -> Paid {
        owner
            .call("pay")
            .key("k")
            .run(async |_| {
                world.happened("pay");
                while let Err(refusal) = charge(&owner).await {
                    assert!(matches!(refusal, Error::InProgress { .. }), "{refusal:?}");
                    gate.open();
                    let running = running.lock().expect("no panic").take();
                    if let Some(running) = running {
                        assert_eq!(running.await.expect("no panic"), Ok(7));
                    }
                }
                Err(PayError::Declined)
            })
            .await
    };
    for _ in 0..2 {
        assert_eq!(pays().await, Err(PayError::Declined));
    }
    assert_eq!(world.runs("pay"), 1, "it is recorded");
}

async fn mend_05_a_raw_error_after_a_refusal_is_no_outcome(world: World) {
    let owner = world.owner().await;
    let responds = async || {
        let call = owner.call("respond").key("k");
        let (outcome, _) = call
            .run_raw(async |_| {
                world.happened("respond");
                RawEnding::Record(match charge(&owner).await {
                    Ok(_) => RawOutcome::value("200"),
                    Err(_) => RawOutcome::error("409"),
                })
            })
            .await
            .expect("an outcome");
        outcome
    };
    let (gate, running) = held(&world).await;
    assert_eq!(responds().await, RawOutcome::error("409"));
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(7));
    for _ in 0..2 {
        assert_eq!(responds().await, RawOutcome::value("200"));
    }
    assert_eq!(world.runs("respond"), 2);
}

/// Books a flight with an undo, and then a hotel by a build that has other arguments for it.
async fn books(world: &World, owner: &Owner, hotel: u32, gate: Option<Gate>) -> Paid {
    let (world, gate) = (world.clone(), gate);
    let call = owner
        .call("trip")
        .key("k")
        .classify_errors(|_: &PayError| Verdict::Replay);
    call.run(async move |_| {
        let at = world.clone();
        let cancels = world.clone();
        step("flight", async move |_: StepContext| {
            at.happened("flight");
            Ok::<_, PayError>(1_u32)
        })
        .undo(move |_| {
            cancels.happened("cancelled");
            async { Ok::<(), PayError>(()) }
        })
        .await?;
        let booked = step("hotel", async |_: StepContext| Ok::<_, PayError>(hotel))
            .arguments(&hotel)
            .await?;
        if let Some(gate) = gate {
            gate.pass().await;
        }
        Ok(booked)
    })
    .await
}

async fn mend_05_a_step_that_changed_is_no_reason_to_undo(world: World) {
    let (dead, gate) = (world.owner().await, Gate::new());
    let (at, its, held) = (world.clone(), dead.clone(), gate.clone());
    let task = tokio::spawn(async move { books(&at, &its, 5, Some(held)).await });
    gate.arrived(1).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;

    let next = world.owner().await;
    for _ in 0..2 {
        let changed = books(&world, &next, 6, None).await;
        assert!(
            matches!(&changed, Err(PayError::Text(text)) if text.contains("hotel")),
            "{changed:?}"
        );
        next.settled().await;
    }
    assert_eq!(world.runs("cancelled"), 0);
    assert_eq!(books(&world, &next, 5, None).await, Ok(5));
    assert_eq!((world.runs("flight"), world.runs("cancelled")), (1, 0));
}

async fn mend_05_a_step_with_a_refused_call_inside_is_not_recorded(world: World) {
    let owner = world.owner().await;
    let pays = async || -> Paid {
        owner
            .call("pay")
            .key("k")
            .run(async |_| {
                step("charge", async |_: StepContext| {
                    world.happened("charge");
                    charge(&owner).await.map_err(PayError::from)
                })
                .on_error(|_: &PayError| Verdict::Replay)
                .run()
                .await
            })
            .await
    };
    let (gate, running) = held(&world).await;
    for _ in 0..2 {
        assert!(pays().await.is_err());
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(7));
    assert_eq!(pays().await, Ok(7));
    assert_eq!(world.runs("charge"), 3);
}

/// The call between has no record, so its step has none, either.
async fn mend_05_a_refusal_in_a_step_without_a_record_is_none_of_the_calls_around(world: World) {
    let owner = world.owner().await;
    let off = Idempotency::builder(MemoryStore::new()).enabled(false);
    let off = off.build().expect("a handle");
    let pays = async || -> Paid {
        let outer = owner.call("order").key("k");
        outer
            .run(async |_| {
                world.happened("order");
                let between = off.call("pay").key("k");
                let in_step = async |_: StepContext| charge(&owner).await.map_err(PayError::from);
                between.run(async |_| step("charge", in_step).await).await
            })
            .await
    };
    let (gate, running) = held(&world).await;
    for _ in 0..2 {
        assert!(pays().await.is_err());
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(7));
    assert_eq!(pays().await, Ok(7));
    assert_eq!(world.runs("order"), 3);
}

//! The fate of an error that the body returned.

use super::*;
use crate::harness::Owner;

on_every_store![
    e01_error_releases,
    e02_error_stored,
    e03_error_policy_per_variant,
    e03_a_classifier_that_writes_a_log_releases_nothing,
    e04_transient_not_stored,
    e04_what_encodes_a_refusal_in_other_words_is_not_stored,
    e05_error_type_roundtrip,
];

/// The errors of a bank. None of them can be stored.
#[derive(Debug, thiserror::Error)]
enum Declined {
    #[error("the bank declined")]
    Bank(#[source] std::io::Error),
    #[error(transparent)]
    Idempotency(#[from] Error),
}

async fn e01_error_releases(world: World) {
    let owner = world.owner().await;
    let call = |outcome: Result<u32, Declined>| {
        let world = world.clone();
        let call = owner.call("charge").key("k").release_errors();
        call.run(move |_| async move {
            world.happened("k");
            outcome
        })
    };
    let cause = std::io::Error::other("connection reset");

    let refused = call(Err(Declined::Bank(cause))).await;

    let error = refused.expect_err("the body failed");
    assert!(matches!(error, Declined::Bank(_)));
    assert_eq!(
        error.source().map(ToString::to_string),
        Some("connection reset".into())
    );
    assert_eq!(world.record().await.state, State::Released);
    assert_eq!(call(Ok(7)).await.expect("it runs again"), 7);
    assert_eq!(world.runs("k"), 2);
}

/// The errors of a payment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
enum Refused {
    #[error("no funds: {missing} missing")]
    NoFunds { missing: u64, hints: Vec<String> },
    #[error("busy")]
    Busy,
    #[error("the answer was cut off")]
    CutOff,
    #[error(transparent)]
    Idempotency(#[from] Error),
}

fn no_funds() -> Refused {
    Refused::NoFunds {
        missing: u64::MAX,
        hints: vec!["save".into(), String::new()],
    }
}

async fn e02_error_stored(world: World) {
    let owner = world.owner().await;
    for _call in 0..3 {
        let world = world.clone();
        let call = owner.call("charge").key("k");
        let answer: Result<(), _> = call
            .run(move |_| async move {
                world.happened("k");
                Err(no_funds())
            })
            .await;
        assert_eq!(answer, Err(no_funds()));
    }
    assert_eq!(world.runs("k"), 1);
    let status = owner.idem.lookup("charge", None::<&str>, "k").await;
    assert!(matches!(status, Ok(Status::Failed(_))), "{status:?}");
}

async fn e03_error_policy_per_variant(world: World) {
    let owner = world.owner().await;
    let verdict = |error: &Refused| match error {
        Refused::NoFunds { .. } => Verdict::Replay,
        Refused::Busy => Verdict::Release,
        Refused::CutOff | Refused::Idempotency(_) => Verdict::Uncertain,
    };
    let call = |key: &'static str, error: Refused| {
        let world = world.clone();
        let call = owner.call("charge").key(key).classify_errors(verdict);
        call.run(move |_| async move {
            world.happened(key);
            Err::<(), _>(error)
        })
    };

    for _call in 0..2 {
        assert_eq!(call("replayed", no_funds()).await, Err(no_funds()));
        assert_eq!(call("released", Refused::Busy).await, Err(Refused::Busy));
    }
    let cut_off = call("uncertain", Refused::CutOff).await;
    assert_eq!(cut_off, Err(Refused::CutOff));
    let again = call("uncertain", Refused::CutOff).await;

    assert!(
        matches!(again, Err(Refused::Idempotency(Error::Uncertain { .. }))),
        "{again:?}"
    );
    let runs = ["replayed", "released", "uncertain"].map(|key| world.runs(key));
    assert_eq!(runs, [1, 2, 1]);
    let call = owner.call("charge").key("unrecorded");
    let unrecorded = call.classify_errors(|_: &Declined| Unrecorded::Uncertain);
    let answer = unrecorded
        .run(|_| async { Err::<(), _>(Declined::Bank(std::io::Error::other("reset"))) })
        .await;
    assert!(matches!(answer, Err(Declined::Bank(_))));
    let status = owner.idem.lookup("charge", None::<&str>, "unrecorded");
    let status = status.await;
    assert!(matches!(status, Ok(Status::Uncertain)), "{status:?}");
}

/// Has no encoding, and no error of ours in it.
#[derive(Debug, Deserialize, thiserror::Error)]
#[error("no encoding")]
struct Opaque;

impl Serialize for Opaque {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no encoding"))
    }
}

impl From<Error> for Opaque {
    fn from(error: Error) -> Self {
        assert!(matches!(error, Error::NotReplayable { .. }), "{error:?}");
        Self
    }
}

/// An error of ours serialised before does not make this one the failure of a nested call.
async fn e03_a_classifier_that_writes_a_log_releases_nothing(world: World) {
    let owner = world.owner().await;
    let call = || {
        let world = world.clone();
        let call = owner.call("charge").key("k").classify_errors(|_: &Opaque| {
            let ours = Error::InvalidPolicy("for the log");
            assert!(serde_json::to_string(&ours).is_err());
            Verdict::Replay
        });
        call.run(|_| async move {
            world.happened("k");
            Err::<(), _>(Opaque)
        })
    };

    assert!(call().await.is_err());
    let record = world.record().await;
    assert_eq!(record.state, State::Done);
    let kept = record.outcome.as_ref().map(|outcome| outcome.kind);
    assert_eq!(kept, Some(OutcomeKind::NotReplayable));
    assert!(call().await.is_err());
    assert_eq!(world.runs("k"), 1);
}

/// Asserts that one of two failed calls is released, and that the other one is uncertain.
async fn are_not_stored(owner: &Owner) {
    let status = owner.idem.lookup("outer", None::<&str>, "rerun").await;
    assert!(matches!(status, Ok(Status::Unknown)), "{status:?}");
    let status = owner.idem.lookup("outer", None::<&str>, "once").await;
    assert!(matches!(status, Ok(Status::Uncertain)), "{status:?}");
}

async fn e04_transient_not_stored(world: World) {
    let (holder, owner) = (world.owner().await, world.owner().await);
    let (inner, gate) = Charge::of(&world, &holder).key("inner").begun().await;
    let outer = |key: &'static str, on_crash| {
        let nested = Charge::of(&world, &owner).key("inner").rejecting();
        let call = owner.call("outer").key(key).on_crash(on_crash);
        call.run(move |_| async move { nested.call().await.map_err(Refused::from) })
    };

    let answer = outer("rerun", OnCrash::Rerun).await;
    assert!(
        matches!(answer, Err(Refused::Idempotency(Error::InProgress { .. }))),
        "{answer:?}"
    );
    assert!(outer("once", OnCrash::Uncertain).await.is_err());
    are_not_stored(&owner).await;

    charges_behind(&gate, inner).await;
    assert_eq!(outer("rerun", OnCrash::Rerun).await, Ok("charged".into()));
}

/// Writes words if its cause cannot be encoded, so that encoding it succeeds.
#[derive(Debug, Deserialize, thiserror::Error)]
#[error("no answer")]
struct Worded {
    #[serde(skip)]
    cause: Option<Error>,
}

impl Serialize for Worded {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cause = serde_json::to_value(&self.cause);
        let words = cause.unwrap_or_else(|_| serde_json::json!({}));
        words.serialize(serializer)
    }
}

impl From<Error> for Worded {
    fn from(cause: Error) -> Self {
        Self { cause: Some(cause) }
    }
}

async fn e04_what_encodes_a_refusal_in_other_words_is_not_stored(world: World) {
    let owner = world.owner().await;
    let call = |key: &'static str, on_crash| {
        let call = owner.call("outer").key(key).on_crash(on_crash);
        call.run(|_| async { Err::<(), _>(Worded::from(Error::InvalidPolicy("nested"))) })
    };
    assert!(call("rerun", OnCrash::Rerun).await.is_err());
    assert!(call("once", OnCrash::Uncertain).await.is_err());
    are_not_stored(&owner).await;
}

/// An application meets this when it sends an error of its own as JSON to a client.
#[test]
fn what_cannot_be_serialised_says_what_to_do() {
    let refusal = serde_json::to_string(&Error::AlreadyInstalled).expect_err("it has no JSON");
    assert!(
        refusal.to_string().contains("look at it first"),
        "{refusal}"
    );
}

async fn e05_error_type_roundtrip(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let call = |owner: &Owner| {
        let call = owner.call("charge").key("k");
        call.run(|_| async { Err::<u8, _>(no_funds()) })
    };
    let (executed, replayed) = (call(&first).await, call(&second).await);
    assert_eq!(executed, Err(no_funds()));
    assert_eq!(replayed, executed);
}

//! What must be equal in a retry, and what becomes of a key that comes with something else.

use std::time::Duration;

use idempotent_runtime::{Answer, Error, Status, Step, idempotent, record::Record, testing::Gate};
use serde::{Deserialize, Serialize};

use crate::harness::World;

on_every_store![
    b01_key_order_irrelevant,
    b02_array_order_relevant,
    b03_arguments_do_not_run_into_each_other,
    b06_subset_key,
    b07_excluded_fields,
    b14_mismatch_completed,
    b14_mismatch_while_running,
    b14_mismatch_in_every_state_that_binds,
    b16_mismatch_nested_field,
    b18_fingerprint_survives_completion,
    b19_mismatch_error_names_what_differs,
    b20_mismatch_after_release,
    b22_mismatch_off,
    b28_custom_fingerprint,
    b28_async_custom_fingerprint,
];

#[derive(Serialize)]
struct Money {
    cents: u32,
    currency: &'static str,
}

#[derive(Serialize)]
struct MoneyReordered {
    currency: &'static str,
    cents: u32,
}

async fn b01_key_order_irrelevant(world: World) {
    let owner = world.owner().await;
    let call = || owner.call("fingerprints.order").key("k");

    let first = call()
        .argument(
            "money",
            &Money {
                cents: 5,
                currency: "EUR",
            },
        )
        .argument("note", "thanks")
        .run(|_| async { Ok::<_, Error>(1) })
        .await;
    let second = call()
        .argument("note", "thanks")
        .argument(
            "money",
            &MoneyReordered {
                currency: "EUR",
                cents: 5,
            },
        )
        .run(|_| async { Ok::<_, Error>(2) })
        .await;

    assert_eq!((first, second), (Ok(1), Ok(1)));
}

#[idempotent(name = "fingerprints.lines", key = key, skip(world))]
async fn lines(world: &World, key: &str, lines: Vec<u32>) -> Result<usize, Error> {
    world.happened(key);
    Ok(lines.len())
}

async fn b02_array_order_relevant(world: World) {
    let owner = world.owner().await;

    assert_eq!(owner.enter(lines(&world, "k", vec![1, 2])).await, Ok(2));
    let reordered = owner.enter(lines(&world, "k", vec![2, 1])).await;

    assert!(
        matches!(reordered, Err(Error::KeyReused { .. })),
        "{reordered:?}"
    );
    assert_eq!(owner.enter(lines(&world, "k", vec![1, 2])).await, Ok(2));
}

#[idempotent(name = "fingerprints.two", key = key, skip(world))]
async fn two(world: &World, key: &str, left: &str, right: &str) -> Result<String, Error> {
    world.happened(key);
    Ok(format!("{left} {right}"))
}

async fn b03_arguments_do_not_run_into_each_other(world: World) {
    let owner = world.owner().await;
    assert_eq!(
        owner.enter(two(&world, "k", "a", "bc")).await,
        Ok("a bc".into())
    );

    for (left, right) in [("ab", "c"), ("abc", ""), ("bc", "a"), ("a:bc", "")] {
        let answer = owner.enter(two(&world, "k", left, right)).await;
        assert!(matches!(answer, Err(Error::KeyReused { .. })), "{answer:?}");
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Request {
    order: u32,
    amount: Amount,
    #[serde(skip)]
    sent_at: u64,
    note: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct Amount {
    net: u32,
    parts: Vec<(String, u32)>,
}

fn request() -> Request {
    Request {
        order: 42,
        amount: Amount {
            net: 10,
            parts: vec![("tea".into(), 7), ("milk".into(), 3)],
        },
        sent_at: 1,
        note: "first".into(),
    }
}

#[idempotent(name = "fingerprints.subset", key = req.order, fingerprint = req.order)]
async fn subset(world: &World, req: Request) -> Result<String, Error> {
    world.happened("subset");
    Ok(req.note)
}

async fn b06_subset_key(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(subset(&world, request())).await;

    let other = Request {
        note: "second".into(),
        ..request()
    };
    let second = owner.enter(subset(&world, other)).await;

    assert_eq!(first, Ok("first".into()));
    assert_eq!(second, first);
    assert_eq!(world.runs("subset"), 1);
}

#[idempotent(name = "fingerprints.charge", key = req.order, skip(world, retry))]
async fn charge(world: &World, req: Request, retry: u32) -> Result<String, Error> {
    world.happened("charge");
    let (sent_at, run) = (req.sent_at, world.runs("charge"));
    Ok(format!("run {run}, sent at {sent_at}, retry {retry}"))
}

async fn b07_excluded_fields(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(charge(&world, request(), 0)).await;

    let later = Request {
        sent_at: 2,
        ..request()
    };
    let second = owner.enter(charge(&world, later, 1)).await;

    assert_eq!(
        (&first, &second),
        (&Ok("run 1, sent at 1, retry 0".into()), &first)
    );
}

async fn b14_mismatch_completed(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(charge(&world, request(), 0)).await;
    let recorded = world.record().await;

    let other = Request {
        note: "other".into(),
        ..request()
    };
    let refused = owner.enter(charge(&world, other, 0)).await;

    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
    assert_eq!(world.runs("charge"), 1);
    assert_eq!(world.record().await, recorded);
    assert_eq!(owner.enter(charge(&world, request(), 0)).await, first);
    assert_eq!(
        owner.log.answers(),
        [Answer::Executed, Answer::KeyReused, Answer::Replayed]
    );
}

#[idempotent(name = "fingerprints.held", key = key, skip(world, gate))]
async fn held(world: World, gate: Gate, key: &'static str, amount: u32) -> Result<u32, Error> {
    world.happened(key);
    gate.pass().await;
    Ok(amount)
}

async fn b14_mismatch_while_running(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let gate = Gate::new();
    let first = a.spawn(held(world.clone(), gate.clone(), "k", 1));
    gate.arrived(1).await;

    let refused = b.enter(held(world.clone(), gate.clone(), "k", 2)).await;

    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
    gate.open();
    assert_eq!(first.await.expect("it does not panic"), Ok(1));
    assert_eq!(world.runs("k"), 1);
}

async fn b14_mismatch_in_every_state_that_binds(world: World) {
    let owner = world.owner_with(|builder| builder.takeover_budget(0)).await;
    let call = |name: &str, amount: u32| owner.call(name).key("k").arguments(&amount);
    let mismatch = async |name: &str| {
        let answer = call(name, 2).run(|_| async { Ok::<_, Error>(()) }).await;
        assert!(
            matches!(answer, Err(Error::KeyReused { .. })),
            "{name}: {answer:?}"
        );
    };

    let failed = call("failed", 1)
        .run(|_| async { Err::<(), _>(Failure("no".into())) })
        .await;
    assert_eq!(failed, Err(Failure("no".into())));
    mismatch("failed").await;

    let uncertain = call("uncertain", 1)
        .uncertain_errors()
        .run(|_| async { Err::<(), _>(Error::AlreadyInstalled) })
        .await;
    assert_eq!(uncertain, Err(Error::AlreadyInstalled));
    mismatch("uncertain").await;

    let not_replayable = call("not replayable", 1)
        .run(|_| async { Ok::<_, Error>(Opaque) })
        .await;
    assert!(not_replayable.is_ok());
    mismatch("not replayable").await;

    // Dropped half-way: it stays bound until the next call takes over, and so it does when it is parked.
    let gate = Gate::new();
    let stopped = tokio::spawn({
        let (call, gate) = (call("stopped", 1), gate.clone());
        async move {
            call.run(|_| async move {
                gate.pass().await;
                Ok::<_, Error>(())
            })
            .await
        }
    });
    gate.arrived(1).await;
    stopped.abort();
    assert!(stopped.await.is_err());
    owner.log.await_step(Step::Stopped).await;
    mismatch("stopped").await;
    let parked = call("stopped", 1)
        .run(|_| async { Ok::<_, Error>(()) })
        .await;
    assert!(matches!(parked, Err(Error::Parked { .. })), "{parked:?}");
    mismatch("stopped").await;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Has no encoding.
#[derive(Debug)]
struct Opaque;

impl Serialize for Opaque {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("opaque"))
    }
}

impl<'de> Deserialize<'de> for Opaque {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("opaque"))
    }
}

async fn b16_mismatch_nested_field(world: World) {
    let owner = world.owner().await;
    let _ = owner.enter(charge(&world, request(), 0)).await;

    let mut tampered = request();
    tampered.amount.parts[1].1 = 4;
    let refused = owner.enter(charge(&world, tampered, 0)).await;

    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
}

async fn b18_fingerprint_survives_completion(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let fingerprint = |record: &Record| record.subject.fingerprint.clone();
    let gate = Gate::new();

    let first = a.spawn(held(world.clone(), gate.clone(), "k", 1));
    gate.arrived(1).await;
    let claimed = fingerprint(&*world.record().await);
    world.advance(Duration::from_secs(10)).await;
    a.log.await_step(Step::Heartbeat).await;
    assert_eq!(fingerprint(&*world.record().await), claimed, "a heartbeat");
    a.die_in(first).await;
    world.advance(Duration::from_secs(30)).await;

    let second = b.spawn(held(world.clone(), gate.clone(), "k", 1));
    gate.arrived(2).await;
    assert_eq!(fingerprint(&*world.record().await), claimed, "a takeover");
    gate.open();
    assert_eq!(second.await.expect("it does not panic"), Ok(1));
    assert_eq!(fingerprint(&*world.record().await), claimed, "completion");
}

#[idempotent(name = "fingerprints.pay", key = order, skip(world))]
async fn pay(
    world: &World,
    order: u32,
    amount: u32,
    currency: &str,
    note: &str,
) -> Result<String, Error> {
    world.happened("pay");
    Ok(format!("{amount} {currency}"))
}

async fn b19_mismatch_error_names_what_differs(world: World) {
    let owner = world.owner().await;
    let _ = owner.enter(pay(&world, 1, 1_234, "EUR", "a")).await;

    let refused = owner.enter(pay(&world, 1, 5_678, "USD", "a")).await;

    let Err(error @ Error::KeyReused { .. }) = refused else {
        panic!("{refused:?}")
    };
    let Error::KeyReused { differing, .. } = &error else {
        unreachable!("it was matched above")
    };
    assert_eq!(differing, &["amount", "currency"]);
    let text = format!("{error} {error:?}");
    for value in ["1234", "5678", "EUR", "USD"] {
        assert!(!text.contains(value), "{text}");
    }
    // The stored outcome, for who asks.
    let status = owner
        .idem
        .lookup("fingerprints.pay", None::<&str>, &1)
        .await
        .expect("the store answers");
    let Status::Completed(kept) = status else {
        panic!("{status:?}")
    };
    assert_eq!(kept.decode::<String>().expect("it is text"), "1234 EUR");
}

#[idempotent(name = "fingerprints.released", key = key, on_error = release, skip(world, fails))]
async fn released(world: &World, key: &str, amount: u32, fails: bool) -> Result<u32, Error> {
    world.happened(key);
    if fails {
        return Err(Error::AlreadyInstalled);
    }
    Ok(amount)
}

async fn b20_mismatch_after_release(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(released(&world, "k", 1, true)).await;

    let second = owner.enter(released(&world, "k", 2, false)).await;

    assert_eq!((first, second), (Err(Error::AlreadyInstalled), Ok(2)));
    let third = owner.enter(released(&world, "k", 1, false)).await;
    assert!(matches!(third, Err(Error::KeyReused { .. })), "{third:?}");
}

#[idempotent(name = "fingerprints.off", key = key, fingerprint = ())]
async fn off(world: &World, key: &str, amount: u32) -> Result<u32, Error> {
    world.happened(key);
    Ok(amount)
}

async fn b22_mismatch_off(world: World) {
    let owner = world.owner().await;

    assert_eq!(owner.enter(off(&world, "k", 1)).await, Ok(1));
    assert_eq!(owner.enter(off(&world, "k", 2)).await, Ok(1));

    assert_eq!(world.runs("k"), 1);
}

fn without_case(note: &str) -> String {
    note.to_lowercase()
}

#[idempotent(name = "fingerprints.custom", key = key, fingerprint = without_case(note))]
async fn custom(world: &World, key: &str, note: &str) -> Result<String, Error> {
    world.happened(key);
    Ok(note.into())
}

async fn b28_custom_fingerprint(world: World) {
    let owner = world.owner().await;

    assert_eq!(
        owner.enter(custom(&world, "k", "Tea")).await,
        Ok("Tea".into())
    );
    assert_eq!(
        owner.enter(custom(&world, "k", "TEA")).await,
        Ok("Tea".into())
    );
    let refused = owner.enter(custom(&world, "k", "milk")).await;

    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
    assert_eq!(world.runs("k"), 1);
}

async fn without_case_later(note: &str) -> String {
    tokio::task::yield_now().await;
    without_case(note)
}

#[idempotent(name = "fingerprints.later", key = key, fingerprint = without_case_later(note).await)]
async fn later(world: &World, key: &str, note: &str) -> Result<String, Error> {
    world.happened(key);
    Ok(note.into())
}

async fn b28_async_custom_fingerprint(world: World) {
    let owner = world.owner().await;

    assert_eq!(
        owner.enter(later(&world, "k", "Tea")).await,
        Ok("Tea".into())
    );
    assert_eq!(
        owner.enter(later(&world, "k", "TEA")).await,
        Ok("Tea".into())
    );
    let refused = owner.enter(later(&world, "k", "milk")).await;

    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
}

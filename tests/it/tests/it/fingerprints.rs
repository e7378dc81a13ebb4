//! The parts that must be equal in a retry, and the answer to a key that comes with something else.

mod mismatch;

use std::time::Duration;

use idempotent_runtime::{
    CallOutcome, Error, RecordChange, Status, idempotent, record::Record, testing::Gate,
};
use serde::{Deserialize, Serialize};

use crate::{answers::is_reused, harness::World};

on_every_store![
    b01_key_order_irrelevant,
    b02_array_order_relevant,
    b03_arguments_do_not_run_into_each_other,
    b06_subset_key,
    b07_excluded_fields,
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

    assert!(is_reused(&reordered), "{reordered:?}");
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

    for note in ["Tea", "TEA"] {
        let answer = owner.enter(custom(&world, "k", note)).await;
        assert_eq!(answer, Ok("Tea".into()), "{note}");
    }
    let refused = owner.enter(custom(&world, "k", "milk")).await;

    assert!(is_reused(&refused), "{refused:?}");
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

    for note in ["Tea", "TEA"] {
        let answer = owner.enter(later(&world, "k", note)).await;
        assert_eq!(answer, Ok("Tea".into()), "{note}");
    }
    let refused = owner.enter(later(&world, "k", "milk")).await;

    assert!(is_reused(&refused), "{refused:?}");
}

//! The type and the value come back, for every value.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use idempotent_runtime::{
    BoxError, CallOutcome, Codec, Error, NotSettled, Read, erased_serde, idempotent,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    answers::is_not_replayable,
    harness::{Owner, World, not_settled},
};

on_every_store![
    a09_falsy_results_roundtrip,
    a11_typed_replay,
    a12_none_result_not_encoded_twice,
    f15_size_cap,
    mend_13_a_call_whose_value_was_not_kept_is_settled_with_it,
];

/// A first call, and a duplicate whose body must not run.
async fn twice<T>(owner: &Owner, key: &str, value: T) -> (Result<T, Error>, Result<T, Error>)
where
    T: Serialize + DeserializeOwned,
{
    let call = || owner.call("values.twice").key(key);
    let first = call().run(|_| async move { Ok(value) }).await;
    let second = call()
        .run(|_| async { panic!("a duplicate runs its body") })
        .await;
    (first, second)
}

/// The same, for a value that the codec keeps as it is.
async fn comes_back<T>(owner: &Owner, key: &str, value: T)
where
    T: Serialize + DeserializeOwned + Clone + PartialEq + Debug,
{
    let (first, second) = twice(owner, key, value.clone()).await;
    assert_eq!(first, Ok(value.clone()), "{key}");
    assert_eq!(second, Ok(value), "{key}");
}

async fn a09_falsy_results_roundtrip(world: World) {
    let owner = world.owner().await;

    comes_back(&owner, "unit", ()).await;
    comes_back(&owner, "zero", 0).await;
    comes_back(&owner, "float zero", 0.0).await;
    comes_back(&owner, "empty text", String::new()).await;
    comes_back(&owner, "empty list", Vec::<u8>::new()).await;
    comes_back(&owner, "empty map", BTreeMap::<String, u8>::new()).await;
    comes_back(&owner, "false", false).await;
    comes_back(&owner, "none", None::<u8>).await;

    assert_eq!(world.records().await.len(), 8);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    id: u64,
    lines: Vec<Line>,
    note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Line {
    Item { name: String, cents: i64 },
    Discount(f64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
enum PayError {
    #[error("declined, {left} left")]
    Declined { left: i64 },
    #[error(transparent)]
    Idempotency(#[from] Error),
}

#[idempotent(name = "values.pay", key = order, skip(world))]
async fn pay(world: &World, order: &str, cents: i64) -> Result<Receipt, PayError> {
    world.happened(order);
    if cents > 1_000 {
        return Err(PayError::Declined { left: 1_000 });
    }
    Ok(Receipt {
        id: u64::MAX,
        lines: vec![
            Line::Item {
                name: "tea \u{1f375}".into(),
                cents,
            },
            Line::Discount(0.1 + 0.2),
        ],
        note: None,
    })
}

async fn a11_typed_replay(world: World) {
    let owner = world.owner().await;

    let first = owner.enter(pay(&world, "paid", 500)).await;
    let second = owner.enter(pay(&world, "paid", 500)).await;

    assert!(
        matches!(&first, Ok(receipt) if receipt.lines.len() == 2),
        "{first:?}"
    );
    assert_eq!(second, first);
    let declined = owner.enter(pay(&world, "declined", 5_000)).await;
    assert_eq!(declined, Err(PayError::Declined { left: 1_000 }));
    assert_eq!(
        owner.enter(pay(&world, "declined", 5_000)).await,
        declined,
        "an error comes back as the same variant with the same fields"
    );
    assert_eq!((world.runs("paid"), world.runs("declined")), (1, 1));
}

/// JSON that counts.
#[derive(Clone, Debug, Default)]
struct Counting {
    encoded: Arc<AtomicUsize>,
    decoded: Arc<AtomicUsize>,
}

impl Counting {
    fn so_far(&self) -> (usize, usize) {
        (
            self.encoded.load(Ordering::SeqCst),
            self.decoded.load(Ordering::SeqCst),
        )
    }
}

impl Codec for Counting {
    fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, BoxError> {
        self.encoded.fetch_add(1, Ordering::SeqCst);
        Ok(serde_json::to_vec(value)?)
    }

    fn decode(&self, bytes: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
        self.decoded.fetch_add(1, Ordering::SeqCst);
        let mut json = serde_json::Deserializer::from_slice(bytes);
        read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut json))?;
        Ok(())
    }
}

async fn a12_none_result_not_encoded_twice(world: World) {
    let codec = Counting::default();
    let owner = world
        .owner_with(|builder| builder.codec(codec.clone()))
        .await;
    let call = || {
        owner
            .call("values.unit")
            .key("k")
            .run(|_| async { Ok::<(), Error>(()) })
    };

    assert_eq!(call().await, Ok(()));
    assert_eq!(
        codec.so_far(),
        (1, 1),
        "the first caller gets what is read back"
    );
    assert_eq!(call().await, Ok(()));
    assert_eq!(codec.so_far(), (1, 2));

    owner.assert_answers(&[CallOutcome::Executed, CallOutcome::Replayed]);
}

async fn f15_size_cap(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(10)).await;
    let (world, owner) = (&world, &owner);
    let call = |key: &'static str, value: &'static str| {
        let call = owner.call("values.capped").key(key);
        call.run(move |_| async move {
            world.happened(key);
            Ok::<_, Error>(value.to_owned())
        })
    };

    // In quotes, eight and nine letters are ten and eleven bytes.
    for _ in 0..2 {
        assert_eq!(call("fits", "12345678").await, Ok("12345678".into()));
    }
    let first = call("too long", "123456789").await;
    assert_eq!(
        first,
        Ok("123456789".into()),
        "it happened, and its caller is told"
    );
    let second = call("too long", "123456789").await;
    assert!(is_not_replayable(&second), "{second:?}");

    assert_eq!((world.runs("fits"), world.runs("too long")), (1, 1));
}

async fn mend_13_a_call_whose_value_was_not_kept_is_settled_with_it(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(10)).await;
    let call = || {
        let call = owner.call("values.capped").key("k");
        call.run(async |_| {
            world.happened("k");
            Ok::<_, Error>("123456789".to_owned())
        })
    };
    assert!(call().await.is_ok());
    for _ in 0..2 {
        assert!(is_not_replayable(&call().await));
    }
    let settle = || {
        let settle = owner.idem.settle("values.capped", None::<&str>, "k");
        settle.expect("a key")
    };
    let refused = not_settled(settle().as_done().await);
    assert_eq!(refused, Some(NotSettled::AlreadySettled));
    let settled = settle().with_value(&"short").await;
    settled.expect("its value is not known");
    let other = not_settled(settle().with_value(&"other").await);
    assert_eq!(other, Some(NotSettled::AlreadySettled));
    for _ in 0..2 {
        assert_eq!(call().await, Ok("short".to_owned()));
    }
    assert_eq!(world.runs("k"), 1);
}

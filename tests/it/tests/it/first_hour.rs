//! The first hour of a new user. A test bears the number of the point that it shows.

mod stores;

use std::collections::HashSet;

use idempotent_runtime::{
    Error, ErrorVerdict, Idempotency, NotSettled, idempotent, identity::RecordId,
};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};

use crate::{
    answers::is_not_replayable,
    harness::{World, not_settled, said_during},
};

on_every_store![
    first_hour_02_each_variant_has_its_verdict,
    first_hour_02_a_call_that_got_no_answer_inside_another_charges_once,
    first_hour_02_an_err_that_cannot_be_encoded_says_what_to_write,
    first_hour_04_an_old_name_that_was_never_derived_is_told,
    first_hour_09_a_value_that_comes_back_as_another_is_not_replayable,
    first_hour_10_what_the_function_cannot_read_is_not_settled,
    first_hour_10_a_record_is_settled_by_its_id,
    first_hour_10_a_value_that_would_be_another_is_not_settled,
];

#[derive(Debug, PartialEq, Serialize, Deserialize, ErrorVerdict, thiserror::Error)]
enum PayError {
    #[verdict(replay)]
    #[error("the card was declined")]
    Declined,
    #[verdict(release)]
    #[serde(skip)]
    #[error("the database failed")]
    Database(#[from] NotStorable),
    #[verdict(uncertain)]
    #[error("the gateway did not answer")]
    NoAnswer,
    #[verdict(replay)]
    #[error(transparent)]
    Idempotency(#[from] Error),
}

/// As `sqlx::Error`, it has no serde.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("pool timed out")]
struct NotStorable;

#[idempotent(name = "first_hour.pay", key = order, on_error = ErrorVerdict::verdict, skip(world))]
async fn pay(world: &World, order: &'static str) -> Result<u64, PayError> {
    world.happened(order);
    match order {
        "declined" => Err(PayError::Declined),
        "no answer" => Err(PayError::NoAnswer),
        _ => Err(NotStorable)?,
    }
}

async fn first_hour_02_each_variant_has_its_verdict(world: World) {
    let owner = world.owner().await;
    let twice = async |order| {
        let first = owner.enter(pay(&world, order)).await;
        (
            first,
            owner.enter(pay(&world, order)).await,
            world.runs(order),
        )
    };
    let declined = || Err(PayError::Declined);
    assert_eq!(twice("declined").await, (declined(), declined(), 1));
    let failed = || Err(PayError::Database(NotStorable));
    assert_eq!(twice("database").await, (failed(), failed(), 2));
    let (first, again, runs) = twice("no answer").await;
    assert_eq!((first, runs), (Err(PayError::NoAnswer), 1));
    let is_uncertain = matches!(again, Err(PayError::Idempotency(Error::Uncertain { .. })));
    assert!(is_uncertain, "{again:?}");
}

#[idempotent(name = "first_hour.receipt", key = order, on_crash = uncertain)]
async fn receipt(order: u64) -> Result<u64, Error> {
    Err(Error::InvalidPolicy("it got no answer"))
}

#[idempotent(
    name = "first_hour.charge",
    key = order,
    on_crash = uncertain,
    on_error = ErrorVerdict::verdict,
    skip(world)
)]
async fn charge(world: &World, order: u64) -> Result<u64, PayError> {
    world.happened("charged");
    Ok(receipt(order).await?)
}

/// The verdict of the README's listings.
async fn first_hour_02_a_call_that_got_no_answer_inside_another_charges_once(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(charge(&world, 1)).await.is_err());
    let again = owner.enter(charge(&world, 1)).await;
    let is_uncertain = matches!(again, Err(PayError::Idempotency(Error::Uncertain { .. })));
    assert!(is_uncertain, "{again:?}");
    assert_eq!(world.runs("charged"), 1);
}

/// An error that serde knows, and cannot encode.
#[derive(Debug, Deserialize)]
enum PlainError {
    Idempotency(Error),
    Unencodable,
}

impl Serialize for PlainError {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("the secret of the error"))
    }
}

impl From<Error> for PlainError {
    fn from(error: Error) -> Self {
        Self::Idempotency(error)
    }
}

#[idempotent(name = "first_hour.plain", key = order)]
async fn plain(order: u64) -> Result<u64, PlainError> {
    Err(PlainError::Unencodable)
}

async fn first_hour_02_an_err_that_cannot_be_encoded_says_what_to_write(world: World) {
    let owner = world.owner().await;
    let (answer, said) = said_during(owner.enter(plain(1))).await;
    assert!(matches!(answer, Err(PlainError::Unencodable)), "{answer:?}");
    for part in [
        "WARN",
        "first_hour.plain",
        "the `Err` cannot be encoded",
        "`on_error = ErrorVerdict::verdict`",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(!said.contains("secret"), "{said}");
    let again = owner.enter(plain(1)).await;
    let is_told = matches!(
        again,
        Err(PlainError::Idempotency(Error::NotReplayable { .. }))
    );
    assert!(is_told, "{again:?}");
}

#[idempotent(name = "first_hour.renamed", key = order, also_accept = "my-package::my-crate::pay")]
async fn renamed(order: u64) -> Result<u64, Error> {
    Ok(order)
}

#[idempotent(name = "first_hour.renamed_well", key = order, also_accept = "my-package::my_crate::pay")]
async fn renamed_well(order: u64) -> Result<u64, Error> {
    Ok(order)
}

async fn first_hour_04_an_old_name_that_was_never_derived_is_told(world: World) {
    let owner = world.owner().await;
    let calls = async { [renamed(1).await, renamed(1).await, renamed_well(1).await] };
    let (answers, said) = said_during(owner.enter(calls)).await;
    assert_eq!(answers, [Ok(1), Ok(1), Ok(1)]);
    assert_eq!(
        said.matches("`also_accept` finds no record").count(),
        1,
        "{said}"
    );
    assert!(
        said.contains("my-package::my_crate::module::function"),
        "{said}"
    );
}

async fn first_hour_09_a_value_that_comes_back_as_another_is_not_replayable(world: World) {
    async fn twice<T>(world: &World, key: &str, value: T) -> (Result<T, Error>, Result<T, Error>)
    where
        T: Clone + Serialize + DeserializeOwned + Send,
    {
        let owner = world.owner().await;
        let call = || {
            let value = value.clone();
            owner
                .call("charge")
                .key(key)
                .run(move |_| async move { Ok::<_, Error>(value) })
        };
        (call().await, call().await)
    }
    macro_rules! not_replayable {
        ($key:literal, $value:expr) => {
            let (first, again) = twice(&world, $key, $value).await;
            assert_eq!(first, Ok($value), $key);
            assert!(is_not_replayable(&again), "{}: {again:?}", $key);
        };
    }
    not_replayable!("some unit", Some(()));
    not_replayable!("some none", Some(None::<u8>));
    not_replayable!("inside", vec![(1, Some(Some(3))), (2, Some(None))]);
    let (first, again) = twice(&world, "nan", Some(f64::NAN)).await;
    assert!(first.is_ok_and(|value| value.is_some_and(f64::is_nan)));
    assert!(is_not_replayable(&again), "{again:?}");

    let set: HashSet<u32> = (0..100).collect();
    assert_eq!(
        twice(&world, "set", set.clone()).await,
        (Ok(set.clone()), Ok(set))
    );
    let none = None::<Option<u8>>;
    assert_eq!(twice(&world, "none", none).await, (Ok(none), Ok(none)));
}

#[idempotent(name = "first_hour.doubtful", key = order, on_error = uncertain)]
async fn doubtful(order: u64) -> Result<u64, Error> {
    Err(Error::InvalidPolicy("the gateway did not answer"))
}

async fn first_hour_10_what_the_function_cannot_read_is_not_settled(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(doubtful(1)).await.is_err());
    let settle = || {
        let settle = owner.idem.settle("first_hour.doubtful", None::<&str>, &1);
        settle.expect("a key")
    };

    let value = settle().with_value(&"receipt").await;
    assert_eq!(not_settled(value), Some(NotSettled::Unreadable));
    let error = settle().with_error(&"it did not happen").await;
    assert_eq!(not_settled(error), Some(NotSettled::Unreadable));
    assert!(matches!(
        owner.enter(doubtful(1)).await,
        Err(Error::Uncertain { .. })
    ));

    assert!(settle().with_value(&7_u64).await.is_ok());
    assert_eq!(owner.enter(doubtful(1)).await, Ok(7));
}

#[idempotent(name = "first_hour.measured", key = order, on_error = uncertain)]
async fn measured(order: u64) -> Result<Option<f64>, Error> {
    Err(Error::InvalidPolicy("the gauge did not answer"))
}

async fn first_hour_10_a_value_that_would_be_another_is_not_settled(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(measured(1)).await.is_err());
    let settle = || {
        owner
            .idem
            .settle("first_hour.measured", None::<&str>, &1)
            .expect("a key")
    };
    let lost = settle().with_value(&Some(f64::NAN)).await;
    assert_eq!(not_settled(lost), Some(NotSettled::Unreadable));
    let other = settle().with_value(&()).await;
    assert_eq!(not_settled(other), Some(NotSettled::Unreadable));
    assert!(settle().with_value(&Some(0.5)).await.is_ok());
    assert_eq!(owner.enter(measured(1)).await, Ok(Some(0.5)));
}

async fn first_hour_10_a_record_is_settled_by_its_id(world: World) {
    let owner = world.owner().await;
    assert!(owner.enter(doubtful(2)).await.is_err());
    let refused = owner.enter(doubtful(2)).await;
    let Err(Error::Uncertain { id, .. }) = &refused else {
        panic!("{refused:?}");
    };
    let said = refused.as_ref().expect_err("it is uncertain").to_string();
    let written = said.rsplit(' ').next().expect("its last word");
    assert_eq!(written.parse(), Ok(*id));
    assert_eq!(world.records().await[0].0, *id);

    let settle = owner.idem.settle_id(*id).await.expect("it stands");
    assert!(settle.with_value(&9_u64).await.is_ok());
    assert_eq!(owner.enter(doubtful(2)).await, Ok(9));
    let other = owner.idem.settle_id(RecordId::from_bytes([7; 32])).await;
    assert_eq!(not_settled(other.map(drop)), Some(NotSettled::UnknownKey));
}

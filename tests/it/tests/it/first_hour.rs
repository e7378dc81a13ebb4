//! What a new user meets in the first hour. A test bears the number of what it shows.

use idempotent_runtime::{Error, ErrorVerdict, idempotent};
use serde::{Deserialize, Serialize, Serializer};

use crate::harness::{World, said_during};

on_every_store![
    first_hour_02_each_variant_has_its_verdict,
    first_hour_02_an_err_that_cannot_be_encoded_says_what_to_write,
    first_hour_04_an_old_name_that_was_never_derived_is_told,
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
    #[verdict(release)]
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

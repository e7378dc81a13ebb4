//! Functions in which other macros have a hand.

use std::{marker::PhantomData, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{Error, Idempotency, InFlight, KeyPart, Reconciled, idempotent};

macro_rules! made {
    ($name:ident, $argument:ident, $tenant:literal, $region:literal, $ask:path, $patience:literal) => {
        #[idempotent(key = ($argument.0, $tenant, $region.to_owned()), skip($argument), on_crash = reconcile($ask), in_flight = wait($patience))]
        async fn $name($argument: (u64, String)) -> Result<String, Error> {
            Ok(format!("outcome of {}", $argument.1))
        }
    };
}

async fn ask(_: &(u64, String)) -> Reconciled<String, Error> {
    Reconciled::Unknown
}

made!(made_by_a_macro, request, "{request.1}", "eu", ask, "3s");

#[tokio::test]
async fn a_template_in_a_tuple_that_a_macro_wrote_is_one() {
    let idem = Idempotency::memory();
    let both = async {
        (
            made_by_a_macro((1, "ours".into())).await,
            made_by_a_macro((1, "theirs".into())).await,
        )
    };

    let answers = idem.enter(both).await;

    let of = |tenant| Ok(format!("outcome of {tenant}"));
    assert_eq!(answers, (of("ours"), of("theirs")));
    let patience = InFlight::Wait(Duration::from_secs(3));
    let operations = idem.operations();
    let seen = operations.iter().find(|operation| operation.is_seen);
    assert_eq!(seen.and_then(|seen| seen.in_flight), Some(patience));
}

macro_rules! key_of {
    ($name:ident, $marker:ty) => {
        #[derive(KeyPart)]
        struct $name(u64, $marker);
    };
}

key_of!(OrderId, PhantomData<fn() -> f64>);

#[tokio::test]
async fn a_marker_that_a_macro_wrote_is_no_part_of_the_key() {
    let idem = Idempotency::memory();
    let call = |id| {
        let key = OrderId(id, PhantomData);
        idem.call("shapes.marked")
            .key(&key)
            .run(move |_| async move { Ok::<_, Error>(id) })
    };

    assert_eq!((call(1).await, call(2).await), (Ok(1), Ok(2)));
}

/// An argument that says nothing of the request, and cannot be fingerprinted.
struct Clock(u64);

#[async_trait]
trait Charges {
    async fn charge(&self, id: u64, _: Clock) -> Result<u64, Error>;
}

struct Shop;

#[async_trait]
impl Charges for Shop {
    #[idempotent(name = "shapes.charges", key = id)]
    async fn charge(&self, id: u64, _: Clock) -> Result<u64, Error> {
        Ok(id)
    }
}

#[tokio::test]
async fn what_is_not_named_is_not_compared_under_async_trait_either() {
    assert!(Clock(1).0 < Clock(2).0);
    let idem = Idempotency::memory();
    let both = async {
        (
            Shop.charge(7, Clock(1)).await,
            Shop.charge(7, Clock(2)).await,
        )
    };

    assert_eq!(idem.enter(both).await, (Ok(7), Ok(7)));
}

#[idempotent(name = "shapes.raw", key = format!("{type}"))]
async fn raw(r#type: u64) -> Result<u64, Error> {
    Ok(r#type)
}

#[tokio::test]
async fn a_format_string_mentions_a_raw_identifier() {
    assert_eq!(Idempotency::memory().enter(raw(3)).await, Ok(3));
}

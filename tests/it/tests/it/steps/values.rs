//! The values of steps, and code that changed between two attempts.

use std::collections::BTreeMap;

use idempotent_runtime::{Error, Stored, Verdict, step, step_version};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    answers::{is_not_replayable, is_unreadable},
    harness::{Owner, World},
};

on_every_store![
    j02_a_recorded_error_is_given_again_without_running,
    j02_an_error_is_not_recorded_without_a_word,
    j06_calls_that_began_before_the_code_changed_finish_on_the_old_path,
    j07_every_value_comes_back,
    j07_a_value_that_cannot_be_kept_is_not_replayable,
    j07_a_reference_is_loaded_on_every_attempt,
    a_step_with_other_arguments_is_refused,
    mend_34_arguments_of_a_step_that_were_given_whole_are_called_by_their_word,
    a_step_of_another_type_is_unreadable_or_upgraded,
    steps_may_be_added_removed_and_reordered,
];

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, thiserror::Error)]
enum Refused {
    #[error("the card was declined")]
    Declined,
    #[error("the gateway is busy")]
    Busy,
    #[error(transparent)]
    Ours(#[from] Error),
}

/// Runs a body that ends in an error, so that the call is given back, and then one that may end.
async fn twice<T>(
    owner: &Owner,
    first: impl AsyncFnOnce() -> Result<T, Refused>,
    second: impl AsyncFnOnce() -> Result<T, Refused>,
) -> Result<T, Refused>
where
    T: Serialize + DeserializeOwned + std::fmt::Debug,
{
    let call = || owner.call("trip").key("k").release_errors();
    let before = call().run(async |_| {
        first().await?;
        Err::<T, _>(Refused::Busy)
    });
    assert!(before.await.is_err(), "the first attempt ends in an error");
    call().run(async |_| second().await).await
}

async fn j02_a_recorded_error_is_given_again_without_running(world: World) {
    let owner = world.owner().await;
    let verdict = |error: &Refused| match error {
        Refused::Declined => Verdict::Replay,
        _ => Verdict::Release,
    };
    let charge = async || {
        let body = async |_| {
            world.happened("charge");
            Err::<u32, _>(Refused::Declined)
        };
        match step("charge", body).on_error(verdict).await {
            Err(Refused::Declined) => Ok(402),
            other => other,
        }
    };
    assert_eq!(twice(&owner, charge, charge).await, Ok(402));
    assert_eq!(world.runs("charge"), 1);
}

async fn j02_an_error_is_not_recorded_without_a_word(world: World) {
    let owner = world.owner().await;
    let charge = async || {
        let body = async |_| {
            world.happened("charge");
            Err::<u32, _>(Refused::Declined)
        };
        match step("charge", body).await {
            Err(Refused::Declined) => Ok(402),
            other => other,
        }
    };
    assert_eq!(twice(&owner, charge, charge).await, Ok(402));
    assert_eq!(world.runs("charge"), 2);
}

async fn j06_calls_that_began_before_the_code_changed_finish_on_the_old_path(world: World) {
    let owner = world.owner().await;
    let old = async || step("choose", async |_| Ok("old".to_owned())).await;
    let new = async || {
        let takes_new = step_version("two carriers").await?;
        step("choose", async |_| Ok::<_, Refused>(takes_new.to_string())).await?;
        assert_eq!(step_version("other").await, Ok(takes_new));
        Ok(takes_new.to_string())
    };
    assert_eq!(twice(&owner, old, new).await, Ok("false".to_owned()));
    world
        .advance(std::time::Duration::from_secs(48 * 3600))
        .await;
    assert_eq!(twice(&owner, new, new).await, Ok("true".to_owned()));
}

async fn j07_every_value_comes_back(world: World) {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Seat {
        row: u8,
        notes: BTreeMap<String, Option<f64>>,
        paid: Option<()>,
    }
    let owner = world.owner().await;
    let seat = Seat {
        row: 12,
        notes: BTreeMap::from([("width".into(), Some(0.1)), ("näme".into(), None)]),
        paid: None,
    };
    let all = async || {
        let none = step("none", async |_| Ok::<_, Refused>(None::<u8>)).await?;
        step("unit", async |_| Ok::<_, Refused>(())).await?;
        let text = step("text", async |_| Ok::<_, Refused>(String::new())).await?;
        let seat = step("seat", async |_| Ok::<_, Refused>(seat.clone())).await?;
        Ok((none, text, seat))
    };
    let answer = twice(&owner, all, all).await;
    assert_eq!(answer, Ok((None, String::new(), seat.clone())));
}

async fn j07_a_value_that_cannot_be_kept_is_not_replayable(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(64)).await;
    let large = async || {
        let body = async |_| Ok::<_, Refused>("x".repeat(65));
        let value = step("large", body).await?;
        Ok(value.len())
    };
    let call = || owner.call("trip").key("k").release_errors();
    let first = call().run(async |_| {
        assert_eq!(large().await, Ok(65), "this attempt goes on with it");
        Err::<usize, _>(Refused::Busy)
    });
    assert!(first.await.is_err());
    let answer = call().run(async |_| large().await).await;
    let Err(Refused::Ours(error)) = answer else {
        panic!("{answer:?}");
    };
    assert!(is_not_replayable(&Err::<(), _>(error)));
}

async fn j07_a_reference_is_loaded_on_every_attempt(world: World) {
    let owner = world.owner().await;
    let report = async || {
        let body = async |_| {
            world.happened("report");
            Ok::<_, Refused>(("id-7".to_owned(), "made"))
        };
        let save = |report: &(String, &'static str)| report.0.clone();
        let load = async |id: String| Ok::<_, Error>((id, "loaded"));
        let (id, how) = step("report", body).reference(save, load).await?;
        Ok(format!("{how} {id}"))
    };
    assert_eq!(
        twice(&owner, report, report).await,
        Ok("loaded id-7".to_owned())
    );
    assert_eq!(world.runs("report"), 1);
}

async fn a_step_with_other_arguments_is_refused(world: World) {
    let owner = world.owner().await;
    let charge = |amount: u32| {
        let world = &world;
        async move || {
            let body = async |_| {
                world.happened("charge");
                Ok::<_, Refused>(amount)
            };
            step("charge", body)
                .argument("amount", &amount)
                .argument("currency", &"EUR")
                .await
        }
    };
    let answer = twice(&owner, charge(1), charge(2)).await;
    let Err(Refused::Ours(Error::StepChanged {
        step, differing, ..
    })) = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!(
        (step, &differing[..]),
        ("charge", &["amount".to_owned()][..])
    );
    let call = owner.call("trip").key("k").release_errors();
    assert_eq!(call.run(async |_| charge(1)().await).await, Ok(1));
    assert_eq!(world.runs("charge"), 1);
}

async fn mend_34_arguments_of_a_step_that_were_given_whole_are_called_by_their_word(world: World) {
    let owner = world.owner().await;
    let charge = |amount: u32| {
        async move || {
            let body = async |_| Ok::<_, Refused>(amount);
            step("charge", body).arguments(&amount).await
        }
    };
    let answer = twice(&owner, charge(1), charge(2)).await;
    let Err(Refused::Ours(Error::StepChanged { differing, .. })) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(differing, ["arguments"]);
}

async fn a_step_of_another_type_is_unreadable_or_upgraded(world: World) {
    let owner = world.owner().await;
    let number = async || {
        step("price", async |_| Ok(1_250_u32))
            .await
            .map(|it| it.to_string())
    };
    let text = async || step("price", async |_| Ok("12.50".to_owned())).await;
    let answer = twice(&owner, number, text).await;
    let Err(Refused::Ours(error)) = answer else {
        panic!("{answer:?}");
    };
    assert!(is_unreadable(&Err::<(), _>(error)));
    let call = owner.call("trip").key("k").release_errors();
    let upgraded = call.run(async |_| {
        step("price", async |_| Ok::<_, Refused>("12.50".to_owned()))
            .version(1)
            .upgrade(|stored: Stored| Ok(format!("{} cents", stored.decode::<u32>()?)))
            .await
    });
    assert_eq!(upgraded.await, Ok("1250 cents".to_owned()));
}

async fn steps_may_be_added_removed_and_reordered(world: World) {
    let owner = world.owner().await;
    let part = async |name: &'static str| {
        let body = async |_| {
            world.happened(name);
            Ok::<_, Refused>(name.to_owned())
        };
        step(name, body).await
    };
    let before = async || Ok([part("a").await?, part("b").await?, part("c").await?].concat());
    let after = async || Ok([part("c").await?, part("new").await?, part("a").await?].concat());
    assert_eq!(twice(&owner, before, after).await, Ok("cnewa".to_owned()));
    assert_eq!(["a", "b", "c", "new"].map(|name| world.runs(name)), [1; 4]);
}

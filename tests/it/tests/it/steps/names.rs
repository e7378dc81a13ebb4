//! How steps are found, and where they can stand.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use idempotent_runtime::{Error, FencingToken, StepContext, current, step, testing::Gate};

use super::{Trip, successor};
use crate::harness::World;

on_every_store![
    j10_a_name_is_taken_once_in_an_attempt,
    j10_a_step_whose_future_was_dropped_may_run_again,
    j10_a_step_whose_error_is_not_recorded_may_run_again,
    j11_steps_side_by_side_are_found_by_their_names,
    j11_a_step_in_a_task_of_its_own,
    j13_a_nested_call_in_a_step_is_a_record_of_its_own,
    a_step_runs_only_where_it_can_stand,
    a_step_has_a_name_of_1_to_1024_bytes,
    a_key_of_a_step_is_no_key_of_its_call,
    a_step_of_an_unprotected_call_runs_without_a_record,
    a_thousand_steps_in_a_loop,
];

/// A step that gives its own name.
async fn named(world: &World, name: &'static str) -> Result<String, Error> {
    let body = async |_| {
        world.happened(name);
        tokio::task::yield_now().await;
        Ok::<_, Error>(name.to_owned())
    };
    step(name, body).await
}

async fn j10_a_name_is_taken_once_in_an_attempt(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k");
    let answer = call
        .run(async |_| {
            let (first, second) = tokio::join!(named(&world, "a"), named(&world, "a"));
            let third = named(&world, "a").await;
            Ok::<_, Error>([first, second, third].map(|it| match it {
                Ok(name) => name,
                Err(Error::DuplicateStep { step, .. }) => format!("{step} is taken"),
                Err(other) => panic!("{other}"),
            }))
        })
        .await;
    assert_eq!(
        answer,
        Ok(["a", "a is taken", "a is taken"].map(String::from))
    );
    assert_eq!(world.runs("a"), 1);
}

async fn j10_a_step_whose_future_was_dropped_may_run_again(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k");
    let answer = call
        .run(async |_| {
            let gate = Gate::new();
            let dropped = async |_| {
                gate.pass().await;
                Ok::<_, Error>("dropped".to_owned())
            };
            tokio::select! {
                biased;
                _ = step("a", dropped) => panic!("nobody opens the gate"),
                () = gate.arrived(1) => {}
            }
            named(&world, "a").await
        })
        .await;
    assert_eq!(answer, Ok("a".to_owned()));
}

async fn j10_a_step_whose_error_is_not_recorded_may_run_again(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k");
    let answer = call
        .run(async |_| {
            let fails = async |_| Err::<String, _>(Error::InvalidPolicy("a planned error"));
            assert!(step("a", fails).await.is_err());
            named(&world, "a").await
        })
        .await;
    assert_eq!(answer, Ok("a".to_owned()));
}

async fn j11_steps_side_by_side_are_found_by_their_names(world: World) {
    const ITEMS: u64 = 20;
    let owner = world.owner().await;
    let run = async |order: fn(u64) -> u64, ends: bool| {
        let call = owner.call("trip").key("k");
        call.run(async |_| {
            let body = |item: u64| {
                let world = &world;
                async move |_: StepContext| {
                    world.happened(&format!("item {item}"));
                    for _ in 0..item % 3 {
                        tokio::task::yield_now().await;
                    }
                    Ok::<_, Error>(item * 10)
                }
            };
            let items = (0..ITEMS).map(order);
            let steps = items.map(async |item| {
                let value = step(("item", item), body(item))
                    .arguments(&item)
                    .run()
                    .await?;
                Ok::<_, Error>((item, value))
            });
            let mut steps: FuturesUnordered<_> = steps.collect();
            let mut found = Vec::new();
            while let Some(one) = steps.next().await {
                found.push(one?);
                if !ends && found.len() == 7 {
                    return Err(Error::InvalidPolicy("a planned error"));
                }
            }
            found.sort_unstable();
            Ok::<_, Error>(found)
        })
        .await
    };
    assert!(run(|item| item, false).await.is_err());
    let found = run(|item| ITEMS - 1 - item, true)
        .await
        .expect("it goes on");
    let expected: Vec<_> = (0..ITEMS).map(|item| (item, item * 10)).collect();
    assert_eq!(found, expected);
}

async fn j11_a_step_in_a_task_of_its_own(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k");
    let shared = Arc::new(world.clone());
    let answer = call
        .run(async |attempt| {
            let lost = tokio::spawn(step("a", async |_| Ok::<_, Error>(1)).into_future());
            let lost = lost.await.expect("no panic");
            assert!(matches!(lost, Err(Error::MisplacedStep { .. })), "{lost:?}");
            let world = Arc::clone(&shared);
            let entered = attempt.enter(async move { named(&world, "a").await });
            tokio::spawn(entered).await.expect("no panic")
        })
        .await;
    assert_eq!(answer, Ok("a".to_owned()));
    assert_eq!(world.runs("a"), 1);
}

async fn j13_a_nested_call_in_a_step_is_a_record_of_its_own(world: World) {
    let owner = world.owner().await;
    let outer = || {
        let call = owner.call("outer").key("k");
        call.run(async |_| {
            let nested = async |s: StepContext| {
                let inner = owner.call("inner").key(s.key().as_str());
                inner
                    .run(async |_| {
                        let part = named(&world, "part").await?;
                        world.happened("inner");
                        Ok::<_, Error>(part)
                    })
                    .await
            };
            step("nested", nested).await
        })
    };
    let first = outer().await;
    assert_eq!(first, Ok("part".to_owned()));
    assert_eq!(outer().await, first);
    assert_eq!((world.runs("inner"), world.records().await.len()), (1, 2));
}

async fn a_step_runs_only_where_it_can_stand(world: World) {
    let misplaced = |answer: Result<u32, Error>| matches!(answer, Err(Error::MisplacedStep { .. }));
    let body = async |_| {
        world.happened("body");
        Ok::<_, Error>(1)
    };
    assert!(misplaced(step("outside", body).await));
    let owner = world.owner().await;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let call = owner.call("trip").key("k");
    let answer = call
        .run(async |_| {
            let outer = async |_| {
                assert!(misplaced(step("inside", body).await));
                Ok::<_, Error>(2)
            };
            assert!(sender.send(current()).is_ok());
            step("outer", outer).await
        })
        .await;
    assert_eq!(answer, Ok(2));
    let attempt = receiver.await.expect("the body sent it");
    let late = attempt.enter(async { step("late", body).await }).await;
    assert!(matches!(late, Err(Error::LeaseLost { .. })), "{late:?}");
    assert_eq!(world.runs("body"), 0);
}

async fn a_step_has_a_name_of_1_to_1024_bytes(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k");
    let answer = call
        .run(async |_| {
            let refused = async |rest: String| {
                let body = async |_| {
                    world.happened("body");
                    Ok::<_, Error>(())
                };
                let answer = step(("", rest), body).await;
                matches!(
                    answer,
                    Err(Error::InvalidKey {
                        part: "step name",
                        ..
                    })
                )
            };
            Ok::<_, Error>([
                refused(String::new()).await,
                refused("n".repeat(1025)).await,
                refused("n".repeat(1020)).await,
            ])
        })
        .await;
    assert_eq!(answer, Ok([true, true, false]));
    assert_eq!(world.runs("body"), 1);
}

async fn a_key_of_a_step_is_no_key_of_its_call(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k");
    let keys = call
        .run(async |attempt| {
            let own = async |s: StepContext| {
                let token = s.token().map(FencingToken::as_u64);
                Ok::<_, Error>((s.key(), s.child_key("mail"), token))
            };
            let (key, mail, token) = step("flight", own).await?;
            assert_eq!(token, attempt.fencing_token().map(FencingToken::as_u64));
            let others = ["flight", "step", "mail"].map(|name| attempt.child_key(name));
            Ok::<_, Error>((vec![key, mail], others.to_vec()))
        })
        .await;
    let (own, others) = keys.expect("it ends");
    assert!(own[0] != own[1] && own.iter().all(|key| !others.contains(key)));
}

async fn a_step_of_an_unprotected_call_runs_without_a_record(world: World) {
    let owner = world.owner().await;
    let call = || owner.call("trip").key("k").unprotected();
    for _ in 0..2 {
        let answer = call().run(async |_| named(&world, "a").await).await;
        assert_eq!(answer, Ok("a".to_owned()));
    }
    assert_eq!(world.runs("a"), 2);
    let once = async |_| {
        step("once", async |_| Ok::<_, Error>(()))
            .at_most_once()
            .await
    };
    let answer = call().run(once).await;
    assert!(
        matches!(answer, Err(Error::MisplacedStep { .. })),
        "{answer:?}"
    );
    let off = world.owner_with(|builder| builder.enabled(false)).await;
    let answer = off.call("trip").key("k").run(once).await;
    assert_eq!(answer, Ok(()));
    assert_eq!(world.records().await.len(), 0);
}

async fn a_thousand_steps_in_a_loop(world: World) {
    const STEPS: u32 = 1_000;
    let trip = Trip::of(&world, &world.owner().await);
    let call = trip.owner.call("trip").key("k");
    let sum = |until: u32| {
        let world = world.clone();
        async move |_| {
            let mut sum = 0;
            for item in 0..until {
                let body = async |_| {
                    world.happened("item");
                    Ok::<_, Error>(item)
                };
                sum += step(("item", item), body).await?;
            }
            match until {
                STEPS => Ok(sum),
                _ => Err(Error::InvalidPolicy("a planned error")),
            }
        }
    };
    assert!(call.run(sum(STEPS / 2)).await.is_err());
    let owner = successor(&world).await;
    let answer = owner.call("trip").key("k").run(sum(STEPS)).await;
    assert_eq!(answer, Ok((0..STEPS).sum()));
    assert_eq!(world.runs("item"), STEPS as usize);
}

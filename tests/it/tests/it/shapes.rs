//! Functions of every shape, and what stands around them.

mod generated;

use idempotent_runtime::{
    CallOutcome, Error, Idempotency, current, idempotent, record::State, testing::Gate,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::oneshot;

use crate::harness::{World, said_during};

on_every_store![
    a17_recursion_same_key,
    a17_recursion_through_another_owner,
    a17_recursion_through_a_detached_call,
    a17_a_body_that_has_ended_is_no_recursion,
    mend_35_the_same_call_over_another_store_is_no_recursion,
    a18_generic_functions,
    a19_method_receiver,
    a20_composes_with_other_attributes,
    a20_composes_with_a_retry_outside,
    a21_async_first_class,
    a21_a_detached_call_keeps_the_handle_that_was_entered,
];

#[idempotent(name = "shapes.recurse", key = key, skip(world))]
async fn recurse(world: &World, key: &str) -> Result<u32, Error> {
    world.happened(key);
    Box::pin(recurse(world, key)).await
}

async fn a17_recursion_same_key(world: World) {
    let owner = world.owner().await;

    let answer = owner.enter(recurse(&world, "k")).await;

    assert!(matches!(answer, Err(Error::Recursive { .. })), "{answer:?}");
    assert_eq!(world.runs("k"), 1);
    owner.assert_answers(&[CallOutcome::Refused, CallOutcome::Released]);
    // The refusal of the inner call is not the outer call's outcome.
    assert_eq!(world.record().await.state, State::Released);
}

async fn a17_recursion_through_another_owner(world: World) {
    let (outer, inner) = (world.owner().await, world.owner().await);

    let answer: Result<u32, Error> = outer
        .call("shapes.through")
        .key("k")
        .run(|_| async {
            let call = inner.call("shapes.through").key("k");
            call.run(|_| async { Ok(1) }).await
        })
        .await;

    assert!(matches!(answer, Err(Error::Recursive { .. })), "{answer:?}");
}

async fn a17_recursion_through_a_detached_call(world: World) {
    let owner = world.owner().await;
    let around = || owner.call("shapes.around").key("k");

    let (again, back) = (around(), owner.call("shapes.back").key("k"));
    let answer: Result<u32, Error> = around()
        .run(|_| back.run_detached(|_| again.run(|_| async { Ok(1) })))
        .await;

    assert!(matches!(answer, Err(Error::Recursive { .. })), "{answer:?}");
}

/// Operation, scope and key make the id, and another store has a record of its own under it.
async fn mend_35_the_same_call_over_another_store_is_no_recursion(world: World) {
    let (here, again) = (world.owner().await, world.owner().await);
    let (here, again, other) = (&here.idem, &again.idem, &Idempotency::memory());
    for (key, [outer, inner]) in [("out", [here, other]), ("in", [other, here])] {
        let call = |idem: &Idempotency| idem.call("shapes.stores").key(key);
        let answer = call(outer).run(async |_| {
            let through = call(inner).run(async |_| {
                // It is the one that runs around both.
                let back = call(outer).run(async |_| Ok::<_, Error>(0)).await;
                assert!(matches!(back, Err(Error::Recursive { .. })), "{back:?}");
                let back = call(again).run(async |_| Ok::<_, Error>(0)).await;
                assert!(matches!(back, Err(Error::Recursive { .. })), "{back:?}");
                world.happened(key);
                Ok::<_, Error>(1)
            });
            through.await.map(|through| through + 1)
        });
        let answer = answer.await;
        assert_eq!(answer, Ok(2));
        let [inner, outer] = [inner, outer].map(|idem| call(idem).run(async |_| Ok(0)));
        assert_eq!((inner.await, outer.await), (Ok::<_, Error>(1), answer));
        assert_eq!(world.runs(key), 1);
    }
}

/// A task that a body leaves behind with its attempt may call again once the body has returned.
async fn a17_a_body_that_has_ended_is_no_recursion(world: World) {
    let owner = world.owner().await;
    let again = owner.call("shapes.left").key("k");
    let ended = Gate::new();
    let left = ended.clone();
    let (sent, received) = oneshot::channel();

    let call = owner.call("shapes.left").key("k");
    let answer = call
        .run(|attempt| async move {
            let behind = attempt.enter(async move {
                left.pass().await;
                again.run(|_| async { Ok::<_, Error>(2) }).await
            });
            let _nobody_hung_up = sent.send(tokio::spawn(behind));
            Ok::<_, Error>(1)
        })
        .await;
    assert_eq!(answer, Ok(1));
    ended.open();

    let behind = received.await.expect("the body has run");
    assert_eq!(behind.await.expect("no panic"), Ok(1), "a replay");
}

#[idempotent(name = "shapes.echo", key = (kind, key), skip(world))]
async fn echo<T: Serialize + DeserializeOwned>(
    world: &World,
    kind: &str,
    key: &str,
    value: T,
) -> Result<T, Error> {
    world.happened(key);
    Ok(value)
}

async fn a18_generic_functions(world: World) {
    let owner = world.owner().await;

    for _ in 0..2 {
        let number = owner.enter(echo(&world, "u32", "k", 7_u32)).await;
        let text = owner
            .enter(echo(&world, "text", "k", "seven".to_owned()))
            .await;
        assert_eq!((number, text), (Ok(7), Ok("seven".into())));
    }

    assert_eq!(world.runs("k"), 2);
    assert_eq!(world.records().await.len(), 2);
}

struct Shop {
    name: &'static str,
}

impl Shop {
    #[idempotent(name = "shapes.sell", key = order, skip(world))]
    async fn sell(&self, world: &World, order: u32) -> Result<String, Error> {
        world.happened("sell");
        Ok(format!("{} sells {order}", self.name))
    }

    #[idempotent(name = "shapes.sell_here", key = (self.name, order), skip(world))]
    async fn sell_here(&self, world: &World, order: u32) -> Result<String, Error> {
        world.happened("sell here");
        Ok(format!("{} sells {order}", self.name))
    }
}

async fn a19_method_receiver(world: World) {
    let owner = world.owner().await;
    let (corner, market) = (Shop { name: "corner" }, Shop { name: "market" });

    let first = owner.enter(corner.sell(&world, 1)).await;
    let second = owner.enter(market.sell(&world, 1)).await;

    assert_eq!(first, Ok("corner sells 1".into()));
    assert_eq!(second, first, "the receiver is no part of the key");
    assert_eq!(world.runs("sell"), 1);

    let first = owner.enter(corner.sell_here(&world, 1)).await;
    let second = owner.enter(market.sell_here(&world, 1)).await;

    assert_eq!(first, Ok("corner sells 1".into()));
    assert_eq!(second, Ok("market sells 1".into()), "where it is asked for");
    assert_eq!(world.runs("sell here"), 2);
}

#[tracing::instrument(skip_all)]
#[idempotent(name = "shapes.above", key = key, skip(world))]
async fn span_above(world: &World, key: &str) -> Result<u32, Error> {
    world.happened(key);
    Ok(1)
}

#[idempotent(name = "shapes.below", key = key, skip(world))]
#[tracing::instrument(skip_all)]
async fn span_below(world: &World, key: &str) -> Result<u32, Error> {
    world.happened(key);
    Ok(1)
}

async fn a20_composes_with_other_attributes(world: World) {
    let owner = world.owner().await;

    let (_, said) = said_during(owner.enter(async {
        for _ in 0..2 {
            assert_eq!(span_above(&world, "above").await, Ok(1));
            assert_eq!(span_below(&world, "below").await, Ok(1));
        }
    }))
    .await;

    assert_eq!((world.runs("above"), world.runs("below")), (1, 1));
    // An attribute above is expanded first, so its span is around the body alone. The span of one
    // below is around the whole call.
    let spans = |name: &str| {
        let opened = format!("{name}: it::shapes: new");
        let is_it = |line: &&str| line.ends_with(&opened);
        said.lines().filter(is_it).count()
    };
    assert_eq!((spans("span_above"), spans("span_below")), (1, 2), "{said}");
}

#[idempotent(name = "shapes.flaky", key = key, on_error = release, skip(world))]
async fn flaky(world: &World, key: &str) -> Result<usize, Error> {
    world.happened(key);
    match world.runs(key) {
        3 => Ok(3),
        _ => Err(Error::AlreadyInstalled),
    }
}

async fn a20_composes_with_a_retry_outside(world: World) {
    let owner = world.owner().await;

    let mut answer = owner.enter(flaky(&world, "k")).await;
    for _ in 0..5 {
        if answer.is_err() {
            answer = owner.enter(flaky(&world, "k")).await;
        }
    }

    assert_eq!(answer, Ok(3));
    assert_eq!(world.runs("k"), 3);
    assert_eq!(owner.enter(flaky(&world, "k")).await, Ok(3));
    assert_eq!(world.runs("k"), 3);
}

#[idempotent(name = "shapes.yields", key = key, skip(world))]
async fn yields(world: World, key: &'static str) -> Result<String, Error> {
    let before = current().child_key("downstream");
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    world.happened(key);
    let elsewhere = current().enter(async { current().child_key("downstream") });
    let elsewhere = tokio::spawn(elsewhere).await.expect("it does not panic");
    assert_eq!(elsewhere, before);
    Ok(before)
}

async fn a21_async_first_class(world: World) {
    let owner = world.owner().await;

    let first = owner.spawn(yields(world.clone(), "k")).await;
    let second = owner.spawn(yields(world.clone(), "k")).await;

    let (first, second) = (
        first.expect("it does not panic"),
        second.expect("it does not panic"),
    );
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(second, first);
    assert_eq!(world.runs("k"), 1);
    owner.assert_answers(&[CallOutcome::Executed, CallOutcome::Replayed]);
}

#[idempotent(name = "shapes.detached", key = key, skip(world), on_cancel = detach)]
async fn detached(world: World, key: &'static str) -> Result<u32, Error> {
    echo(&world, "u32", key, 7).await
}

async fn a21_a_detached_call_keeps_the_handle_that_was_entered(world: World) {
    let owner = world.owner().await;

    let answer = owner.enter(detached(world.clone(), "k")).await;

    assert_eq!(answer, Ok(7));
    assert_eq!(world.records().await.len(), 2);
}

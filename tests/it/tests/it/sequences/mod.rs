//! Sequences: only the next number of a stream is applied, once.

mod attempts;
mod bad_input;
mod endings;
mod failing;
mod gaps;
mod losses;
mod operators;
pub(crate) mod plan;
mod staged;
mod tasks;
mod transactions;

use std::time::Duration;

use idempotent_runtime::{
    CallOutcome, Error, InFlight, OnCrash, RecordChange,
    sequence::{Decision, FromFirst, Position, Sequence, Standing},
    testing::Gate,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::harness::{Owner, World};

on_every_store![
    i16_numbers_are_applied_once_and_in_order,
    i16_the_last_number_answers_a_copy_and_smaller_ones_are_past,
    the_same_number_with_other_arguments_is_a_reused_key,
    numbers_at_the_ends_of_their_range_are_numbers,
    a_number_that_is_held_lets_smaller_ones_be_answered,
    a_number_whose_holder_vanished_is_taken_over,
    a_number_that_kills_its_holders_is_parked_and_can_be_skipped,
    a_stream_that_stops_at_an_uncertain_number_goes_on_once_it_is_settled,
    a_stream_expires_where_that_is_said_and_begins_anew,
    two_streams_know_nothing_of_each_other,
];

type Decided = Result<Decision<u64>, ApplyError>;

#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
enum ApplyError {
    #[error("refused for good")]
    Refused,
    #[error(transparent)]
    Ours(#[from] Error),
}

impl ApplyError {
    fn ours(self) -> Error {
        match self {
            Self::Ours(error) => error,
            Self::Refused => panic!("{self}"),
        }
    }
}

/// The stream of an account, which begins with 1.
fn account(owner: &Owner) -> Sequence<FromFirst> {
    owner.idem.sequence("accounts", "account-7").first(1)
}

/// Applies a number whose arguments are ten times it.
async fn apply(world: &World, account: &Sequence<FromFirst>, number: u64) -> Decided {
    let call = account.clone().number(number).arguments(&(number * 10));
    call.run(async |_| {
        world.happened(&number.to_string());
        Ok(number * 10)
    })
    .await
}

#[track_caller]
fn assert_decided(decided: Decided, expected: Decision<u64>) {
    match decided {
        Ok(decision) => assert_eq!(decision, expected),
        Err(error) => panic!("{error}: {error:?}"),
    }
}

#[track_caller]
fn assert_applied(decided: Decided, number: u64) {
    assert_decided(decided, Decision::Applied(number * 10));
}

/// Begins to apply a number, and stands inside its body.
async fn begin(
    owner: &Owner,
    account: &Sequence<FromFirst>,
    number: u64,
) -> (Gate, JoinHandle<Decided>) {
    let gate = Gate::new();
    let (its, account) = (gate.clone(), account.clone());
    let task = owner.spawn(async move {
        let call = account.number(number).arguments(&(number * 10));
        call.run(async |_| {
            its.pass().await;
            Ok(number * 10)
        })
        .await
    });
    gate.arrived(1).await;
    (gate, task)
}

/// Begins a number, and dies in its body; its lease is over afterwards.
async fn die_in(
    world: &World,
    set_up: impl Fn(Sequence<FromFirst>) -> Sequence<FromFirst>,
    n: u64,
) {
    let dead = world.owner().await;
    let (_gate, task) = begin(&dead, &set_up(account(&dead)), n).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;
}

async fn position(account: &Sequence<FromFirst>) -> Position {
    account.position().await.expect("the store answers")
}

async fn i16_numbers_are_applied_once_and_in_order(world: World) {
    let (one, other) = (world.owner().await, world.owner().await);
    let (one, other) = (account(&one), account(&other));
    let gap = Decision::Gap {
        expected: 1,
        got: 2,
    };
    assert_decided(apply(&world, &one, 2).await, gap);
    for number in 1..=5 {
        let account = if number % 2 == 0 { &one } else { &other };
        assert_applied(apply(&world, account, number).await, number);
        let gap = Decision::Gap {
            expected: number + 1,
            got: number + 2,
        };
        assert_decided(apply(&world, &one, number + 2).await, gap);
        assert_eq!(world.runs(&number.to_string()), 1);
    }
    assert_eq!(world.runs("6"), 0);
    assert_eq!(position(&one).await.last, Some(5));
    assert_eq!(world.states().await.len(), 1, "one record a stream");
}

async fn i16_the_last_number_answers_a_copy_and_smaller_ones_are_past(world: World) {
    let (one, other) = (world.owner().await, world.owner().await);
    let (one, other) = (account(&one), account(&other));
    assert_decided(apply(&world, &one, 0).await, Decision::Past { last: 0 });
    for number in 1..=3 {
        assert_applied(apply(&world, &one, number).await, number);
        let replayed = apply(&world, &other, number).await;
        assert_decided(replayed, Decision::Replayed(number * 10));
        for smaller in 1..number {
            let past = apply(&world, &other, smaller).await;
            assert_decided(past, Decision::Past { last: number });
        }
        assert_eq!(world.runs(&number.to_string()), 1);
    }
}

async fn the_same_number_with_other_arguments_is_a_reused_key(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    assert_applied(apply(&world, &account, 1).await, 1);
    let other = |number| {
        let call = account.clone().number(number).arguments("something else");
        call.run(async |_| Ok::<u64, ApplyError>(0))
    };
    let reused = other(1).await.expect_err("other arguments").ours();
    let Error::KeyReused { differing, .. } = reused else {
        panic!("{reused:?}")
    };
    assert_eq!(differing, ["arguments"]);

    let (gate, task) = begin(&owner, &account, 2).await;
    let reused = other(2).await.expect_err("other arguments").ours();
    assert!(matches!(reused, Error::KeyReused { .. }), "{reused:?}");
    let reused = other(1).await.expect_err("other arguments").ours();
    assert!(matches!(reused, Error::KeyReused { .. }), "{reused:?}");
    gate.open();
    assert_applied(task.await.expect("no panic"), 2);
    let past = other(1).await.expect("a smaller one is not compared");
    assert_eq!(past, Decision::Past { last: 2 });
}

async fn numbers_at_the_ends_of_their_range_are_numbers(world: World) {
    let owner = world.owner().await;
    for first in [0, u64::MAX - 1] {
        let stream = || owner.idem.sequence("ends", &first).first(first);
        let apply = |number| {
            let call = stream().number(number);
            call.run(async move |_| Ok::<u64, ApplyError>(number))
        };
        let gap = Decision::Gap {
            expected: first,
            got: first + 1,
        };
        assert_decided(apply(first + 1).await, gap);
        assert_decided(apply(first).await, Decision::Applied(first));
        assert_decided(apply(first + 1).await, Decision::Applied(first + 1));
        assert_decided(apply(first + 1).await, Decision::Replayed(first + 1));
        let past = Decision::Past { last: first + 1 };
        assert_decided(apply(first).await, past);
    }
}

async fn a_number_that_is_held_lets_smaller_ones_be_answered(world: World) {
    let (one, other) = (world.owner().await, world.owner().await);
    let reject = |sequence: Sequence<FromFirst>| sequence.in_flight(InFlight::Reject);
    let other = reject(account(&other));
    for number in 1..=2 {
        assert_applied(apply(&world, &other, number).await, number);
    }
    let (gate, task) = begin(&one, &account(&one), 3).await;
    assert_decided(apply(&world, &other, 1).await, Decision::Past { last: 2 });
    assert_decided(apply(&world, &other, 2).await, Decision::Replayed(20));
    for held in [3, 4] {
        let refused = apply(&world, &other, held).await;
        let refused = refused.expect_err("it is held").ours();
        assert!(matches!(refused, Error::InProgress { .. }), "{refused:?}");
    }
    let standing = position(&other).await;
    assert_eq!(standing.last, Some(2));
    let running = standing.running.expect("3 is held");
    assert_eq!(running.number, 3);
    assert!(matches!(running.standing, Standing::Held { .. }));

    // A larger number waits for the one that is held, and runs then.
    let next = world.owner().await;
    let (its, world_) = (account(&next), world.clone());
    let waiting = tokio::spawn(async move { apply(&world_, &its, 4).await });
    world.log().await_step(RecordChange::Waiting).await;
    gate.open();
    assert_applied(task.await.expect("no panic"), 3);
    assert_applied(waiting.await.expect("no panic"), 4);
    assert_eq!((world.runs("3"), world.runs("4")), (0, 1));
}

async fn a_number_whose_holder_vanished_is_taken_over(world: World) {
    let owner = world.owner().await;
    let account = account(&owner);
    assert_applied(apply(&world, &account, 1).await, 1);
    die_in(&world, |it| it, 2).await;
    let running = position(&account).await.running.expect("it was begun");
    assert_eq!((running.number, running.standing), (2, Standing::Vanished));
    assert_decided(apply(&world, &account, 1).await, Decision::Replayed(10));
    let gap = Decision::Gap {
        expected: 2,
        got: 3,
    };
    assert_decided(apply(&world, &account, 3).await, gap);
    assert_applied(apply(&world, &account, 2).await, 2);
    let effects = world.effects().entries().expect("memory is read");
    let attempts: Vec<_> = effects
        .iter()
        .map(|it| (it.key.as_str(), it.attempt))
        .collect();
    assert_eq!(attempts, [("1", 1), ("2", 2)]);
}

async fn a_number_that_kills_its_holders_is_parked_and_can_be_skipped(world: World) {
    let few = |sequence: Sequence<FromFirst>| sequence.max_takeovers(1);
    let owner = world.owner().await;
    let account = few(account(&owner));
    assert_applied(apply(&world, &account, 1).await, 1);
    for _ in 0..2 {
        die_in(&world, few, 2).await;
    }
    for stopped in [2, 3] {
        let parked = apply(&world, &account, stopped).await;
        let parked = parked.expect_err("too many vanished").ours();
        assert!(matches!(parked, Error::Parked { .. }), "{parked:?}");
    }
    assert_decided(apply(&world, &account, 1).await, Decision::Replayed(10));
    let skipped = account.skip(2).because("a poisonous event").await;
    skipped.expect("it is parked");
    owner.log.await_step(RecordChange::Skipped).await;
    assert_decided(apply(&world, &account, 2).await, Decision::Past { last: 2 });
    // Mended or not, it was used up.
    let mended = account.clone().number(2).arguments("mended");
    let mended = mended.run(async |_| Ok(0)).await;
    assert_decided(mended, Decision::Past { last: 2 });
    assert_applied(apply(&world, &account, 3).await, 3);
    assert_eq!(world.runs("2"), 0);
}

async fn a_stream_that_stops_at_an_uncertain_number_goes_on_once_it_is_settled(world: World) {
    let strict = |sequence: Sequence<FromFirst>| sequence.on_crash(OnCrash::Uncertain);
    let owner = world.owner().await;
    let account = strict(account(&owner));
    assert_applied(apply(&world, &account, 1).await, 1);
    die_in(&world, strict, 2).await;
    for stopped in [2, 3] {
        let uncertain = apply(&world, &account, stopped).await;
        let uncertain = uncertain.expect_err("nobody knows").ours();
        assert!(
            matches!(uncertain, Error::Uncertain { .. }),
            "{uncertain:?}"
        );
    }
    assert_decided(apply(&world, &account, 1).await, Decision::Replayed(10));
    let running = position(&account).await.running.expect("it stops here");
    assert_eq!((running.number, running.standing), (2, Standing::Uncertain));

    account
        .settle(2)
        .with_value(&20_u64)
        .await
        .expect("it stops at 2");
    assert_decided(apply(&world, &account, 2).await, Decision::Replayed(20));
    assert_applied(apply(&world, &account, 3).await, 3);
    assert_eq!((world.runs("2"), world.runs("3")), (0, 1));
}

async fn a_stream_expires_where_that_is_said_and_begins_anew(world: World) {
    let owner = world.owner().await;
    let expiring = account(&owner).expires_after("1h");
    let lasting = owner.idem.sequence("lasting", "account-7").first(1);
    for number in 1..=2 {
        assert_applied(apply(&world, &expiring, number).await, number);
        assert_applied(apply(&world, &lasting, number).await, number);
    }
    world.advance(Duration::from_secs(30 * 60)).await;
    assert_applied(apply(&world, &expiring, 3).await, 3);
    world.advance(Duration::from_secs(59 * 60)).await;
    assert_decided(
        apply(&world, &expiring, 2).await,
        Decision::Past { last: 3 },
    );
    world.advance(Duration::from_secs(2 * 60)).await;
    assert_eq!(position(&expiring).await, Position::default());
    let gap = Decision::Gap {
        expected: 1,
        got: 4,
    };
    assert_decided(apply(&world, &expiring, 4).await, gap);
    assert_applied(apply(&world, &expiring, 1).await, 1);
    world.advance(Duration::from_secs(400 * 24 * 60 * 60)).await;
    assert_applied(apply(&world, &lasting, 3).await, 3);
}

async fn two_streams_know_nothing_of_each_other(world: World) {
    let owner = world.owner().await;
    let other_key = owner.idem.sequence("accounts", "account-8").first(1);
    let other_name = owner.idem.sequence("orders", "account-7").first(1);
    let other_scope = account(&owner).scope("a tenant");
    for stream in [account(&owner), other_key, other_name, other_scope] {
        assert_applied(apply(&world, &stream, 1).await, 1);
        assert_decided(apply(&world, &stream, 1).await, Decision::Replayed(10));
    }
    assert_eq!(world.runs("1"), 4);
    assert_eq!(owner.log.answers().first(), Some(&CallOutcome::Executed));
}

//! The manual's rules for changing a function that is in use: two builds of one program on one
//! store, row by row.

mod identity;

use std::time::Duration;

use idempotent_runtime::{
    __private::{Recorded, Whole},
    BoxError, CallBuilder, CallReport, Codec, Error, InFlight, OnCrash, OnExpired, Read, Stored,
    Verdict, erased_serde,
    testing::Gate,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::{
    answers::is_uncertain,
    harness::{Owner, World},
};

on_every_store![
    a_changed_ttl_counts_for_what_is_recorded_afterwards,
    a_changed_lease_counts_for_who_holds_afterwards,
    a_changed_takeover_budget_is_that_of_who_takes_over,
    a_changed_max_outcome_counts_for_what_is_recorded_afterwards,
    a_changed_on_crash_is_the_stricter_one_and_stays_so_when_it_is_rolled_back,
    an_on_error_that_records_no_more_reads_no_error_unless_it_is_a_classifier,
    an_on_error_that_records_runs_again_what_was_released,
    a_new_field_of_the_outcome_with_a_default_is_read_by_both_builds,
    a_new_variant_is_unreadable_to_the_older_build_and_not_run_again,
    a_counted_version_is_unreadable_to_the_older_build_and_not_run_again,
    a_changed_codec_is_one_that_reads_both,
    what_is_switched_off_runs_beside_a_holder_and_hands_on_the_same_keys,
    what_refuses_expired_keys_needs_all_who_purge_to_keep_them,
];

const HOUR: Duration = Duration::from_secs(60 * 60);

fn charge(owner: &Owner) -> CallBuilder<Recorded, Whole> {
    owner.call("changes.charge").key("k")
}

/// Runs a call to its end, and tells whether its body ran.
async fn runs(call: CallBuilder<Recorded, Whole>) -> Result<bool, Error> {
    let (answer, how) = call.run_detailed(|_| async { Ok::<_, Error>(()) }).await;
    answer.map(|()| matches!(how, CallReport::Executed { .. }))
}

/// Begins a call whose body waits at `gate`.
fn holds(call: CallBuilder<Recorded, Whole>, gate: &Gate) -> JoinHandle<Result<(), Error>> {
    let gate = gate.clone();
    tokio::spawn(call.run(move |_| async move {
        gate.pass().await;
        Ok(())
    }))
}

/// Leaves a call half-done, as a process that dies.
async fn vanishes(world: &World, call: impl FnOnce(&Owner) -> CallBuilder<Recorded, Whole>) {
    let (dead, gate) = (world.owner().await, Gate::new());
    let held = holds(call(&dead), &gate);
    gate.arrived(1).await;
    dead.die_in(held).await;
}

async fn a_changed_ttl_counts_for_what_is_recorded_afterwards(world: World) {
    for (key, ttls, after) in [
        ("longer", ["1h", "3h"], [true, false]),
        ("shorter", ["3h", "1h"], [false, false]),
    ] {
        let (old, new) = (world.owner().await, world.owner().await);
        let call = |owner: &Owner, ttl: &str| owner.call("changes.ttl").key(key).ttl(ttl);
        assert_eq!(runs(call(&old, ttls[0])).await, Ok(true));
        world.advance(HOUR).await;
        for expected in after {
            assert_eq!(runs(call(&new, ttls[1])).await, Ok(expected), "{key}");
        }
    }
}

async fn a_changed_lease_counts_for_who_holds_afterwards(world: World) {
    let new = world.owner().await;
    vanishes(&world, |old| charge(old).lease("1m")).await;
    let shorter = || charge(&new).lease("1s").in_flight(InFlight::Reject);

    world.advance(Duration::from_secs(59)).await;
    let early = runs(shorter()).await;
    assert!(matches!(early, Err(Error::InProgress { .. })), "{early:?}");
    world.advance(Duration::from_secs(1)).await;
    assert_eq!(runs(shorter()).await, Ok(true));
}

async fn a_changed_takeover_budget_is_that_of_who_takes_over(world: World) {
    vanishes(&world, charge).await;
    world.advance(HOUR).await;
    let lower = world.owner_with(|builder| builder.max_takeovers(0)).await;

    for owner in [lower, world.owner().await] {
        let parked = runs(charge(&owner)).await;
        assert!(
            matches!(parked, Err(Error::Parked { attempts: 1, .. })),
            "{parked:?}"
        );
    }
}

async fn a_changed_max_outcome_counts_for_what_is_recorded_afterwards(world: World) {
    let (old, lower) = (
        world.owner().await,
        world.owner_with(|builder| builder.max_outcome(4)).await,
    );
    let long = |owner: &Owner| charge(owner).run(|_| async { Ok::<_, Error>("long".to_owned()) });

    assert_eq!(long(&old).await, Ok("long".into()));
    assert_eq!(long(&lower).await, Ok("long".into()));
}

async fn a_changed_on_crash_is_the_stricter_one_and_stays_so_when_it_is_rolled_back(world: World) {
    for [before, after] in [
        [OnCrash::Rerun, OnCrash::Uncertain],
        [OnCrash::Uncertain, OnCrash::Rerun],
    ] {
        let call = |owner: &Owner, on_crash| {
            let call = owner.call("changes.on_crash").key(&format!("{before:?}"));
            call.on_crash(on_crash)
        };
        vanishes(&world, |old| call(old, before)).await;
        world.advance(HOUR).await;

        let new = world.owner().await;
        for on_crash in [after, before] {
            let answer = runs(call(&new, on_crash)).await;
            assert!(is_uncertain(&answer), "{before:?}: {answer:?}");
        }
    }
}

/// The error that a call of the build before or after says in place of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Failure {
    Declined,
    Refused(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(format!("{error:?}"))
    }
}

fn is_unreadable(answer: &Result<(), Failure>) -> bool {
    matches!(answer, Err(Failure::Refused(why)) if why.starts_with("Unreadable"))
}

async fn an_on_error_that_records_no_more_reads_no_error_unless_it_is_a_classifier(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let fails = |_| async {
        world.happened("k");
        Err::<(), _>(Failure::Declined)
    };
    assert_eq!(charge(&old).run(fails).await, Err(Failure::Declined));

    let releases = charge(&new).release_errors().run(fails).await;
    assert!(is_unreadable(&releases), "{releases:?}");
    let leaves = charge(&new).uncertain_errors().run(fails).await;
    assert!(is_unreadable(&leaves), "{leaves:?}");
    let classifies = charge(&new).classify_errors(|_: &Failure| Verdict::Release);
    assert_eq!(classifies.run(fails).await, Err(Failure::Declined));
    assert_eq!(world.runs("k"), 1);
}

async fn an_on_error_that_records_runs_again_what_was_released(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let fails = |_| async {
        world.happened("k");
        Err::<(), _>(Failure::Declined)
    };
    let released = charge(&old).release_errors().run(fails).await;
    assert_eq!(released, Err(Failure::Declined));

    for _ in 0..2 {
        assert_eq!(charge(&new).run(fails).await, Err(Failure::Declined));
    }
    assert_eq!(world.runs("k"), 2);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    cents: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ReceiptInFull {
    cents: u64,
    #[serde(default)]
    currency: String,
}

async fn a_new_field_of_the_outcome_with_a_default_is_read_by_both_builds(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let before = |key| {
        old.call("changes.field")
            .key(key)
            .run(|_| async { Ok::<_, Error>(Receipt { cents: 5 }) })
    };
    let after = |key| {
        let full = ReceiptInFull {
            cents: 5,
            currency: "EUR".into(),
        };
        new.call("changes.field")
            .key(key)
            .run(|_| async { Ok::<_, Error>(full) })
    };

    assert_eq!(before("old").await, Ok(Receipt { cents: 5 }));
    assert_eq!(
        after("old").await,
        Ok(ReceiptInFull {
            cents: 5,
            currency: String::new()
        })
    );
    assert!(after("new").await.is_ok());
    assert_eq!(before("new").await, Ok(Receipt { cents: 5 }));
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Paid {
    AtOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum PaidSomehow {
    AtOnce,
    Later,
}

async fn a_new_variant_is_unreadable_to_the_older_build_and_not_run_again(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let later = new.call("changes.variant").key("k");
    let later = later.run(|_| async { Ok::<_, Error>(PaidSomehow::Later) });
    assert_eq!(later.await, Ok(PaidSomehow::Later));

    let at_once = |owner: &Owner, key| {
        owner
            .call("changes.variant")
            .key(key)
            .run(|_| async { Ok::<_, Error>(Paid::AtOnce) })
    };
    let answer = at_once(&old, "k").await;
    assert!(
        matches!(answer, Err(Error::Unreadable { .. })),
        "{answer:?}"
    );

    assert_eq!(at_once(&old, "before").await, Ok(Paid::AtOnce));
    let read = new.call("changes.variant").key("before");
    let read = read.run(|_| async { Ok::<_, Error>(PaidSomehow::Later) });
    assert_eq!(read.await, Ok(PaidSomehow::AtOnce));
}

async fn a_counted_version_is_unreadable_to_the_older_build_and_not_run_again(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let before = || charge(&old).run(|_| async { Ok::<_, Error>(5_u64) });
    let after = |key: &str| {
        let call = new.call("changes.charge").key(key).version(1);
        let call = call.upgrade(|stored: Stored| Ok(format!("{} EUR", stored.decode::<u64>()?)));
        call.run(|_| async { Ok::<_, Error>("7 EUR".to_owned()) })
    };

    assert_eq!(before().await, Ok(5));
    assert_eq!(after("k").await, Ok("5 EUR".into()));
    assert_eq!(after("new").await, Ok("7 EUR".into()));
    let call = old.call("changes.charge").key("new");
    let answer = call.run(|_| async { Ok::<_, Error>(5_u64) });
    let answer = answer.await;
    assert!(
        matches!(answer, Err(Error::Unreadable { schema: 1, .. })),
        "{answer:?}"
    );
}

/// Marks what it writes, and reads JSON where the mark is missing.
#[derive(Debug)]
struct Marked;

/// No JSON begins with it.
const MARK: u8 = 0;

impl Codec for Marked {
    fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, BoxError> {
        let mut bytes = vec![MARK];
        serde_json::to_writer_pretty(&mut bytes, value)?;
        Ok(bytes)
    }

    fn decode(&self, bytes: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
        let json = bytes.strip_prefix(&[MARK]).unwrap_or(bytes);
        let mut json = serde_json::Deserializer::from_slice(json);
        read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut json))?;
        Ok(json.end()?)
    }
}

async fn a_changed_codec_is_one_that_reads_both(world: World) {
    let (old, new) = (
        world.owner().await,
        world.owner_with(|builder| builder.codec(Marked)).await,
    );
    let call = |owner: &Owner, key: &str| {
        owner
            .call("changes.codec")
            .key(key)
            .run(|_| async { Ok::<_, Error>(vec![1, 2]) })
    };

    assert_eq!(call(&old, "old").await, Ok(vec![1, 2]));
    assert_eq!(call(&new, "old").await, Ok(vec![1, 2]));
    assert_eq!(call(&new, "new").await, Ok(vec![1, 2]));
    let answer = call(&old, "new").await;
    assert!(
        matches!(answer, Err(Error::Unreadable { .. })),
        "{answer:?}"
    );
}

async fn what_is_switched_off_runs_beside_a_holder_and_hands_on_the_same_keys(world: World) {
    let (on, off) = (
        world.owner().await,
        world.owner_with(|builder| builder.enabled(false)).await,
    );
    let gate = Gate::new();
    let passes = gate.clone();
    let held = tokio::spawn(charge(&on).run(move |attempt| async move {
        passes.pass().await;
        Ok::<_, Error>(attempt.child_key("gateway"))
    }));
    gate.arrived(1).await;

    let beside = charge(&off)
        .run(|attempt| async move { Ok::<_, Error>(attempt.child_key("gateway")) })
        .await;
    gate.open();

    assert_eq!(held.await.expect("no panic"), beside);
    let again = charge(&off).run(|_| async { Ok::<_, Error>("again".to_owned()) });
    assert_eq!(again.await, Ok("again".into()));
}

async fn what_refuses_expired_keys_needs_all_who_purge_to_keep_them(world: World) {
    let (old, new) = (
        world.owner().await,
        world
            .owner_with(|builder| builder.audit_retention("1h"))
            .await,
    );
    let refusing = || charge(&new).ttl("1h").on_expired(OnExpired::Refuse);
    assert_eq!(runs(refusing()).await, Ok(true));
    world.advance(HOUR).await;
    let expired = runs(refusing()).await;
    assert!(matches!(expired, Err(Error::Expired { .. })), "{expired:?}");

    assert_eq!(old.idem.purge().await, Ok(1));
    assert_eq!(runs(refusing()).await, Ok(true));
}

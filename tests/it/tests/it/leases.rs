//! Leases: how long a holder holds, what keeps it, and what it can still do once it has lost it.

mod blocked;
mod heartbeats;
mod several;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, FencingToken, Reconciled, RecordChange, Status,
    record::State,
    store::StoreErrorKind,
    testing::{Fault, Gate, On, StoreOperation},
};

use tokio::task::JoinHandle;

use crate::{
    answers::{is_in_progress, is_reused},
    charge::{
        Answer, Charge, Found, LEASE, Mode, abort, charges_behind, is_told, lapsed, loses_behind,
        vanished,
    },
    harness::{Owner, World},
};

on_every_store![
    d01_lease_valid,
    d02_lease_over,
    d03_timeout_then_next_succeeds,
    d04_stale_success_refused,
    d04_stale_success_without_an_outcome_is_told,
    d04_stale_success_never_adopts_another_request,
    d04_stale_success_never_adopts_what_has_expired,
    mend_15_a_stale_holder_whose_write_fails_does_not_answer_its_own_value,
    d06_stale_heartbeat_refused,
    d08_rejected_duplicate_deletes_nothing,
    d11_epoch_handed_to_body,
    d18_lease_mandatory,
    d19_clock_skew,
    a_claim_whose_answer_is_slow_counts_its_lease_from_when_it_was_sent,
    a_claim_whose_answer_came_late_counts_its_lease_from_the_write,
    a_claim_whose_answer_came_after_its_lease_is_made_anew,
];

/// Lets so many thirds of a lease go by, each with a heartbeat.
async fn beats(world: &World, owner: &Owner, thirds: usize) {
    for beat in 1..=thirds {
        world.advance(LEASE / 3).await;
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
    }
}

async fn d01_lease_valid(world: World) {
    vanished(&world, Mode::Rerun).await;
    world.advance(LEASE - Duration::from_secs(1)).await;

    let next = world.owner().await;
    is_told(&Charge::of(&world, &next).rejecting(), is_in_progress).await;
    assert_eq!(world.runs("k"), 1);
}

async fn d02_lease_over(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let before = world.record().await;

    let next = world.owner().await;
    let body = world.clone();
    let answer = next
        .call("charge")
        .key("k")
        .arguments(&1)
        .run(|attempt| async move {
            body.happened("k");
            Ok::<_, Error>((
                attempt.number(),
                attempt.is_takeover(),
                attempt.fencing_token().map(FencingToken::as_u64),
            ))
        })
        .await;

    let (number, is_takeover, token) = answer.expect("it takes over");
    assert!(is_takeover);
    assert_eq!(number, 2);
    assert!(token > Some(before.token.as_u64()), "tokens grow");
    let after = world.record().await;
    assert_eq!(after.created, before.created, "it began with the first");
    next.assert_steps(&[RecordChange::TakenOver, RecordChange::Recorded]);
    assert_eq!(world.runs("k"), 2);
}

async fn d03_timeout_then_next_succeeds(world: World) {
    let owner = world.owner().await;
    let (call, _gate) = Charge::of(&world, &owner).begun().await;

    abort(call).await;
    owner.log.await_step(RecordChange::Stopped).await;

    Charge::of(&world, &owner).rejecting().charges().await;
    assert_eq!(world.runs("k"), 2);
}

/// A holder whose lease ended unnoticed: its heartbeats do not arrive.
async fn paused(world: &World, charge: Charge, owner: &Owner) -> (JoinHandle<Answer>, Gate) {
    let begun = charge.begun().await;
    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    world.advance(LEASE).await;
    begun
}

async fn d04_stale_success_refused(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (call, gate) = paused(&world, Charge::of(&world, &first).answers("A"), &first).await;
    Charge::of(&world, &second).answers("B").charges().await;
    let before = world.record().await;

    gate.open();

    assert_eq!(
        call.await.expect("no panic"),
        Ok("B".into()),
        "it adopts what is recorded"
    );
    assert_eq!(world.record().await, before);
    assert_eq!(Charge::of(&world, &first).call().await, Ok("B".into()));
    assert_eq!(first.log.count(RecordChange::LeaseLost), 1);
}

async fn d04_stale_success_without_an_outcome_is_told(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (stale, stale_gate) = paused(&world, Charge::of(&world, &first).answers("A"), &first).await;
    let (taken, gate) = Charge::of(&world, &second).answers("B").begun().await;

    loses_behind(&stale_gate, stale).await;
    gate.open();
    assert_eq!(taken.await.expect("no panic"), Ok("B".into()));
    assert_eq!(Charge::of(&world, &first).call().await, Ok("B".into()));
}

async fn d04_stale_success_never_adopts_another_request(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let asks = Charge::of(&world, &first).mode(Mode::Reconcile(Found::Nothing));
    let (stale, gate) = paused(&world, asks.answers("A"), &first).await;
    // A reconciliation and the body behind it say that nothing happened. The key then goes to
    // another request.
    let released = second
        .call("charge")
        .key("k")
        .arguments(&1)
        .release_errors()
        .reconcile(
            |_| async { Reconciled::RunAgain },
            |_| async { Err::<String, _>(Error::InvalidPolicy("nothing happened")) },
        )
        .await;
    assert!(released.is_err());
    let other = Charge::of(&world, &second).amount(2).answers("other");
    assert_eq!(other.call().await, Ok("other".into()));

    loses_behind(&gate, stale).await;
}

async fn d04_stale_success_never_adopts_what_has_expired(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (stale, gate) = Charge::of(&world, &first).answers("A").begun().await;
    world.advance_store(LEASE).await;
    let taken = second.call("charge").key("k").arguments(&1).ttl("1h");
    let taken = taken.run(|_| async { Ok::<_, Error>("B".to_owned()) });
    assert_eq!(taken.await, Ok("B".into()));
    world.advance_store(Duration::from_secs(60 * 60)).await;

    loses_behind(&gate, stale).await;
    assert_eq!(first.log.count(RecordChange::LeaseLost), 1);
}

async fn mend_15_a_stale_holder_whose_write_fails_does_not_answer_its_own_value(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (stale, gate) = Charge::of(&world, &first).answers("A").begun().await;
    first.fails(
        StoreOperation::Heartbeat,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    world.advance(LEASE).await;
    first.log.await_step(RecordChange::LeaseLost).await;
    Charge::of(&world, &second).answers("B").charges().await;
    first.store.heal();
    first.fails(
        StoreOperation::Ending,
        On::Next,
        StoreErrorKind::Unavailable,
    );

    loses_behind(&gate, stale).await;
    first.settled().await;
    assert_eq!(Charge::of(&world, &first).call().await, Ok("B".into()));
}

async fn d06_stale_heartbeat_refused(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (stale, stale_gate) = Charge::of(&world, &first).answers("A").begun().await;
    world.advance_store(LEASE).await;
    let (taken, gate) = Charge::of(&world, &second).answers("B").begun().await;
    let before = world.record().await;

    first.timer.advance(LEASE / 3);
    first.log.await_step(RecordChange::LeaseLost).await;

    assert_eq!(world.record().await, before, "it prolongs nothing");
    assert!(!stale.is_finished(), "the body is told, not stopped");
    gate.open();
    assert_eq!(taken.await.expect("no panic"), Ok("B".into()));
    stale_gate.open();
    assert_eq!(stale.await.expect("no panic"), Ok("B".into()));
}

async fn d08_rejected_duplicate_deletes_nothing(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let (call, gate) = Charge::of(&world, &first).begun().await;
    let before = world.record().await;

    is_told(&Charge::of(&world, &second).rejecting(), is_in_progress).await;
    second.settled().await;

    assert_eq!(world.record().await, before);
    charges_behind(&gate, call).await;
}

/// A system downstream. It accepts only the newest holder that it has seen, and writes its answers
/// down.
#[derive(Clone, Default)]
struct Downstream {
    newest: Arc<AtomicU64>,
    answers: Arc<Mutex<Vec<bool>>>,
}

impl Downstream {
    fn write(&self, token: FencingToken) {
        let accepted = self.newest.fetch_max(token.as_u64(), Ordering::SeqCst) <= token.as_u64();
        self.answers.lock().expect("no panic").push(accepted);
    }
}

async fn d11_epoch_handed_to_body(world: World) {
    let downstream = Downstream::default();
    let (first, second) = (world.owner().await, world.owner().await);
    let gate = Gate::new();
    let run = |owner: &Owner, gate: Option<Gate>| {
        let downstream = downstream.clone();
        owner
            .call("charge")
            .key("k")
            .run(move |attempt| async move {
                if let Some(gate) = gate {
                    gate.pass().await;
                }
                downstream.write(attempt.fencing_token().expect("it is protected"));
                Ok::<_, Error>(attempt.number())
            })
    };
    let zombie = tokio::spawn(run(&first, Some(gate.clone())));
    gate.arrived(1).await;
    world.advance_store(LEASE).await;

    assert_eq!(run(&second, None).await, Ok(2));
    gate.open();

    assert_eq!(zombie.await.expect("no panic"), Ok(2));
    assert_eq!(*downstream.answers.lock().expect("no panic"), [true, false]);
}

async fn d18_lease_mandatory(world: World) {
    vanished(&world, Mode::Rerun).await;
    let next = world.owner().await;
    let status = next.idem.lookup("charge", None::<&str>, "k").await;
    let Ok(Status::Processing { lease_left, .. }) = status else {
        panic!("it is held: {status:?}");
    };
    assert!(lease_left <= LEASE);

    world.advance(LEASE).await;

    Charge::of(&world, &next).rejecting().charges().await;
}

async fn d19_clock_skew(world: World) {
    const OFF_BY: Duration = Duration::from_secs(20 * 60);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for who_is_ahead in ["the holder", "the caller"] {
        let (holder, caller) = (world.owner().await, world.owner().await);
        let ahead = match who_is_ahead {
            "the holder" => &holder,
            _ => &caller,
        };
        ahead.timer.advance(OFF_BY);
        Charge::of(&world, &holder)
            .key(who_is_ahead)
            .vanishes()
            .await;
        ahead.timer.advance(OFF_BY);
        let duplicate = Charge::of(&world, &caller).key(who_is_ahead).rejecting();

        // No takeover comes early, and none is missed.
        world.advance_store(LEASE - Duration::from_secs(10)).await;
        let early = duplicate.call().await;
        assert!(is_in_progress(&early), "{who_is_ahead}: {early:?}");
        world.advance_store(Duration::from_secs(10)).await;
        duplicate.charges().await;

        // An outcome does not expire early or late, either.
        ahead.timer.advance(DAY);
        world.advance_store(DAY - Duration::from_secs(60)).await;
        duplicate.charges().await;
        assert_eq!(world.runs(who_is_ahead), 2, "it was a replay");
        world.advance_store(Duration::from_secs(60)).await;
        duplicate.charges().await;
        assert_eq!(world.runs(who_is_ahead), 3);
    }
}

/// A call inside its body. The answer to its claim came this late, and was lost, so that it was
/// claimed again.
async fn claimed_late(world: &World, owner: &Owner, late: Duration) -> (JoinHandle<Answer>, Gate) {
    let (slow, inside) = (Gate::new(), Gate::new());
    for fault in [Fault::DelayAnswer(slow.clone()), Fault::LoseAnswer] {
        owner.fault(StoreOperation::Claim, On::Call(1), fault);
    }
    let call = Charge::of(world, owner).held_at(&inside).spawn();
    slow.arrived(1).await;
    world.advance(late).await;
    slow.open();
    owner.timer.await_sleepers(1).await;
    owner.timer.advance(Duration::from_millis(15));
    inside.arrived(1).await;
    (call, inside)
}

async fn a_claim_whose_answer_is_slow_counts_its_lease_from_when_it_was_sent(world: World) {
    let owner = world.owner().await;
    let inside = Gate::new();
    let slow = owner.delays_answer(StoreOperation::Claim, On::Call(1));
    let call = Charge::of(&world, &owner).held_at(&inside).spawn();
    slow.arrived(1).await;
    world.advance(LEASE * 3 / 4).await;
    slow.open();
    inside.arrived(1).await;

    // Three quarters of the lease are gone, so a heartbeat is overdue.
    owner.log.await_step(RecordChange::Heartbeat).await;

    charges_behind(&inside, call).await;
}

async fn a_claim_whose_answer_came_late_counts_its_lease_from_the_write(world: World) {
    let owner = world.owner().await;
    let (call, inside) = claimed_late(&world, &owner, LEASE * 3 / 4).await;

    // Three quarters of the lease are gone, so a heartbeat is overdue.
    owner.log.await_step(RecordChange::Heartbeat).await;

    charges_behind(&inside, call).await;
    assert_eq!(world.runs("k"), 1);
}

async fn a_claim_whose_answer_came_after_its_lease_is_made_anew(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    // The call holds its record also without a heartbeat.
    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    let (call, inside) = claimed_late(&world, &owner, LEASE).await;

    // It holds a lease.
    is_told(&Charge::of(&world, &other).rejecting(), is_in_progress).await;
    assert_eq!(world.record().await.attempt, 1);
    charges_behind(&inside, call).await;
}

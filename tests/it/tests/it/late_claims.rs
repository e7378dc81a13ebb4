//! A claim that its caller gave up while it was on its way, and that reaches the store only after
//! that.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Error, Idempotency, RecordChange, Store, StoreError,
    identity::RecordId,
    record::{Draft, Record, State, Version},
    store::{Snapshot, StoreErrorKind, Swap},
    testing::{Fault, Gate, ManualClock, On, StoreOperation},
};

use crate::{
    charge::{Answer, Charge, LEASE, MODES, Mode, charges_behind},
    harness::{Owner, World, applied, while_time_goes_on},
};

on_every_store![
    a_first_claim_that_arrives_late_does_not_stand,
    a_takeover_that_arrives_late_does_not_stand,
    a_claim_that_arrives_while_it_is_given_up_is_given_up,
    a_claim_over_an_expired_outcome_that_is_given_up_leaves_it,
    a_claim_that_is_sent_again_is_no_longer_what_a_takeover_saw,
    a_claim_that_stands_though_nobody_knows_why_the_store_failed_is_given_up,
    a_claim_whose_answer_comes_after_its_lease_is_claimed_again,
    a_claim_whose_answer_comes_after_a_takeover_runs_nothing,
    a_claim_whose_answer_comes_late_is_given_up_where_it_cannot_be_looked_at,
    a_claim_whose_every_answer_comes_late_is_given_up,
    a_body_that_calls_itself_is_refused_also_where_somebody_else_has_answered,
    a_claim_that_is_shown_to_its_caller_after_a_takeover_runs_nothing,
];

/// Sends its first write off and never hears of it again.
#[derive(Debug)]
struct Slow {
    store: Arc<dyn Store>,
    has_sent: AtomicBool,
    /// The gate that holds the answer to a look.
    looks: Option<Gate>,
    sent: Mutex<Option<(RecordId, Option<Version>, Draft)>>,
}

impl Slow {
    async fn over(world: &World) -> Arc<Self> {
        Arc::new(Self {
            store: world.store().await,
            has_sent: AtomicBool::new(false),
            looks: None,
            sent: Mutex::default(),
        })
    }

    /// The same, but the answer to a look is held at `gate`.
    async fn looking(world: &World, gate: &Gate) -> Arc<Self> {
        let slow = Arc::into_inner(Self::over(world).await).expect("it is new");
        Arc::new(Self {
            looks: Some(gate.clone()),
            ..slow
        })
    }

    fn sent(&self) -> MutexGuard<'_, Option<(RecordId, Option<Version>, Draft)>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The write reaches the store.
    async fn arrives(&self) {
        let sent = self.sent().take();
        let (id, seen, draft) = sent.expect("it was sent");
        let swap = self.store.swap(&id, seen, &draft).await;
        let swap = swap.expect("the store answers");
        assert!(matches!(swap, Swap::Refused(_)), "it stands: {swap:?}");
    }
}

/// The clone that a handle takes; the test keeps the other one.
#[derive(Debug)]
struct Shared(Arc<Slow>);

#[async_trait]
impl Store for Shared {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let answer = self.0.store.load(id).await;
        if let Some(gate) = &self.0.looks {
            gate.pass().await;
        }
        answer
    }
    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let answer = self.0.store.load(id).await?;
        if seen != answer.record.as_ref().map(|record| record.version) {
            return Ok(Swap::Refused(answer));
        }
        if !self.0.has_sent.swap(true, Ordering::SeqCst) {
            *self.0.sent() = Some((*id, seen, next.clone()));
            std::future::pending::<()>().await;
        }
        self.0.store.swap(id, seen, next).await
    }
    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.0.store.purge(limit, keep).await
    }
    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.0.store.scan(after, limit).await
    }
}

/// Calls by a handle over a slow store until the claim is on its way, then goes away.
async fn goes_away(world: &World, slow: &Arc<Slow>, mode: Mode, key: &str) -> Idempotency {
    let idem = Idempotency::builder(Shared(Arc::clone(slow)))
        .timer(ManualClock::new())
        .audit_retention("2h")
        .build()
        .expect("the set-up is sound");
    let owner = world.owner().await;
    let charge = Charge::of(world, &owner).key(key).mode(mode);
    let mut call = charge.call_with(&idem);
    std::future::poll_fn(|context| {
        assert!(call.as_mut().poll(context).is_pending());
        if slow.has_sent.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    idem
}

/// The same, and has nothing left to do.
async fn give_up(world: &World, slow: &Arc<Slow>, mode: Mode, key: &str) {
    let idem = goes_away(world, slow, mode, key).await;
    assert!(idem.shutdown(Duration::MAX).await, "everything is written");
}

async fn a_first_claim_that_arrives_late_does_not_stand(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        if mode == Mode::Detach {
            continue;
        }
        let key = format!("k{number}");
        let slow = Slow::over(&world).await;
        give_up(&world, &slow, mode, &key).await;
        let left = world.record_of(&key).await;
        let left = left.expect("something keeps it out");
        let finished = left.finished.expect("it is over");
        assert_eq!(left.expires.since(finished), LEASE, "for a lease");

        slow.arrives().await;

        let next = world.owner().await;
        let next = Charge::of(&world, &next).key(&*key).mode(mode).rejecting();
        next.charges().await;
        assert_eq!(world.runs(&key), 1, "{mode:?}");
    }
}

async fn a_takeover_that_arrives_late_does_not_stand(world: World) {
    let (gate, first) = (Gate::new(), world.owner().await);
    let held = first.spawn(Charge::of(&world, &first).held_at(&gate).call());
    gate.arrived(1).await;
    first.die_in(held).await;
    world.advance(LEASE * 2).await;
    let slow = Slow::over(&world).await;
    give_up(&world, &slow, Mode::Rerun, "k").await;

    slow.arrives().await;

    let next = world.owner().await;
    let next = Charge::of(&world, &next).rejecting();
    next.charges().await;
    assert_eq!(world.runs("k"), 2);
}

async fn a_claim_that_arrives_while_it_is_given_up_is_given_up(world: World) {
    let looked = Gate::new();
    let slow = Slow::looking(&world, &looked).await;
    let idem = goes_away(&world, &slow, Mode::Uncertain, "k").await;
    // The give-up of the claim has found nothing, and has not said so yet.
    looked.arrived(1).await;

    let sent = slow.sent().take();
    let (id, seen, draft) = sent.expect("it was sent");
    applied(&slow.store, &id, seen, &draft).await;
    looked.open();
    assert!(idem.shutdown(Duration::MAX).await, "everything is written");

    assert_eq!(world.record().await.state, State::Released);
    let next = world.owner().await;
    let next = Charge::of(&world, &next).rejecting();
    next.charges().await;
    assert_eq!(world.runs("k"), 1);
}

async fn a_claim_over_an_expired_outcome_that_is_given_up_leaves_it(world: World) {
    let owner = world
        .owner_with(|builder| builder.audit_retention("2h"))
        .await;
    Charge::of(&world, &owner).charges().await;
    world.advance(Duration::from_secs(24 * 60 * 60)).await;
    let before = world.record().await;
    let slow = Slow::over(&world).await;
    give_up(&world, &slow, Mode::Rerun, "k").await;

    slow.arrives().await;

    let after = world.record().await;
    assert_eq!(
        (after.state, &after.outcome),
        (State::Done, &before.outcome)
    );
    assert_ne!(after.version, before.version, "what was sent is kept out");
}

async fn a_claim_that_is_sent_again_is_no_longer_what_a_takeover_saw(world: World) {
    let (lost, ends) = (Gate::new(), Gate::new());
    let (first, second) = (world.owner().await, world.owner().await);
    for fault in [Fault::DelayAnswer(lost.clone()), Fault::LoseAnswer] {
        first.fault(StoreOperation::Claim, On::Call(1), fault);
    }
    let late = second.delays(StoreOperation::Claim, On::Call(2));
    let days = Duration::from_secs(10 * 24 * 60 * 60);
    let charge = |owner| Charge::of(&world, owner).waiting(days);
    let call = |owner| charge(owner).held_at(&ends).call();

    // The claim stands, and its caller has not been told. Its lease ends, and a takeover is on its
    // way.
    let tries_again = first.spawn(call(&first));
    lost.arrived(1).await;
    world.advance(LEASE * 2).await;
    let takes_over = second.spawn(call(&second));
    late.arrived(1).await;
    // The record is gone when the claim is sent again.
    world.advance(Duration::from_secs(2 * 24 * 60 * 60)).await;
    let purged = world.store().await.purge(10, Duration::ZERO).await;
    assert_eq!(purged, Ok(1));
    lost.open();
    let inside = ends.clone();
    while_time_goes_on(&first.timer, async move { inside.arrived(1).await }).await;
    late.open();
    tokio::select! {
        () = ends.arrived(2) => {}
        () = second.log.await_step(RecordChange::Waiting) => {}
    }
    ends.open();

    for answer in [tries_again, takes_over] {
        assert_eq!(answer.await.expect("no panic"), Ok("charged".into()));
    }
    assert_eq!(world.runs("k"), 1);
}

/// An unknown error of a driver does not say whether the claim stands.
async fn a_claim_that_stands_though_nobody_knows_why_the_store_failed_is_given_up(world: World) {
    for mode in MODES {
        let owner = world.owner().await;
        let unknown = Fault::FailAnswer(StoreErrorKind::Other);
        owner.fault(StoreOperation::Claim, On::Call(1), unknown);
        let charge = Charge::of(&world, &owner).key(format!("{mode:?}"));
        let charge = charge.mode(mode);
        let failed = charge.call().await;
        assert!(failed.is_err(), "{mode:?}: {failed:?}");
        owner.settled().await;

        charge.rejecting().charges().await;
        assert_eq!(world.runs(&format!("{mode:?}")), 1);
    }
}

/// Calls, and is told that its claim stands when its lease is over and `meanwhile` has happened.
async fn told_late(
    world: &World,
    late: &Owner,
    mode: Mode,
    meanwhile: impl AsyncFnOnce(),
) -> Answer {
    let answered = late.delays_answer(StoreOperation::Claim, On::Call(1));
    let call = late.spawn(Charge::of(world, late).mode(mode).call());
    answered.arrived(1).await;
    world.advance(LEASE).await;
    meanwhile().await;
    answered.open();
    call.await.expect("no panic")
}

async fn a_claim_whose_answer_comes_after_its_lease_is_claimed_again(world: World) {
    let late = world.owner().await;
    let answer = told_late(&world, &late, Mode::Rerun, async || {}).await;

    assert_eq!((answer, world.runs("k")), (Ok("charged".into()), 1));
    let records = world.records().await;
    assert_eq!((records.len(), records[0].1.attempt), (1, 1));
}

async fn a_claim_whose_answer_comes_after_a_takeover_runs_nothing(world: World) {
    let (late, other) = (world.owner().await, world.owner().await);
    let takes_over = async || {
        Charge::of(&world, &other).charges().await;
    };
    let answer = told_late(&world, &late, Mode::Rerun, takes_over).await;

    assert_eq!((answer, world.runs("k")), (Ok("charged".into()), 1));
}

/// Asserts that this call was told of a failure of the store, and that the next one runs first.
async fn is_given_up(world: &World, late: &Owner, answer: Answer) {
    assert!(matches!(answer, Err(Error::Store(_))), "{answer:?}");
    late.settled().await;
    let next = world.owner().await;
    let next = Charge::of(world, &next).mode(Mode::Uncertain);
    next.charges().await;
    assert_eq!(world.runs("k"), 1);
}

/// If it were left where it is, it would become uncertain, although no body has run.
async fn a_claim_whose_answer_comes_late_is_given_up_where_it_cannot_be_looked_at(world: World) {
    let late = world.owner().await;
    late.fails(StoreOperation::Load, On::Call(1), StoreErrorKind::Denied);
    let answer = told_late(&world, &late, Mode::Uncertain, async || {}).await;
    is_given_up(&world, &late, answer).await;
}

/// As when a lease is shorter than the store is slow. If the claim were not given up, the call
/// would hold its key, and never run.
async fn a_claim_whose_every_answer_comes_late_is_given_up(world: World) {
    let late = world.owner().await;
    let answers = [1, 2, 3].map(|nth| late.delays_answer(StoreOperation::Claim, On::Call(nth)));
    let call = late.spawn(Charge::of(&world, &late).mode(Mode::Uncertain).call());
    for answered in &answers {
        answered.arrived(1).await;
        world.advance(LEASE).await;
        answered.open();
    }
    let answer = call.await.expect("no panic");
    is_given_up(&world, &late, answer).await;
}

/// The answer to the claim is lost. The claim is sent again, and refused by what it wrote itself.
/// Its caller is told only that.
async fn a_claim_that_is_shown_to_its_caller_after_a_takeover_runs_nothing(world: World) {
    let (late, other) = (world.owner().await, world.owner().await);
    late.fault(StoreOperation::Claim, On::Call(1), Fault::LoseAnswer);
    let answered = late.delays_answer(StoreOperation::Claim, On::Call(2));
    let call = late.spawn(Charge::of(&world, &late).call());
    let arrives = answered.clone();
    while_time_goes_on(&late.timer, async move { arrives.arrived(1).await }).await;
    world.advance(LEASE).await;
    Charge::of(&world, &other).charges().await;

    charges_behind(&answered, call).await;
    assert_eq!(world.runs("k"), 1);
}

/// Otherwise it would get the answer of another holder, and never learn that it calls itself.
async fn a_body_that_calls_itself_is_refused_also_where_somebody_else_has_answered(world: World) {
    let (late, other, held) = (world.owner().await, world.owner().await, Gate::new());
    let call = |owner: &Owner| owner.call("late.loop").key("k").lease(LEASE);
    let (first, again, gate) = (call(&late), call(&late), held.clone());
    let (tell, told) = tokio::sync::oneshot::channel();
    let first = tokio::spawn(first.run(async move |_| {
        gate.pass().await;
        let again = again.run(async |_| Ok::<_, Error>(3)).await;
        tell.send(again).expect("the test waits for it");
        Ok::<_, Error>(1)
    }));
    held.arrived(1).await;
    world.advance_store(LEASE).await;
    assert_eq!(call(&other).run(async |_| Ok::<_, Error>(2)).await, Ok(2));

    held.open();

    let again = told.await.expect("it calls itself");
    assert!(matches!(again, Err(Error::Recursive { .. })), "{again:?}");
    assert_eq!(first.await.expect("no panic"), Ok(2), "what was recorded");
}

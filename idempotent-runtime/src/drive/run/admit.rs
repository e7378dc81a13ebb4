//! Decides what a call may do: claims its key, waits for its holder, or finds the outcome.

mod decide;
mod refusal;
mod wait;

use std::{any::Any, sync::Arc, time::Duration};

use self::decide::is_fresh;
pub(super) use self::decide::{Next, Plan};
pub(crate) use self::refusal::damaged;
use crate::{
    attempt::is_held,
    engine::retries::{Refusals, Retries},
    engine::swap::answered,
    engine::swap::swap,
    error::Error,
    identity::RecordId,
    observe::{RecordChange, UnprotectedReason},
    outcome::OutOfOrder,
    policy::{InFlight, OnOutage},
    protocol::{Claim, ClaimDecision, Meaning, decide, sequence::StoredStream},
    record::{FencingToken, Record, Time, TokenRule, Version},
    request::Request,
    run::held::{ClaimGrant, HeldLease, PendingClaim},
    store::{Snapshot, StoreError, StoreErrorKind, Swap},
};

/// The answer to a call that asks for admission.
pub(crate) enum Admission {
    /// It holds the record: its body runs.
    Run(HeldLease),
    /// The recorded outcome answers it.
    Recorded {
        record: Arc<Record>,
        now: Time,
        waited: bool,
    },
    /// There is no answer.
    Refused(Error),
    /// Its number is not the next one.
    OutOfOrder(OutOfOrder),
    /// Its body runs without a record, and names what it hands downstream by this identity.
    Unprotected(UnprotectedReason, RecordId),
}

impl<E: Into<Error>> From<E> for Admission {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// Why a call does not hold its record.
enum Stop {
    Answered(Admission),
    /// The store failed at the claim.
    Failed(StoreError),
}

impl From<Admission> for Stop {
    fn from(admission: Admission) -> Self {
        Self::Answered(admission)
    }
}

/// A call that asks for admission.
pub(crate) struct Admitting<'a> {
    pub(super) request: &'a Request,
    pub(super) claim: &'a Claim,
    pub(super) id: RecordId,
    began: Duration,
    /// Until when it waits for the call that holds the record.
    deadline: Duration,
    /// Until when it waits for a number that is missing.
    gap_deadline: Duration,
    waited: bool,
    /// How long it has waited so far.
    pub(crate) waited_for: Duration,
    /// The change of the record that a transaction left to be settled, and its attempt: it stands
    /// if that commits.
    #[cfg(feature = "_sql")]
    pub(crate) left: Option<(u32, RecordChange)>,
    /// The `traceparent` of the attempt that it takes over from.
    pub(crate) before: Option<Arc<str>>,
    /// Its place while it waits, where the room for that is bounded.
    place: Option<Box<dyn Any + Send + Sync>>,
    /// Whether it saw that the call is or was held by another one, or is finished.
    bound: bool,
    /// Whether it claimed a record that its holder gave back after steps.
    goes_on: bool,
}

impl<'a> Admitting<'a> {
    pub(crate) fn new(request: &'a Request, claim: &'a Claim) -> Self {
        let now = request.handle.timer().now();
        let patience = match request.in_flight {
            InFlight::Reject => Duration::ZERO,
            InFlight::Wait(at_most) => at_most,
        };
        let gap_patience = claim.numbered.map_or(Duration::ZERO, |it| it.patience);
        Self {
            request,
            claim,
            id: request.id,
            began: now,
            deadline: now.saturating_add(patience),
            gap_deadline: now.saturating_add(gap_patience),
            waited: false,
            waited_for: Duration::ZERO,
            #[cfg(feature = "_sql")]
            left: None,
            before: None,
            place: None,
            bound: false,
            goes_on: false,
        }
    }

    pub(crate) async fn admit(&mut self) -> Admission {
        if let Some(audit) = self.request.handle.engine().unseen_audit()
            && let Err(missing) = Box::pin(audit.confirm(&self.request.operation)).await
        {
            return missing.into();
        }
        match self.claim_or_find().await {
            Ok(held) => Admission::Run(held),
            Err(Stop::Answered(admission)) => admission,
            // A claim that may stand was given up already.
            Err(Stop::Failed(error)) => Box::pin(self.without_store(error)).await,
        }
    }

    /// Claims the key, or stops where the key is not this call's to claim.
    ///
    /// Rare work is boxed, so that the future of every call does not hold room for it.
    async fn claim_or_find(&mut self) -> Result<HeldLease, Stop> {
        let mut found = self.find_old().await.map_err(Stop::Failed)?;
        if self.is_held(&self.id) || self.request.is_held() {
            return Err(Stop::Answered(self.recursive()));
        }
        let (store, timer) = (self.request.handle.store(), self.request.handle.timer());
        let (mut plan, mut claiming) = self.begin();
        let (mut sent_at, mut retries) = (Duration::ZERO, Retries::new());
        let mut refusals = Refusals::default();
        loop {
            if let Some(found) = found.take() {
                Box::pin(self.weigh(found, sent_at, &mut plan, &mut refusals)).await?;
            }
            if plan.meaning == Meaning::Fresh && self.id != self.request.id {
                // No record binds it under the old identity any more: the new one counts.
                self.id = self.request.id;
                (plan, claiming) = self.begin();
            }
            let pause = refusals
                .pause(|| self.patience())
                .map_err(Admission::from)?;
            if !pause.is_zero() {
                timer.sleep(pause).await;
            }
            sent_at = timer.now();
            claiming.sent(plan.seen, self.goes_on);
            let answer = store.swap(&self.id, plan.seen, &plan.draft).await;
            let stands = match answered(plan.seen, answer) {
                Ok(Swap::Applied(stamp)) if !self.is_late(sent_at) => {
                    claiming.answered();
                    return Ok(self.applied(&plan, stamp.token, sent_at));
                }
                Ok(Swap::Applied(_)) => {
                    claiming.stands();
                    Box::pin(self.look_at_late(&mut retries)).await
                }
                Ok(Swap::Refused(snapshot)) => {
                    refusals.met(&snapshot);
                    Ok(snapshot)
                }
                Err(error) => Err(error),
            };
            match stands {
                Ok(snapshot) => {
                    claiming.answered();
                    found = Some(snapshot);
                }
                Err(error) => {
                    claiming.failed(&error);
                    let pausing = Box::pin(self.pause_after(error, &mut retries));
                    pausing.await.map_err(Stop::Failed)?;
                    // A version that stood, and was purged meanwhile, must not stand again.
                    plan.draft.version = Version::random();
                }
            }
        }
    }

    /// The record under the identity of an older build, where it binds the call. A number that
    /// would be wrong over nothing looks, too.
    async fn find_old(&mut self) -> Result<Option<Snapshot>, StoreError> {
        match self.request.old_id {
            Some(old) => Box::pin(self.identify(old)).await,
            None if self.claim.looks_first() => Box::pin(self.look(&self.id)).await.map(Some),
            None => Ok(None),
        }
    }

    /// The first write of a claim under this identity, and what gives it up.
    fn begin(&self) -> (Plan, PendingClaim<'a>) {
        let plan = Plan::begin(self.claim);
        (plan, PendingClaim::new(self.request, self.claim, self.id))
    }

    /// Decides about what was found to stand, until a write is planned or the call is admitted.
    async fn weigh(
        &mut self,
        mut found: Snapshot,
        sent_at: Duration,
        plan: &mut Plan,
        refusals: &mut Refusals,
    ) -> Result<(), Admission> {
        while let Some(next) = self.weigh_one(found, sent_at, plan, refusals).await? {
            found = next;
        }
        Ok(())
    }

    /// Gives what is to be looked at next, where no write is planned yet.
    async fn weigh_one(
        &mut self,
        snapshot: Snapshot,
        sent_at: Duration,
        plan: &mut Plan,
        refusals: &mut Refusals,
    ) -> Result<Option<Snapshot>, Admission> {
        match self.decide_here(&snapshot, sent_at) {
            Next::Write(next) if next.meaning.leaves() => match Box::pin(self.leave(*next)).await {
                Ok(LeaveResult::Refused(refused)) => Err(refused.into()),
                Ok(LeaveResult::Moved(stands)) => Ok(Some(stands)),
                Err(error) => Err(Box::pin(self.without_store(error)).await),
            },
            Next::Write(next) => {
                *plan = *next;
                Ok(None)
            }
            Next::Done(admission) => Err(admission),
            Next::NotUndone(record) => Err(Box::pin(self.not_undone(&record)).await),
            Next::Wait(record, left) => {
                let later = Box::pin(self.wait(&record, snapshot.now, left)).await;
                *refusals = Refusals::default();
                Ok(Some(later?))
            }
            Next::WaitForGap(expected) => {
                let later = Box::pin(self.wait_for_gap(expected, snapshot.record.as_deref())).await;
                *refusals = Refusals::default();
                later.map(Some)
            }
        }
    }

    /// Leaves a record whose holder vanished to be settled.
    async fn leave(&self, plan: Plan) -> Result<LeaveResult, StoreError> {
        let Plan {
            seen,
            mut draft,
            meaning,
        } = plan;
        let handle = &self.request.handle;
        let (mut sent, mut retries) = (Vec::new(), Retries::new());
        loop {
            sent.push(draft.version);
            match swap(handle.store(), &self.id, seen, &draft).await {
                Ok(Swap::Applied(_)) => break,
                Ok(Swap::Refused(snapshot)) => {
                    let stands = snapshot.record.as_ref().map(|record| record.version);
                    // The version that stands may be an earlier one of these, whose answer was
                    // lost.
                    if stands.is_some_and(|version| sent.contains(&version)) {
                        break;
                    }
                    return Ok(LeaveResult::Moved(snapshot));
                }
                Err(error) => retries.pause_after(error, handle.timer()).await?,
            }
            draft.version = Version::random();
        }
        Ok(LeaveResult::Refused(self.left(&draft, meaning)))
    }

    /// Tells whether the lease of what was sent then is over: the store was slow to answer, or this
    /// call was not polled. Another call may have taken over since.
    fn is_late(&self, sent_at: Duration) -> bool {
        let now = self.request.handle.timer().now();
        now.saturating_sub(sent_at) >= self.claim.lease
    }

    /// Looks whether a claim that was answered late still stands. A store that is as slow again and
    /// again is of no use.
    async fn look_at_late(&self, retries: &mut Retries) -> Result<Snapshot, StoreError> {
        let late = StoreError::new(StoreErrorKind::Unavailable, "claiming");
        retries.count(late.with_source("the answer took as long as the lease lasts"))?;
        self.request.handle.store().load(&self.id).await
    }

    /// Finds out whether a record binds the call under the identity that it had in an older build,
    /// and what it says.
    async fn identify(&mut self, old: RecordId) -> Result<Option<Snapshot>, StoreError> {
        let snapshot = self.look(&old).await?;
        if is_fresh(&decide(self.claim, &snapshot, Version::random)) {
            return Ok(None);
        }
        self.bound = true;
        self.id = old;
        Ok(Some(snapshot))
    }

    async fn look(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let handle = &self.request.handle;
        let mut retries = Retries::new();
        loop {
            match handle.store().load(id).await {
                Ok(snapshot) => return Ok(snapshot),
                Err(error) => retries.pause_after(error, handle.timer()).await?,
            }
        }
    }

    /// Whether the body around this call holds the record of this id.
    pub(super) fn is_held(&self, id: &RecordId) -> bool {
        is_held(self.request.handle.id(), id)
    }

    fn operation(&self) -> Arc<str> {
        Arc::clone(&self.request.operation)
    }

    /// Tells observers of a change of the record, whose attempt has this number.
    fn tell(&self, attempt: u32, change: RecordChange) {
        let (operation, observers) = (&self.request.operation, self.request.handle.observers());
        observers.transition(operation, &self.id, attempt, change);
    }

    fn applied(&self, plan: &Plan, token: FencingToken, sent_at: Duration) -> HeldLease {
        let draft = &plan.draft;
        debug_assert!(
            matches!(draft.token, TokenRule::Above(_)),
            "every claim draws a token"
        );
        self.run(&ClaimGrant {
            id: self.id,
            version: draft.version,
            token,
            attempt: draft.attempt,
            on_crash: draft.on_crash,
            meaning: plan.meaning,
            error: draft.outcome.clone(),
            keeps_undos: draft.has_open_undos(),
            stream: StoredStream::written(draft),
            sent_at,
        })
    }

    fn run(&self, won: &ClaimGrant) -> HeldLease {
        HeldLease::new(self.request, self.claim, won)
    }

    /// The admission of a call when the store fails at the claim. It runs unprotected only where
    /// nothing is known of the key because the store is out of reach. It does not if its record is
    /// damaged, or if another call was seen to hold it.
    async fn without_store(&self, error: StoreError) -> Admission {
        match self.request.on_outage {
            OnOutage::Open if error.is_transient() && !self.bound => {
                Admission::Unprotected(UnprotectedReason::StoreOutage, self.id)
            }
            OnOutage::ReadOnly => {
                let Ok(snapshot) = self.request.handle.store().load(&self.id).await else {
                    return error.into();
                };
                match decide(self.claim, &snapshot, Version::random) {
                    ClaimDecision::Replay(record) => Admission::Recorded {
                        record,
                        now: snapshot.now,
                        waited: self.waited,
                    },
                    ClaimDecision::KeyReused(record) => self.key_reused(&record).into(),
                    _ => error.into(),
                }
            }
            OnOutage::Open | OnOutage::Closed => error.into(),
        }
    }
}

/// The outcome of leaving a record to be settled.
enum LeaveResult {
    /// It is left so, which refuses the call.
    Refused(Error),
    /// Something else stands there.
    Moved(Snapshot),
}

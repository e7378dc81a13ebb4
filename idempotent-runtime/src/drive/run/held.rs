//! A claim that stands, in the hands of the call that won it.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use crate::{
    attempt::{Attempt, Stage},
    engine::ending::{self, Ended},
    engine::heartbeat::Registration,
    engine::job::Job,
    engine::last_words,
    engine::lease::Lease,
    engine::steps::StepScope,
    handle::Idempotency,
    identity::RecordId,
    observe::RecordChange,
    policy::OnCrash,
    protocol::{Claim, Ending, Meaning, sequence::StoredStream},
    race::race,
    record::{FencingToken, RawOutcome, Version},
    request::Request,
    store::{StoreError, StoreErrorKind},
    value::lock,
};

/// Holds a record while the body runs. Dropped before it was [ended](HeldLease::end), it ends as a
/// body that stopped, in the background.
#[derive(Debug)]
pub(crate) struct HeldLease {
    handle: Idempotency,
    lease: Arc<Lease>,
    place: Option<Registration>,
    polled: bool,
    ended: bool,
    /// How it ends if it is dropped from here on: the body has returned, so it is known.
    known: Mutex<Option<Ending>>,
}

/// A claim that was won: the version that stands, and everything that came with it.
pub(crate) struct ClaimGrant {
    pub(crate) id: RecordId,
    pub(crate) version: Version,
    pub(crate) token: FencingToken,
    pub(crate) attempt: u32,
    pub(crate) on_crash: OnCrash,
    pub(crate) meaning: Meaning,
    /// The error of a call whose steps are being undone.
    pub(crate) error: Option<RawOutcome>,
    /// Whether the record stays because undos are open.
    pub(crate) keeps_undos: bool,
    /// The stream of a call with a number, as it stands.
    pub(crate) stream: Option<StoredStream>,
    /// When the claim was sent, by the holder's timer.
    pub(crate) sent_at: Duration,
}

impl HeldLease {
    pub(crate) fn new(request: &Request, claim: &Claim, won: &ClaimGrant) -> Self {
        let handle = request.handle.clone();
        let stage = match won.meaning {
            Meaning::Reconcile => Stage::Ask,
            _ => Stage::Body,
        };
        let stream = won.stream.as_ref();
        let holding = claim.hold(won.attempt, won.on_crash, won.meaning, stream);
        let holding = match (won.meaning, &won.error) {
            (Meaning::Undo, Some(error)) => holding.undoing(error.clone()),
            _ => holding,
        };
        let passes = holding.passes();
        let goes_on = passes || won.meaning == Meaning::GoOn;
        let attempt = request.attempt(won.id, won.attempt, Some(won.token), stage, goes_on);
        let attempt = attempt.holding(handle.id(), claim.attempt_id, false);
        let change = RecordChange::of_claim(won.meaning, passes);
        handle.observers().changed(&attempt, change);
        let lease = Arc::new(Lease::new(attempt, holding, won.version, won.sent_at));
        if won.keeps_undos {
            lease.keep_undos();
        }
        if !lease.attempt.is_of_number() {
            let scope =
                StepScope::new(handle.engine(), &lease, won.meaning, request.errors_can_end);
            lease.attempt.keep_steps(scope);
        }
        let place = handle.engine().heartbeats().keep(&lease, won.sent_at);
        Self {
            handle,
            lease,
            place: Some(place),
            polled: false,
            ended: false,
            known: Mutex::default(),
        }
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Goes on from the decision that the call has failed for good, which stands at `version` and
    /// was sent at `sent_at`.
    pub(crate) fn begin_to_undo(&mut self, error: RawOutcome, version: Version, sent_at: Duration) {
        let (attempt, holding) = (self.lease.attempt.clone(), self.lease.holding.clone());
        let holding = holding.undoing(error);
        let lease = Arc::new(Lease::new(attempt, holding, version, sent_at));
        lease.keep_undos();
        self.place = Some(self.handle.engine().heartbeats().keep(&lease, sent_at));
        self.lease = lease;
        self.ended = false;
        *lock(&self.known) = None;
    }

    pub(crate) fn attempt(&self) -> &Attempt {
        &self.lease.attempt
    }

    /// Whether another attempt may hold the record by now, as far as is known here.
    pub(crate) fn is_stale(&self) -> bool {
        self.lease.attempt.is_lost() || self.lease.is_over(self.handle.timer().now())
    }

    pub(crate) fn meaning(&self) -> Meaning {
        self.lease.holding.meaning()
    }

    /// Says that the body is being polled, so that it may have done something.
    pub(crate) fn begin(&mut self) {
        self.polled = true;
    }

    /// Writes how the body ended. If the store fails, the lease is kept and the write is tried
    /// again in the background.
    pub(crate) async fn end(&mut self, ending: Ending) -> Result<Ended, StoreError> {
        let reran = self.reran();
        if ending == Ending::Unpolled && self.meaning() != Meaning::Fresh {
            // The record is left running to the next call, and a heartbeat that is under way would
            // take it for its own.
            self.lease.abandon();
        }
        let mut unwritten = PendingCompletion {
            held: self,
            ending: Some(ending),
            reran,
        };
        unwritten.held.lease.start_completion();
        let written = {
            let handle = &unwritten.held.handle;
            // The option is taken only by the drop below.
            let Some(ending) = &unwritten.ending else {
                unreachable!("the ending is there until it is handed over")
            };
            let (store, observers) = (handle.store(), handle.observers());
            ending::end(store, observers, &unwritten.held.lease, ending, reran).await
        };
        match &written {
            Ok(_) => {
                unwritten.ending = None;
                unwritten.held.ended = true;
            }
            Err(error) => {
                let HeldLease { handle, lease, .. } = &*unwritten.held;
                let (attempt, observers) = (&lease.attempt, handle.observers());
                let now = handle.timer().now();
                observers.store_failed(attempt.operation(), error, now);
                observers.changed(attempt, RecordChange::NotYetRecorded);
            }
        }
        drop(unwritten);
        written
    }
}

impl HeldLease {
    /// Whether the reconciling function had the body run again.
    fn reran(&self) -> bool {
        self.lease.attempt.stage() == Stage::RunAgain
    }

    /// Has the ending written in the background. `place` keeps the lease alive until then.
    fn hand_over(&self, ending: Ending, reran: bool, place: Option<Registration>) {
        let lease = Arc::clone(&self.lease);
        self.handle.engine().heartbeats().hand_over(Job::End {
            lease,
            ending,
            reran,
            place,
        });
    }

    /// Says how it ends if it is dropped, or something panics, after the body has returned.
    pub(crate) fn know(&self, ending: Ending) {
        *lock(&self.known) = Some(ending);
    }

    /// Writes that the call has failed for good, again and again while the lease stands, because
    /// its steps are undone only then.
    /// Gives the error that stands; none where the store does not take it.
    pub(crate) async fn decide(
        &mut self,
        mut error: RawOutcome,
    ) -> Result<(Ended, RawOutcome), StoreError> {
        let (mut pause, mut may_stand) = (Duration::from_millis(15), false);
        loop {
            let ending = Ending::Undo(error.clone());
            // Where an earlier try stands, it stays.
            if !may_stand {
                self.know(ending.clone());
            }
            let (timer, observers) = (self.handle.timer(), self.handle.observers());
            let (store, lease, reran) = (self.handle.store(), &self.lease, self.reran());
            let writing = ending::end(store, observers, lease, &ending, reran);
            let silent = || StoreError::new(StoreErrorKind::Unavailable, "writing a record");
            let written = race(writing, timer.sleep_until(lease.ends())).await;
            let failed = match written.unwrap_or_else(|| Err(silent())) {
                Ok(ended) => {
                    self.ended = true;
                    let stands = ended.outcome();
                    return Ok((ended, stands.unwrap_or(error)));
                }
                Err(failed) => failed,
            };
            may_stand |= failed.is_transient();
            match failed.is_transient() {
                // The store may refuse it for its size.
                false if error.is_error() => error = RawOutcome::not_replayable(),
                true if !lease.is_over(timer.now()) => {
                    timer.sleep(pause).await;
                    pause = (pause * 2).min(lease.holding.lease() / 12);
                }
                // If it is dropped, its ending is written in the background: the next call undoes.
                _ => return Err(failed),
            }
        }
    }
}

/// An ending that is not known to stand: dropped so, it is written in the background, because the
/// body has run and its outcome is known.
struct PendingCompletion<'a> {
    held: &'a mut HeldLease,
    ending: Option<Ending>,
    reran: bool,
}

impl Drop for PendingCompletion<'_> {
    fn drop(&mut self) {
        if let Some(ending) = self.ending.take() {
            self.held.ended = true;
            let place = self.held.place.take();
            self.held.hand_over(ending, self.reran, place);
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let known = lock(&self.known).take();
        let said = || match self.lease.attempt.stage() {
            Stage::Happened => Some(Ending::Done(RawOutcome::not_replayable())),
            Stage::InDoubt => Some(Ending::Uncertain),
            _ => None,
        };
        let is_poisoned = self.lease.attempt.is_poisoned();
        let ending = known.or_else(said).filter(|_| !is_poisoned);
        if let Some(ending) = ending {
            let ending = match self.lease.attempt.close_steps(ending, &self.lease) {
                Ending::Undo(error) => Ending::LeftToUndo(error),
                ending => ending,
            };
            self.lease.start_completion();
            let place = self.place.take();
            self.hand_over(ending, self.reran(), place);
            return;
        }
        let (attempt, holding) = (&self.lease.attempt, &self.lease.holding);
        let undoes = holding.error().is_some();
        let ending = match self.polled {
            true if undoes && !thread::panicking() => Ending::Left,
            true => Ending::Stopped,
            false => Ending::Unpolled,
        };
        let ending = attempt.close_steps(ending, &self.lease);
        let runs_again = holding.on_crash() == OnCrash::Rerun && !undoes;
        if self.polled && runs_again {
            last_words::warn_of_a_stopped_body(attempt);
        }
        self.lease.abandon();
        // Given back last: until then, and from then on, something is left to do.
        let _place = self.place.take();
        self.hand_over(ending, self.reran(), None);
    }
}

/// A claim that is under way: dropped so, it is given up in the background, because it may stand.
pub(crate) struct PendingClaim<'a> {
    request: &'a Request,
    claim: &'a Claim,
    id: RecordId,
    /// The version that the write under way was sent over.
    sent: Option<Option<Version>>,
    /// Whether an earlier try of it had no answer.
    may_stand: bool,
    goes_on: bool,
}

impl<'a> PendingClaim<'a> {
    pub(crate) fn new(request: &'a Request, claim: &'a Claim, id: RecordId) -> Self {
        Self {
            request,
            claim,
            id,
            sent: None,
            may_stand: false,
            goes_on: false,
        }
    }

    /// It is being sent over `seen`; `goes_on` tells whether it ever was sent over a record that
    /// was given back.
    pub(crate) fn sent(&mut self, seen: Option<Version>, goes_on: bool) {
        (self.sent, self.goes_on) = (Some(seen), goes_on);
    }

    /// The write was applied; the store is being asked whether it still stands.
    pub(crate) fn stands(&mut self) {
        self.may_stand = true;
    }

    /// The write was answered.
    pub(crate) fn answered(&mut self) {
        self.sent = None;
        self.may_stand = false;
    }

    /// The write failed. A store that says why has not applied it, and knows nothing of an earlier
    /// try. An unknown reason does not count: it may come from something between the store and us.
    pub(crate) fn failed(&mut self, error: &StoreError) {
        if error.is_transient() || error.kind() == StoreErrorKind::Other {
            self.may_stand = true;
        } else if !self.may_stand {
            self.sent = None;
        }
    }
}

impl Drop for PendingClaim<'_> {
    fn drop(&mut self) {
        if let Some(seen) = self.sent {
            let (handle, id) = (&self.request.handle, self.id);
            let mut claim = self.claim.clone();
            claim.goes_on = self.goes_on;
            handle.engine().heartbeats().hand_over(Job::Abandon {
                id,
                claim,
                seen,
                since: handle.timer().now(),
            });
        }
    }
}

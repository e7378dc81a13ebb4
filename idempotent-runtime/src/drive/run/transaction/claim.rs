//! A claim inside a transaction, and the record that ends it there.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use crate::{
    attempt::{Attempt, Stage, goes_forward},
    engine::ending::step,
    engine::last_words::within,
    engine::swap::answered,
    error::Error,
    observe::{CallOutcome, RecordChange},
    outcome::OutOfOrder,
    policy::OnCrash,
    protocol::{Claim, Ending, Holding, Meaning, sequence::StoredStream},
    race::race,
    record::{Draft, State, Version},
    request::{Protection, Request},
    run::{
        active_call::{ActiveCall, Instead, executed},
        admit::{Admission, Admitting, Next, Plan},
        open_transaction::{self, RecordedIn},
    },
    store::{
        JoinedConnection, Savepoint, Snapshot, SqlConnection, StoreError, StoreErrorKind, Swap,
    },
};

/// A claim that stands in a transaction.
pub(crate) struct Claimed {
    pub(crate) attempt: Attempt,
    holding: Holding,
    version: Version,
    /// The change that observers are told of.
    pub(crate) change: RecordChange,
}

/// How often a claim is decided upon at most: a transaction may never see the record that stands.
const ROUNDS: u32 = 16;

impl Request {
    /// How long the call waits for a number that is missing.
    pub(crate) fn gap_patience(&self) -> Duration {
        match &self.protection {
            Protection::Record(asked) => asked.numbered.map_or(Duration::ZERO, |it| it.patience),
            Protection::None(_) => Duration::ZERO,
        }
    }

    /// Makes it a request that a transaction can hold; whether it has a record.
    pub(crate) fn in_transaction(&mut self) -> bool {
        let Protection::Record(asked) = &mut self.protection else {
            return false;
        };
        // A record that another way of calling left behind is for its own policy.
        asked.on_crash = OnCrash::Rerun;
        // If an error of ours is no outcome to keep, and its rows are committed all the same, the
        // call is not run again without an operator.
        self.on_crash = OnCrash::Uncertain;
        true
    }
}

impl Admitting<'_> {
    async fn admit_in(
        &mut self,
        connection: &mut JoinedConnection<'_>,
    ) -> Result<Claimed, Admission> {
        let (request, claim) = (self.request, self.claim);
        if let Some(audit) = request.handle.engine().unseen_audit() {
            Box::pin(audit.confirm(&request.operation)).await?;
        }
        if request.is_held() {
            return Err(self.recursive());
        }
        let store = request.handle.store().transaction_store()?;
        let timer = request.handle.timer();
        let Plan {
            mut seen,
            mut draft,
            mut meaning,
        } = Plan::begin(claim);
        for _ in 0..ROUNDS {
            if draft.state == State::Running {
                // If a body that stopped half-way is committed, half of its rows are: it must not
                // run again without an operator.
                draft.on_crash = OnCrash::Uncertain;
            }
            let sent_at = timer.now();
            let swapped = store.swap_in(connection, &self.id, seen, &draft).await;
            let snapshot = match answered(seen, swapped)? {
                Swap::Refused(snapshot) => snapshot,
                Swap::Applied(stamp) => {
                    if meaning.leaves() {
                        let (change, refusal) = self.leaves(&draft, meaning);
                        self.left = Some((draft.attempt, change));
                        return Err(refusal.into());
                    }
                    let (number, token) = (draft.attempt, Some(stamp.token));
                    let stream = StoredStream::written(&draft);
                    let holding = claim.hold(number, draft.on_crash, meaning, stream.as_ref());
                    let passes = holding.passes();
                    let change = match RecordChange::of_claim(meaning, passes) {
                        RecordChange::Reconciling => RecordChange::TakenOver,
                        change => change,
                    };
                    let attempt = request.attempt(self.id, number, token, Stage::Body, passes);
                    let handle = request.handle.id();
                    let attempt = attempt.holding(handle, claim.attempt_id, store.one_writer());
                    return Ok(Claimed {
                        attempt,
                        holding,
                        version: stamp.version,
                        change,
                    });
                }
            };
            match self.decide(&snapshot, sent_at) {
                // A body in a transaction has no steps: a call outside one undoes them.
                Next::Write(next) if next.meaning == Meaning::Undo => {
                    return Err(self.parked(next.draft.attempt, None).into());
                }
                Next::NotUndone(record) => {
                    return Err(self.parked(record.attempt, None).into());
                }
                // A refusal is written, too: a look may be too old, and a write is not.
                Next::Write(next) => {
                    (seen, draft, meaning) = (next.seen, next.draft, next.meaning);
                }
                Next::Done(admission) => return Err(admission),
                Next::WaitForGap(expected) => return Err(self.gap(expected)),
                // It does not wait with a transaction open: the other one may wait for the locks of
                // that.
                Next::Wait(record, left) => {
                    return Err(self.in_progress(&record, snapshot.now, left).into());
                }
            }
        }
        let source = "what the transaction sees and what stands are not the same";
        let error = StoreError::new(StoreErrorKind::Busy, "writing a record");
        Err(error.with_source(source).into())
    }
}

impl ActiveCall {
    /// The answer to a number that has ended, found without a transaction: one that is open would
    /// make it wait.
    pub(crate) async fn find_ended(&mut self) -> Option<Instead> {
        self.begins();
        if self.request.is_held() {
            return None;
        }
        let claim = self.number()?;
        let store = self.request.handle.store();
        let snapshot = store.load(&self.request.id).await.ok()?;
        let mut admitting = Admitting::new(&self.request, &claim);
        match admitting.decide(&snapshot, Duration::ZERO) {
            Next::Done(
                admission @ (Admission::Recorded { .. }
                | Admission::OutOfOrder(OutOfOrder::Past { .. })
                | Admission::Refused(Error::KeyReused { .. })),
            ) => self.admitted(admission).err(),
            _ => None,
        }
    }

    /// Whether a number before this one is missing.
    pub(crate) fn is_behind_a_gap(&self, snapshot: &Snapshot) -> bool {
        self.number().is_some_and(|claim| {
            let next = Admitting::new(&self.request, &claim).decide(snapshot, Duration::ZERO);
            matches!(next, Next::WaitForGap(_))
        })
    }

    /// Whether the call has a record.
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self.request.protection, Protection::Record(_))
    }

    /// The claim of a call with a number.
    fn number(&self) -> Option<Claim> {
        let Protection::Record(asked) = &self.request.protection else {
            return None;
        };
        asked.numbered.map(|_| self.request.claim(asked))
    }

    /// Claims inside a transaction: the attempt that runs the body, and its claim where it has one.
    pub(crate) async fn admit_in(
        &mut self,
        mut connection: JoinedConnection<'_>,
    ) -> Result<(Attempt, Option<Claimed>), Instead> {
        self.begins();
        goes_forward().await?;
        let (admitted, left) = match &self.request.protection {
            Protection::Record(asked) => {
                let claim = self.span().in_scope(|| self.request.claim(asked));
                let mut admitting = Admitting::new(&self.request, &claim);
                let admitted = {
                    let admitting = pin!(admitting.admit_in(&mut connection));
                    within(self.span(), admitting).await
                };
                if admitted.is_ok() {
                    let before = admitting.before.as_ref();
                    self.request.handle.link(self.span(), before);
                }
                (admitted, admitting.left)
            }
            Protection::None(why) => (Err(Admission::Unprotected(*why, self.request.id)), None),
        };
        self.left = left;
        if admitted.is_ok() {
            open_transaction::begins(&connection);
        }
        match admitted {
            Ok(claimed) => Ok((self.begun(claimed.attempt.clone()), Some(claimed))),
            Err(admission) => self.admitted(admission).map(|attempt| (attempt, None)),
        }
    }

    /// Runs the body, and warns of a transaction that is open for long.
    pub(crate) async fn run_in<B: Future>(
        &mut self,
        attempt: &Attempt,
        body: Pin<&mut Option<B>>,
    ) -> B::Output {
        let (span, handle) = (self.span().clone(), self.request.handle.clone());
        let limit = handle.defaults().transaction_warning;
        let mut running = pin!(self.run(attempt, body));
        let in_time = race(running.as_mut(), handle.timer().sleep(limit)).await;
        if let Some(output) = in_time {
            return output;
        }
        let operation = attempt.operation();
        span.in_scope(|| {
            tracing::warn!(
                operation,
                ?limit,
                "a transaction is open for long: its body still runs"
            );
        });
        running.await
    }

    /// Writes how the body ended, to stand from the commit on: what observers are to be told, and
    /// what was recorded; nothing where the claim was gone.
    pub(crate) async fn end_in(
        &self,
        connection: &mut impl SqlConnection,
        claimed: &Claimed,
        ending: &Ending,
    ) -> Result<Option<(RecordChange, RecordedIn)>, StoreError> {
        let Claimed {
            attempt,
            holding,
            version,
            ..
        } = claimed;
        let draft = holding.end(ending, Version::random());
        let handle = &self.request.handle;
        let store = handle.store().transaction_store()?;
        let connection = &mut connection.connection();
        let swapping = store.swap_in(connection, attempt.id(), Some(*version), &draft);
        let answer = within(self.span(), pin!(swapping)).await;
        if let Swap::Refused(_) = answered(Some(*version), answer)? {
            return Ok(None);
        }
        let recorded = RecordedIn {
            handle: handle.clone(),
            operation: Arc::clone(&self.request.operation),
            id: *attempt.id(),
            draft: Draft {
                subject: self.request.subject(),
                ..draft.clone()
            },
            at: handle.timer().now(),
        };
        Ok(Some((step(ending, draft.state), recorded)))
    }

    /// Tells observers of a change of the record.
    pub(crate) fn tell_in(&self, attempt: &Attempt, change: RecordChange) {
        self.request.handle.observers().changed(attempt, change);
    }

    /// Undoes the rows of the body, and frees the key, if the transaction still takes that; whether
    /// it does.
    pub(super) async fn undo_in(
        &self,
        connection: &mut impl SqlConnection,
        claimed: &Claimed,
        savepoint: &Savepoint,
    ) -> bool {
        if savepoint.roll_back(connection).await.is_ok() {
            // If that fails, too, a commit all the same leaves it uncertain.
            let released = self.end_in(connection, claimed, &Ending::Release).await;
            if let Ok(Some((change, _))) = released {
                self.tell_in(&claimed.attempt, change);
                return true;
            }
        }
        false
    }

    /// Takes note of how a call in a transaction came out. It is recorded if its `change` is told.
    pub(crate) fn executed_in(&mut self, claimed: &Claimed, change: RecordChange) {
        let Claimed {
            attempt, holding, ..
        } = claimed;
        let outcome = match change {
            RecordChange::RolledBack => CallOutcome::RolledBack,
            RecordChange::Staged => CallOutcome::ExecutedInTransaction,
            RecordChange::LeftUncertain => CallOutcome::LeftUncertain,
            RecordChange::Released | RecordChange::Stopped => CallOutcome::Released,
            _ => executed(holding.meaning(), attempt.stage()),
        };
        self.executed(attempt, outcome, change != RecordChange::RolledBack);
    }

    /// Another transaction, of which nothing is seen, has held the key for as long as this call has
    /// waited.
    pub(crate) fn held_in_a_transaction(&self, waited: Duration) -> Error {
        Error::InProgress {
            operation: Arc::clone(&self.request.operation),
            since: waited,
            retry_after: Duration::from_secs(1),
            silent: false,
            attempt: 1,
            holder: "a transaction".into(),
            trace_parent: None,
        }
    }

    pub(crate) fn transaction_ended(&self) -> Error {
        let operation = Arc::clone(&self.request.operation);
        Error::TransactionEnded { operation }
    }
}

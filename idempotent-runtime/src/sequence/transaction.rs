//! A number whose effect is rows, in the transaction of its record.

use std::sync::Arc;

use sqlx::{Database, Transaction};

use super::{
    decision::{Decision, decide},
    failing::{Failed, Tried, tell},
    numbered::NumberedCall,
};
use crate::{
    attempt::{WithoutId, refuse},
    consumer::failure::{Failure, HandlerErrors, VerdictRecorder},
    drive::run_in,
    error::Error,
    handle::Idempotency,
    identity::RecordId,
    observe::CallReport,
    outcome::{FromRefusal, OnError, Storable},
    policy::Verdict,
    protocol::read,
    record::Version,
    run::Typed,
    store::{SqlConnection, is_aborted},
    transaction::{IntoTransact, RetryIf, ShowsCauses, transact},
};

impl<P> NumberedCall<P> {
    /// Runs the body in a transaction of its own, as
    /// [`CallBuilder::transact`](crate::CallBuilder::transact) does: the number moves with the
    /// rows.
    ///
    /// `lease` and `on_crash` are refused. A number that waits for a gap holds no connection.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run) and `CallBuilder::transact`.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, number and rows stand together, or neither does.
    pub async fn transact<D, T, E, F>(mut self, pool: D, body: F) -> Result<Decision<T>, E>
    where
        D: IntoTransact,
        D::RetryIf: RetryIf<E>,
        T: Storable,
        E: FromRefusal + ShowsCauses,
        P: OnError<E>,
        F: AsyncFnOnce(&mut <D::Database as Database>::Connection) -> Result<T, E> + Clone,
    {
        self.call.in_transaction(true);
        let described = self.call.describe();
        let recorder = VerdictRecorder::exact(self.on_error);
        let typed = Typed::whole(&recorder);
        let tried = Tried::of(&described, self.number, self.keeps_error_text);
        let settings = pool.into_transact().map_retry_if(HandlerErrors);
        let body = async move |tx: &mut <D::Database as Database>::Connection| {
            body(tx).await.map_err(Failure::Handler)
        };
        let (result, report) = transact(described, typed, settings, body).await;
        if let Some(tried) = &tried
            && let Some(failed) = tried.failed(&result, recorder.noted())
        {
            tried.note(&failed).await;
        }
        tell(tried, decide(&self.operation, result, &report))
    }

    /// Runs the body as a part of a transaction of yours, as
    /// [`CallBuilder::run_in`](crate::CallBuilder::run_in) does. Commit it by
    /// [`StagedNumber::commit`], which returns the decision about the number.
    ///
    /// `lease`, `on_crash`, `in_flight` and `wait_for_gap` are refused. A call waits in the
    /// database for another transaction that has the stream, whatever its number is.
    ///
    /// # Cancel safety
    ///
    /// As [`CallBuilder::run_in`](crate::CallBuilder::run_in).
    pub async fn run_in<C, T, E, F>(mut self, connection: &mut C, body: F) -> StagedNumber<T, E>
    where
        C: SqlConnection,
        T: Storable,
        E: FromRefusal + ShowsCauses,
        P: OnError<E>,
        F: AsyncFnOnce(&mut C) -> Result<T, E>,
    {
        self.call.in_transaction(false);
        let operation = self.operation;
        let described = self.call.describe();
        let tried = Tried::of(&described, self.number, self.keeps_error_text);
        let moves = described.as_ref().ok().map(|call| Moved {
            handle: call.request.handle.clone(),
            id: call.request.id,
            number: self.number,
            version: None,
        });
        let recorder = VerdictRecorder::exact(self.on_error);
        let typed = Typed::whole(&recorder);
        let body = async |tx: &mut C| body(tx).await.map_err(Failure::Handler);
        let finished = run_in(described, typed, connection, body).await;
        let (result, report) = finished.answer;
        let moves = moves.map(|moves| Moved {
            version: finished.written,
            ..moves
        });
        let failed = tried.as_ref();
        let failed = failed.and_then(|tried| tried.failed(&result, recorder.noted()));
        let is_own = matches!(result, Err(Failure::Handler(_)));
        let is_recorded = match report {
            CallReport::Executed { recorded, .. } => {
                recorded && recorder.noted() != Verdict::Release
            }
            CallReport::Replayed { .. } => true,
            _ => false,
        };
        let decided = decide(&operation, result, &report);
        let commits = match &decided {
            Ok(Decision::Gap { .. }) => false,
            Ok(_) => true,
            // The error is recorded, or that it is unknown what happened.
            Err(_) => is_own && is_recorded,
        };
        let is_there = matches!(decided, Ok(Decision::Applied(_) | Decision::Replayed(_)));
        let has_record = matches!(
            report,
            CallReport::Executed { .. } | CallReport::Replayed { .. }
        );
        StagedNumber {
            operation,
            decided,
            commits,
            tried,
            failed,
            moved: moves.filter(|_| is_there && has_record),
        }
    }
}

/// The failure of a number whose transaction did not commit, or may not have.
fn not_committed() -> Failed {
    let kind = std::any::type_name::<Error>();
    (kind, "its transaction did not commit".to_owned())
}

/// A number that a transaction has moved.
#[derive(Debug)]
struct Moved {
    handle: Idempotency,
    id: RecordId,
    number: u64,
    /// The version of the stream that moved it; none where the number was replayed, perhaps out of
    /// this very transaction.
    version: Option<Version>,
}

impl Moved {
    /// Whether others see it. If the store does not tell, the commit counts. A stream that went on
    /// since has another version. One that stands at the number by another version was moved by
    /// another call.
    async fn stands(&self) -> bool {
        let Ok(snapshot) = self.handle.store().load(&self.id).await else {
            return true;
        };
        let record = snapshot.record.as_deref();
        let version = self.version;
        let is_own = version.is_none_or(|own| record.is_some_and(|it| it.version == own));
        let stored = read(record).ok().flatten();
        let goes_on = stored
            .as_ref()
            .is_some_and(|it| it.stream.running.is_some() || it.failing.is_some());
        let last = stored.and_then(|it| it.stream.last);
        last.is_some_and(|last| {
            last.number > self.number || (last.number == self.number && (is_own || goes_on))
        })
    }
}

/// A number that is applied once its transaction has committed.
#[derive(Debug)]
#[must_use = "nothing is committed yet: `commit(tx)` does it, and tells what became of the number"]
pub struct StagedNumber<T, E> {
    operation: Arc<str>,
    decided: Result<Decision<T>, E>,
    commits: bool,
    tried: Option<Tried>,
    failed: Option<Failed>,
    moved: Option<Moved>,
}

impl<T, E> StagedNumber<T, E> {
    /// Tells what becomes of the number if the commit succeeds.
    pub fn decision(&self) -> &Result<Decision<T>, E> {
        &self.decided
    }

    /// Commits the transaction that the number was run in. It rolls that back if the number is to
    /// come again: behind a gap, and after an error that is not recorded.
    ///
    /// # Errors
    ///
    /// As [`NumberedCall::run`], and:
    ///
    /// * [`Error::CommitUnknown`](crate::Error::CommitUnknown): the commit failed. The same number
    ///   again finds out whether it was carried out.
    /// * [`Error::TransactionEnded`](crate::Error::TransactionEnded): the number does not stand. A
    ///   statement had failed in the transaction, a savepoint took the number back, or it was run
    ///   in another transaction. Or this one is nested in another one, which is still open. Roll
    ///   that back.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the transaction is rolled back or committed, and the next call of the number finds
    /// that out.
    pub async fn commit<DB>(self, mut tx: Transaction<'_, DB>) -> Result<Decision<T>, E>
    where
        DB: Database<Connection: SqlConnection>,
        E: FromRefusal,
    {
        let Self {
            operation,
            decided,
            commits,
            tried,
            failed,
            moved,
        } = self;
        // Postgres answers the COMMIT of a transaction in which a statement failed as if all was
        // well.
        let is_aborted = commits && is_aborted(&mut *tx).await;
        let refused = |error| Err(refuse(WithoutId::Number, error));
        let ended = |operation| refused(Error::TransactionEnded { operation });
        if !commits || is_aborted {
            // If that fails, the connection is of no more use, and the server rolls back.
            let _rolled_back = tx.rollback().await;
            let failed = failed.or_else(|| is_aborted.then(not_committed));
            if let (Some(tried), Some(failed)) = (&tried, failed) {
                tried.note(&failed).await;
            }
            return tell(
                tried,
                if is_aborted {
                    ended(operation)
                } else {
                    decided
                },
            );
        }
        if let Err(error) = tx.commit().await {
            tracing::warn!(%error, operation = &*operation, "the commit of a number failed");
            if let Some(tried) = &tried {
                tried.note(&not_committed()).await;
            }
            let has_record = true;
            return tell(
                tried,
                refused(Error::CommitUnknown {
                    operation,
                    has_record,
                }),
            );
        }
        let decided = match moved {
            // The commit of a transaction that is nested in another one ends nothing.
            Some(moved) if !moved.stands().await => ended(operation),
            _ => decided,
        };
        tell(tried, decided)
    }
}

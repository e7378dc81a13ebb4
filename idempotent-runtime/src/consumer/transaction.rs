//! A message whose effect is rows, in the transaction of its record.

use std::time::Duration;

use sqlx::{Database, Transaction};

use super::{
    disposition::{Decided, Disposition},
    failure::{Failure, HandlerErrors},
    hold::Hold,
    message::{Delivery, Numbered},
};
use crate::{
    drive::run_in,
    error::BoxError,
    observe::CallReport,
    outcome::OnError,
    record::{Record, State, Version},
    run::Typed,
    store::{SqlConnection, is_aborted},
    transaction::{IntoTransact, RetryIf, ShowsCauses, transact},
};

impl<P> Delivery<'_, P, Numbered> {
    /// Whether no handler is to run any more. The message is claimed all the same: a transaction
    /// that is open may still commit its effect.
    fn is_delivered_too_often(&self) -> bool {
        self.it.delivery > self.it.settings.max_deliveries
    }

    /// Runs the handler in a transaction of its own, as [`CallBuilder::transact`] does, and tells
    /// what to do with the message once it has committed. A crash leaves no trace there. So the
    /// broker's [count](Self::delivery) is required: beyond `max_deliveries` no handler runs, and
    /// the message is a dead letter.
    ///
    /// Use `run` for all messages of a consumer, or the forms with a transaction.
    ///
    /// The handler asks [`current`](crate::current) whether the broker still
    /// [holds](Self::keep_alive) the message for it.
    ///
    /// # Panics
    ///
    /// If the handler does. The message is not settled then, and comes again.
    ///
    /// # Cancel safety
    ///
    /// As [`CallBuilder::transact`].
    ///
    /// [`CallBuilder::transact`]: crate::CallBuilder::transact
    pub async fn transact<D, T, E, F>(self, pool: D, handler: F) -> Disposition
    where
        D: IntoTransact,
        D::RetryIf: RetryIf<E>,
        E: ShowsCauses + Send + Sync,
        P: OnError<E>,
        F: AsyncFnOnce(&mut <D::Database as Database>::Connection) -> Result<T, E> + Clone,
    {
        let settings = pool.into_transact().map_retry_if(HandlerErrors);
        let (hold, too_often) = (Hold::default(), self.is_delivered_too_often());
        let hold = &hold;
        let handled = async move |tx: &mut <D::Database as Database>::Connection| {
            hold.begins_here();
            if too_often {
                return Err(Failure::TooOften);
            }
            handler(tx).await.map(drop).map_err(Failure::Handler)
        };
        self.dispose(hold, async |described, on_error| {
            transact(described, Typed::whole(on_error), settings, handled).await
        })
        .await
    }

    /// Runs the handler as a part of a transaction of yours, as [`CallBuilder::run_in`] does.
    /// Commit it by [`StagedMessage::commit`], which tells what to do with the message.
    ///
    /// # Panics
    ///
    /// If the handler does. The message is not settled then, and comes again.
    ///
    /// # Cancel safety
    ///
    /// As [`CallBuilder::run_in`].
    ///
    /// [`CallBuilder::run_in`]: crate::CallBuilder::run_in
    pub async fn run_in<C, T, E, F>(self, connection: &mut C, handler: F) -> StagedMessage
    where
        C: SqlConnection,
        E: Into<BoxError>,
        P: OnError<E>,
        F: AsyncFnOnce(&mut C) -> Result<T, E>,
    {
        let (hold, too_often) = (Hold::default(), self.is_delivered_too_often());
        let handled = async |tx: &mut C| {
            hold.begins_here();
            if too_often {
                return Err(Failure::TooOften);
            }
            handler(tx).await.map(drop).map_err(Failure::Handler)
        };
        let mut proof = Proof::Commit;
        let decided = self.decide(&hold, async |described, on_error| {
            let finished = run_in(described, Typed::whole(on_error), connection, handled).await;
            proof = Proof::of(finished.written, &finished.answer.1);
            finished.answer
        });
        let decided = decided.await;
        StagedMessage { decided, proof }
    }
}

/// Says what is to be done with a message once its transaction has committed.
#[derive(Debug)]
#[must_use = "nothing is committed yet: `commit(tx)` does it, and tells what to do with the message"]
pub struct StagedMessage {
    decided: Decided,
    proof: Proof,
}

/// Proves that what a disposition tells of stands.
#[derive(Debug)]
enum Proof {
    /// The commit, because there is no record.
    Commit,
    /// Others see this version of the record, which the transaction wrote.
    Version(Version),
    /// Others see the outcome that was replayed: it may be of this very transaction.
    Outcome,
}

impl Proof {
    fn of(written: Option<Version>, report: &CallReport) -> Self {
        match (written, report) {
            (Some(version), _) => Self::Version(version),
            (None, CallReport::Replayed { .. }) => Self::Outcome,
            (None, _) => Self::Commit,
        }
    }
}

impl StagedMessage {
    /// Tells what is to be done with the message if the commit succeeds. Store a dead letter in the
    /// transaction before it is committed, and the two cannot part.
    pub fn disposition(&self) -> &Disposition {
        &self.decided.disposition
    }

    /// Commits the transaction that the message was run in, or rolls it back where the message is
    /// to come again.
    ///
    /// A commit that fails is [`Disposition::Retry`]: the next delivery finds out whether it was
    /// carried out.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the transaction is rolled back or committed, and the next delivery finds that out.
    pub async fn commit<DB>(self, mut tx: Transaction<'_, DB>) -> Disposition
    where
        DB: Database<Connection: SqlConnection>,
    {
        let Self { mut decided, proof } = self;
        let again = |error: BoxError| Disposition::Retry {
            after: Duration::from_secs(1),
            error: Some(error),
        };
        // Postgres answers the COMMIT of a transaction in which a statement failed as if all was
        // well.
        if !decided.is_retry() && is_aborted(&mut *tx).await {
            decided.disposition = again("a statement failed in the transaction".into());
        }
        if decided.is_retry() {
            // If that fails, the connection is of no more use, and the server rolls back.
            let _rolled_back = tx.rollback().await;
        } else if let Err(error) = tx.commit().await {
            decided.disposition = again(error.into());
        } else if !decided.stands(&proof).await {
            decided.disposition = again(
                "the record does not stand: the transaction is nested in another one, or is not that of the message"
                    .into(),
            );
        }
        decided.told_of_a_commit().await
    }
}

impl Decided {
    fn is_retry(&self) -> bool {
        matches!(self.disposition, Disposition::Retry { .. })
    }

    /// Whether others see its record, once its transaction has committed. An older record under the
    /// same id tells nothing. If the store does not tell, the next delivery does.
    async fn stands(&self, proof: &Proof) -> bool {
        let is_proof = |record: &Record| match proof {
            Proof::Commit => true,
            Proof::Version(written) => record.version == *written,
            Proof::Outcome => record.state == State::Done,
        };
        let Some(id) = self.record.filter(|_| !matches!(proof, Proof::Commit)) else {
            return true;
        };
        let looked = self.settings.handle.store().load(&id).await;
        let stands = looked.ok().and_then(|snapshot| snapshot.record);
        stands.is_some_and(|record| is_proof(&record))
    }
}

//! A call as a part of a transaction of the application's: its record commits and rolls back with
//! the rows of the body.
//!
//! No other call sees what is written before the commit. So nothing beats, nothing is given up and
//! nothing is tried again here. A call that comes meanwhile waits in the database, and if the
//! transaction ends without a commit, there was no call.

mod claim;

use std::pin::{Pin, pin};

pub(crate) use self::claim::Claimed;
use crate::{
    attempt::Attempt,
    drive::DescribedCall,
    observe::{CallReport, RecordChange},
    outcome::Outcome,
    policy::OnCrash,
    protocol::Ending,
    record::{State, Version},
    run::{active_call::ActiveCall, codec::ResultCodec, open_transaction},
    store::{Savepoint, SqlConnection, check_open, is_aborted, says_aborted},
    value::opaque,
};

/// A call that has joined a transaction: it runs the body, and then writes how that ended.
pub struct Joined<Q> {
    call: Box<ActiveCall>,
    codec: Q,
    attempt: Attempt,
    /// None where the call runs unprotected.
    claimed: Option<Claimed>,
    /// The place before the body; none where no transaction is open.
    savepoint: Option<Savepoint>,
}

/// Claims inside the transaction; the answer of the call instead, if its body is not to run.
pub(crate) async fn join<C, R, Q>(
    described: DescribedCall,
    codec: Q,
    connection: &mut C,
) -> Result<Joined<Q>, Q::Answer>
where
    C: SqlConnection,
    R: Outcome,
    Q: ResultCodec<R>,
{
    let mut call = described.map_err(|error| Q::refused(*error))?;
    let is_recorded = call.request.in_transaction();
    call.begins();
    let open = check_open(connection).await;
    let has_place = open.is_ok();
    let admitted = match open {
        Err(error) if is_recorded => Err(error.into()),
        _ => call.admit_in(connection.connection()).await,
    };
    let instead = match admitted {
        Err(instead) => instead,
        Ok((attempt, claimed)) => {
            if let Some(claimed) = &claimed {
                call.tell_in(&claimed.attempt, claimed.change);
            }
            let savepoint = match has_place {
                true => Savepoint::set(connection).await.map(Some),
                false => Ok(None),
            };
            match savepoint {
                Err(error) => error.into(),
                Ok(savepoint) => {
                    return Ok(Joined {
                        call,
                        codec,
                        attempt,
                        claimed,
                        savepoint,
                    });
                }
            }
        }
    };
    Err(codec.instead(&mut call, instead).await)
}

opaque!(Joined<Q>);

impl<Q> Joined<Q> {
    /// Runs the body.
    pub async fn run<B: Future>(&mut self, body: Pin<&mut Option<B>>) -> B::Output {
        self.call.run_in(&self.attempt, body).await
    }

    /// Runs a body that is made here.
    pub(crate) async fn make_and_run<B: Future>(&mut self, body: impl FnOnce() -> B) -> B::Output {
        let body = pin!(Some(self.call.make(&self.attempt, |_| body())));
        self.call.run_in(&self.attempt, body).await
    }

    /// Writes how the body of an annotated function ended, and gives what its caller gets.
    #[expect(private_bounds, reason = "nobody else implements it")]
    pub async fn finish<C, R>(self, connection: &mut C, own: R) -> R
    where
        C: SqlConnection,
        R: Outcome,
        Q: ResultCodec<R, Answer = (R, CallReport)>,
    {
        self.end(connection, own).await.answer.0
    }
}

/// The answer to a call that was a part of a transaction.
pub(crate) struct Finished<A> {
    pub(crate) answer: A,
    /// The version that it wrote, which stands once the transaction has committed.
    pub(crate) written: Option<Version>,
}

impl<A> From<A> for Finished<A> {
    fn from(answer: A) -> Self {
        let written = None;
        Self { answer, written }
    }
}

impl<Q> Joined<Q> {
    /// Writes how the body ended, and gives what the caller gets.
    ///
    /// The rows of an `Err` are undone first. If they cannot be, the transaction is gone, and so is
    /// the claim. An `Err` that has left the transaction aborted may come from a conflict with
    /// another one, so it is no outcome.
    pub(crate) async fn end<C, R>(mut self, connection: &mut C, own: R) -> Finished<Q::Answer>
    where
        C: SqlConnection,
        R: Outcome,
        Q: ResultCodec<R>,
    {
        let own = Q::take(own);
        let Some(claimed) = self.claimed.take() else {
            return self.end_unprotected(connection, own).await.into();
        };
        let Some(savepoint) = self.savepoint.take() else {
            unreachable!("a claim has a place before its body")
        };
        self.record(connection, own, (claimed, savepoint)).await
    }

    /// Ends a call without a record. Its transaction is looked at all the same: the commit of one
    /// that has ended may be answered as if all was well.
    async fn end_unprotected<C, R>(mut self, connection: &mut C, own: Q::Own) -> Q::Answer
    where
        C: SqlConnection,
        R: Outcome,
        Q: ResultCodec<R>,
    {
        let (call, codec, is_err) = (&mut self.call, &self.codec, own.is_err());
        if let Some(savepoint) = self.savepoint {
            if is_err {
                // Where that fails, the transaction is gone.
                let _undone = savepoint.roll_back(connection).await;
            }
            let released = savepoint.release(connection).await;
            if !is_err && released.is_err() {
                let ended = call.transaction_ended();
                return codec.instead(call, ended.into()).await;
            }
        }
        codec.own(call, own, None).await
    }

    async fn record<C, R>(
        mut self,
        connection: &mut C,
        mut own: Q::Own,
        (claimed, savepoint): (Claimed, Savepoint),
    ) -> Finished<Q::Answer>
    where
        C: SqlConnection,
        R: Outcome,
        Q: ResultCodec<R>,
    {
        let (call, codec, is_err) = (&mut self.call, &self.codec, own.is_err());
        let is_aborted = is_err && is_aborted(connection).await;
        if is_err {
            if savepoint.roll_back(connection).await.is_err() {
                open_transaction::ends(&connection.connection());
                call.executed_in(&claimed, RecordChange::RolledBack);
                return codec.own(call, own, None).await.into();
            }
            // Nothing of the body stands that a second run could double.
            call.request.on_crash = OnCrash::Rerun;
        }
        let ending = match is_aborted {
            true => Ending::Release,
            false => codec.leave(call, &claimed.attempt, &mut own).await,
        };
        let ended = call.end_in(connection, &claimed, &ending).await;
        open_transaction::ends(&connection.connection());
        let ended = ended.map(|ended| {
            ended.map(|(change, recorded)| {
                let (version, change) = (recorded.draft.version, staged(change));
                call.tell_in(&claimed.attempt, change);
                if recorded.draft.state == State::Done {
                    open_transaction::recorded(&connection.connection(), recorded);
                }
                (change, version)
            })
        });
        let written = *ended.as_ref().unwrap_or(&None);
        let is_gone = matches!(&ended, Err(error) if says_aborted(error));
        let refusal = match ended {
            // A failure in the body is mostly why nothing more can be written, or nothing is left.
            _ if is_err => None,
            Ok(Some(_)) => None,
            Err(error) if !says_aborted(&error) => Some(error.into()),
            Ok(None) | Err(_) => Some(call.transaction_ended()),
        };
        if refusal.is_some() {
            call.undo_in(connection, &claimed, &savepoint).await;
        } else {
            let change = match written {
                Some((change, _)) => change,
                None if is_gone => RecordChange::RolledBack,
                None => match call.undo_in(connection, &claimed, &savepoint).await {
                    true => RecordChange::Released,
                    // If the application commits, the claim stands, and an operator has to look.
                    false => RecordChange::LeftUncertain,
                },
            };
            call.executed_in(&claimed, change);
        }
        if let Err(error) = savepoint.release(connection).await {
            // The commit releases it, too.
            tracing::debug!(%error, "a savepoint is not released");
        }
        let answer = match refusal {
            // The value behind a reference is not read back: it may stand in rows that are not
            // committed yet.
            None => codec.own(call, own, None).await,
            Some(error) => codec.instead(call, error.into()).await,
        };
        let written = written.map(|(_, version)| version);
        Finished { answer, written }
    }
}

/// A change in a transaction of the application's is no more than staged: only the application
/// knows whether it commits.
fn staged(change: RecordChange) -> RecordChange {
    match change {
        RecordChange::Recorded | RecordChange::RecordedNotReplayable => RecordChange::Staged,
        other => other,
    }
}

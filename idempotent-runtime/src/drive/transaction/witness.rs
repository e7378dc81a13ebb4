//! Finds out a commit whose answer is lost, by what was recorded in it.

use std::time::Duration;

use sqlx::Transaction;

use super::{Isolation, PAUSE, SqlDatabase, connection::OwnedConnection, own::OwnTransaction};
use crate::{
    protocol::sequence::StoredStream,
    race::race,
    record::{Draft, Record},
    run::RecordedIn,
    store::{StoreError, Swap, sealed::Sealed as _},
};

/// How long one look may take. A connection to a server that is away may swallow it.
const ONE_LOOK: Duration = Duration::from_secs(1);

/// Proves that a transaction has committed: a row that it wrote.
pub(crate) trait Witness<DB: SqlDatabase> {
    /// Looks by a write, which is rolled back. It waits while the earlier transaction is still
    /// open.
    async fn look(&self, tx: &mut Transaction<'_, DB>) -> Result<Stands, StoreError>;

    /// Tells whether there is a row to look for.
    fn has_written(&self) -> bool {
        true
    }

    /// Tells whether the row may be gone by now, because its time is over.
    fn may_be_gone(&self) -> bool {
        false
    }

    /// Until when the commit is looked for, if that does not depend on the database's patience.
    fn until(&self) -> Option<Duration> {
        None
    }
}

/// How a transaction ended whose commit had no answer.
pub(crate) enum CommitStatus {
    Committed,
    RolledBack,
    /// The database did not tell in time, or the record may have expired meanwhile.
    Unknown {
        /// Whether the record tells the next call.
        has_record: bool,
    },
}

/// How far a record tells of an outcome that was written in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// It is there.
    Itself,
    /// A sequence has its number or a larger one, and was written since. It is unknown which call
    /// applied the number.
    Later,
    /// It is not there.
    Nothing,
}

impl<DB: SqlDatabase> OwnTransaction<'_, DB> {
    /// Finds out whether a transaction has committed. No row at all tells nothing.
    pub(super) async fn find_out(&self, witness: &impl Witness<DB>) -> CommitStatus {
        if !witness.has_written() {
            return CommitStatus::Unknown { has_record: false };
        }
        let timer = self.timer;
        let within = timer.now().saturating_add(self.answers_within);
        let until = witness.until().unwrap_or(within);
        let look = async {
            loop {
                match race(self.look(witness), timer.sleep(ONE_LOOK)).await {
                    Some(Ok(stands)) => return stands,
                    Some(Err(error)) => tracing::debug!(%error, "a commit is not found out yet"),
                    None => tracing::debug!("the database is silent about a commit"),
                }
                timer.sleep(PAUSE).await;
            }
        };
        match race(look, timer.sleep_until(until)).await {
            Some(Stands::Itself) => CommitStatus::Committed,
            Some(Stands::Later) => CommitStatus::Unknown { has_record: true },
            Some(Stands::Nothing) if witness.may_be_gone() => {
                CommitStatus::Unknown { has_record: false }
            }
            Some(Stands::Nothing) => CommitStatus::RolledBack,
            None => CommitStatus::Unknown { has_record: true },
        }
    }

    async fn look(&self, witness: &impl Witness<DB>) -> Result<Stands, StoreError> {
        let mut owned = OwnedConnection::acquire(self.pool).await?;
        let mut tx = owned.begin(Some(Isolation::ReadCommitted)).await?;
        let stands = witness.look(&mut tx).await?;
        if tx.rollback().await.is_ok() {
            owned.give_back().await;
        }
        Ok(stands)
    }
}

/// Looks for outcomes of calls, for each by a claim, which shows a record that has expired, too.
pub(super) async fn look_for<DB: SqlDatabase>(
    outcomes: &[RecordedIn],
    tx: &mut Transaction<'_, DB>,
) -> Result<Stands, StoreError> {
    let mut found = Stands::Nothing;
    for RecordedIn {
        handle, id, draft, ..
    } in outcomes
    {
        let store = handle.store().transaction_store()?;
        let claimed = store.swap_in(&mut tx.connection(), id, None, draft).await?;
        let stands = match claimed {
            Swap::Applied(_) => Stands::Nothing,
            Swap::Refused(snapshot) => Stands::of(draft, snapshot.record.as_deref()),
        };
        match stands {
            Stands::Itself => return Ok(Stands::Itself),
            Stands::Later => found = Stands::Later,
            Stands::Nothing => {}
        }
    }
    Ok(found)
}

impl Stands {
    fn of(written: &Draft, record: Option<&Record>) -> Self {
        let Some(record) = record else {
            return Self::Nothing;
        };
        if record.attempt_id == written.attempt_id {
            return Self::Itself;
        }
        let number = |stored: StoredStream| stored.stream.last.map(|last| last.number);
        let ours = StoredStream::written(written).and_then(number);
        let stands = StoredStream::read(record).ok().and_then(number);
        match ours.zip(stands) {
            Some((ours, stands)) if stands >= ours => Self::Later,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        policy::OnCrash,
        protocol::{CallNumber, Claim, Ending, Meaning, sample, sequence::Gaps},
        record::{AttemptId, RawOutcome, Time, Version},
    };

    const NOW: Time = Time::from_micros(1_000_000);

    /// The outcome of `number`, as the call `attempt_id` writes it over nothing.
    fn outcome(number: u64, attempt_id: u128) -> Draft {
        let claim = Claim {
            numbered: Some(CallNumber {
                number,
                gaps: Gaps::Accept,
                patience: Duration::ZERO,
                expires_after: None,
            }),
            ..sample::claim(AttemptId::from_u128(attempt_id), OnCrash::Rerun)
        };
        let begun = claim
            .opening(Version::from_u128(1))
            .expect("nothing stands");
        let stored = StoredStream::written(&begun);
        let holding = claim.hold(1, OnCrash::Rerun, Meaning::Fresh, stored.as_ref());
        let done = Ending::Done(RawOutcome::value("receipt"));
        holding.end(&done, Version::from_u128(2))
    }

    #[test]
    fn mend_41_a_record_tells_of_an_outcome_up_to_its_own_number() {
        let written = outcome(7, 1);
        let record = |number, attempt_id| outcome(number, attempt_id).apply(None, NOW);
        for (record, stands) in [
            (None, Stands::Nothing),
            (Some(record(7, 1)), Stands::Itself),
            (Some(record(6, 2)), Stands::Nothing),
            (Some(record(7, 2)), Stands::Later),
            (Some(record(8, 2)), Stands::Later),
        ] {
            assert_eq!(Stands::of(&written, record.as_ref()), stands, "{record:?}");
        }
    }
}

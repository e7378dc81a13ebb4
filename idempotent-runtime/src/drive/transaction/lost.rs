//! Finds out a commit whose answer is lost, by the outcomes that were recorded in it.

use std::time::Duration;

use super::{Isolation, PAUSE, SqlDatabase, Transact, connection::OwnedConnection};
use crate::{
    protocol::sequence::StoredStream,
    race::race,
    record::{Draft, Record},
    run::RecordedIn,
    store::{StoreError, Swap, sealed::Sealed as _},
};

/// How long one look may take. A connection to a server that is away may swallow it.
const ONE_LOOK: Duration = Duration::from_secs(1);

/// How a transaction ended whose commit had no answer.
pub(super) enum CommitStatus {
    Committed,
    RolledBack,
    /// The database did not tell in time, or the record may have expired meanwhile.
    Unknown {
        /// Whether the record tells the next call.
        has_record: bool,
    },
}

impl<DB: SqlDatabase, Q> Transact<DB, Q> {
    /// Finds out whether one of these stands. No record at all tells nothing.
    pub(super) async fn find_out(&self, recorded: &[RecordedIn], within: Duration) -> CommitStatus {
        let Some(RecordedIn { handle, .. }) = recorded.first() else {
            return CommitStatus::Unknown { has_record: false };
        };
        let timer = handle.timer();
        let look = async {
            loop {
                match race(self.what_stands(recorded), timer.sleep(ONE_LOOK)).await {
                    Some(Ok(stands)) => return stands,
                    Some(Err(error)) => tracing::debug!(%error, "a commit is not found out yet"),
                    None => tracing::debug!("the database is silent about a commit"),
                }
                timer.sleep(PAUSE).await;
            }
        };
        match race(look, timer.sleep(within)).await {
            Some(Stands::Itself) => CommitStatus::Committed,
            Some(Stands::Later) => CommitStatus::Unknown { has_record: true },
            Some(Stands::Nothing) if recorded.iter().any(RecordedIn::may_be_gone) => {
                CommitStatus::Unknown { has_record: false }
            }
            Some(Stands::Nothing) => CommitStatus::RolledBack,
            None => CommitStatus::Unknown { has_record: true },
        }
    }

    async fn what_stands(&self, recorded: &[RecordedIn]) -> Result<Stands, StoreError> {
        let mut found = Stands::Nothing;
        for recorded in recorded {
            match self.stands(recorded).await? {
                Stands::Itself => return Ok(Stands::Itself),
                Stands::Later => found = Stands::Later,
                Stands::Nothing => {}
            }
        }
        Ok(found)
    }

    /// Looks by a claim, which is rolled back. The claim waits while the earlier transaction is
    /// still open. The look shows a record that has expired, too.
    async fn stands(&self, recorded: &RecordedIn) -> Result<Stands, StoreError> {
        let RecordedIn {
            handle, id, draft, ..
        } = recorded;
        let mut owned = OwnedConnection::acquire(&self.pool).await?;
        let mut tx = owned.begin(Some(Isolation::ReadCommitted)).await?;
        let store = handle.store().transaction_store()?;
        let claimed = store.swap_in(&mut tx.connection(), id, None, draft).await?;
        let is_clean = tx.rollback().await.is_ok();
        if is_clean {
            owned.give_back().await;
        }
        Ok(match claimed {
            Swap::Applied(_) => Stands::Nothing,
            Swap::Refused(snapshot) => Stands::of(draft, snapshot.record.as_deref()),
        })
    }
}

/// How far a record tells of an outcome that was written in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// It is there.
    Itself,
    /// A sequence has its number or a larger one, and was written since. It is unknown which call
    /// applied the number.
    Later,
    /// It is not there.
    Nothing,
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

//! A store with one thing wrong.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Clients, Defect, simple_steps::Steps};
use crate::{
    clock::Clock,
    fingerprint::{ArgumentDigests, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    record::{
        Draft, FencingToken, Moment, Record, State, Step, StepNames, Time, TokenRule, Version,
    },
    store::{RecordList, Snapshot, Stamp, StepStore, StepWrite, Store, StoreError, Swap},
    testing::{ManualClock, conformance::StoreUnderTest as _},
};

pub(super) type Cells = BTreeMap<[u8; 32], Arc<Record>>;

/// The simplest store there is, with one thing wrong.
#[derive(Debug)]
pub(super) struct Simple {
    pub(super) defect: Defect,
    pub(super) cells: Arc<Mutex<Cells>>,
    pub(super) steps: Arc<Mutex<Steps>>,
    pub(super) changes: watch::Sender<u64>,
    pub(super) held: Arc<tokio::sync::Mutex<()>>,
    pub(super) clock: ManualClock,
    pub(super) skew: Duration,
    pub(super) stale: Mutex<Option<Snapshot>>,
}

impl Simple {
    pub(super) fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now().plus(self.skew)
    }

    pub(super) fn place(&self, id: &RecordId) -> [u8; 32] {
        let mut place = *id.as_bytes();
        if self.defect == Defect::IdsComparedInPart {
            place[16..].fill(0);
        }
        place
    }

    fn matches(&self, seen: Option<Version>, stands: Option<&Record>) -> bool {
        match (seen, stands) {
            (None, None) => true,
            (Some(_), None) => self.defect == Defect::WriteWhereNothingStands,
            (None, Some(record)) => match self.defect {
                Defect::ClaimOverExpired => record.is_expired(self.now()),
                Defect::ClaimOverAnything => true,
                _ => false,
            },
            (Some(seen), Some(record)) => match self.defect {
                Defect::NoVersionCheck => true,
                Defect::VersionsComparedInPart => {
                    seen.to_bytes()[..8] == record.version.to_bytes()[..8]
                }
                _ => seen == record.version,
            },
        }
    }

    fn written(&self, draft: &Draft, stands: Option<&Record>) -> Record {
        let now = self.now();
        let mut draft = draft.clone();
        if self.defect == Defect::LeaseKeptByHeartbeat
            && draft.subject.is_none()
            && draft.token == TokenRule::Keep
        {
            draft.lease = Moment::Keep;
        }
        if self.defect == Defect::SubjectKeptByClaim && stands.is_some() {
            draft.subject = None;
        }
        let mut record = draft.apply(stands, now);
        match (self.defect, draft.token) {
            (Defect::TokenWithoutClock, TokenRule::Above(floor)) => {
                record.token = FencingToken::from_u64(floor.as_u64() + 1);
            }
            (Defect::TokenWithoutFloor, TokenRule::Above(_)) => {
                record.token = FencingToken::from_u64(0).next(now);
            }
            (Defect::TokenKeptByTakeover, TokenRule::Above(_)) => {
                record.token = stands.map_or(record.token, |record| record.token);
            }
            _ => {}
        }
        match self.defect {
            Defect::MomentsWrap if record.lease_end == Time::from_micros(i64::MAX) => {
                record.lease_end = Time::from_micros(-1);
            }
            Defect::CreatedAtEveryWrite => record.created = now,
            Defect::MomentsRounded => record.expires = rounded(record.expires),
            Defect::ScopeKeptByClaim => {
                if let Some(stands) = stands {
                    let subject = Arc::make_mut(&mut record.subject);
                    subject.scope.clone_from(&stands.subject.scope);
                }
            }
            Defect::FinishedForgottenAtTheBeginning if stands.is_none() => record.finished = None,
            Defect::LeaseWhereNothingStood if stands.is_none() && draft.lease == Moment::Keep => {
                record.lease_end = Time::from_micros(i64::MAX);
            }
            Defect::HolderKept => {
                if let Some(stands) = stands {
                    record.holder = stands.holder.clone();
                }
            }
            Defect::DigestsForgotten => {
                let subject = Arc::make_mut(&mut record.subject);
                let fingerprint = subject.fingerprint.fingerprint();
                subject.fingerprint =
                    Fingerprinted::stored(fingerprint, ArgumentDigests::default());
            }
            Defect::FinishedForgotten => record.finished = None,
            Defect::OutcomeKept if record.outcome.is_none() => {
                record.outcome = stands.and_then(|record| record.outcome.clone());
            }
            Defect::OutcomeTruncated => {
                if let Some(outcome) = &mut record.outcome {
                    outcome.bytes.truncate(65_535);
                }
            }
            Defect::EmptyOutcomeForgotten
                if record
                    .outcome
                    .as_ref()
                    .is_some_and(|outcome| outcome.bytes.is_empty()) =>
            {
                record.outcome = None;
            }
            Defect::OutcomeOnlyOfTheDone if record.state != State::Done => record.outcome = None,
            Defect::SchemaForgotten => {
                if let Some(outcome) = &mut record.outcome {
                    outcome.schema = 0;
                }
            }
            Defect::NoteForgotten => record.note = None,
            Defect::NoteKept if record.note.is_none() => {
                record.note = stands.and_then(|record| record.note.clone());
            }
            Defect::OnCrashForgotten => record.on_crash = OnCrash::Rerun,
            Defect::KeyEndsAtNul | Defect::KeyCutAt255 => {
                let subject = Arc::make_mut(&mut record.subject);
                let end = match self.defect {
                    Defect::KeyEndsAtNul => subject.key.iter().position(|byte| *byte == 0),
                    _ => Some(255),
                };
                subject.key.truncate(end.unwrap_or(usize::MAX));
            }
            _ => {}
        }
        record
    }

    fn purgeable(&self, record: &Record, keep: Duration) -> bool {
        let now = self.now();
        match self.defect {
            Defect::PurgeOfRunning if record.state == State::Running => record.expires <= now,
            Defect::PurgeOfUncertain if record.state == State::Uncertain => record.expires <= now,
            Defect::PurgeOfNothingRunning if record.state == State::Running => false,
            Defect::PurgeOfWhatWasToBeKept if record.state != State::Running => false,
            Defect::PurgeOfWhatIsKept => record.is_expired(now),
            Defect::KeptFromTheClaim => {
                let took = record.finished.unwrap_or(now).since(record.created);
                record.is_expired(now) && record.is_forgettable(now.plus(took), keep)
            }
            _ => record.is_forgettable(now, keep),
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

#[async_trait]
impl Store for Simple {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let _held = self.held.lock().await;
        let snapshot = Snapshot {
            now: self.now(),
            record: self.cells().get(&self.place(id)).cloned(),
        };
        let snapshot = match self.defect {
            Defect::ForgetsWhatIsKept => Snapshot {
                record: snapshot
                    .record
                    .filter(|record| !record.is_expired(snapshot.now)),
                ..snapshot
            },
            _ => snapshot,
        };
        if self.defect == Defect::StaleLooks {
            let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(stale.replace(snapshot.clone()).unwrap_or(snapshot));
        }
        Ok(snapshot)
    }

    fn peek(&self, id: &RecordId) -> Option<Snapshot> {
        let snapshot = Snapshot {
            now: self.now(),
            record: self.cells().get(&self.place(id)).cloned(),
        };
        if self.defect == Defect::StalePeeks {
            let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
            return Some(stale.replace(snapshot.clone()).unwrap_or(snapshot));
        }
        Some(snapshot)
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let _held = self.held.lock().await;
        let early = self.cells().get(&self.place(id)).cloned();
        if self.defect == Defect::CheckThenAct && self.matches(seen, early.as_deref()) {
            drop(_held);
            tokio::task::yield_now().await;
            let record = self.written(next, early.as_deref());
            let stamp = Stamp::from_record(&record, self.now());
            self.cells().insert(self.place(id), Arc::new(record));
            self.changed();
            return Ok(Swap::Applied(stamp));
        }
        let swap = {
            let mut cells = self.cells();
            let stands = cells.get(&self.place(id)).cloned();
            if self.matches(seen, stands.as_deref()) {
                let record = self.written(next, stands.as_deref());
                let mut stamp = Stamp::from_record(&record, self.now());
                if self.defect == Defect::StampOfAnother {
                    stamp.token = FencingToken::from_u64(0);
                }
                cells.insert(self.place(id), Arc::new(record));
                Swap::Applied(stamp)
            } else {
                let record = stands.filter(|_| self.defect != Defect::RefusalShowsNothing);
                let now = match self.defect {
                    Defect::RefusalTellsNoTime => Time::from_micros(0),
                    _ => self.now(),
                };
                Swap::Refused(Snapshot { now, record })
            }
        };
        self.changed();
        Ok(swap)
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        let held = match self.defect {
            Defect::WaitHolds => Some(self.held.lock().await),
            _ => None,
        };
        let moved = || {
            let version = self
                .cells()
                .get(&self.place(id))
                .map(|record| record.version);
            version != Some(seen)
                && (self.defect != Defect::WaitIgnoresDeletes || version.is_some())
        };
        let mut changes = self.changes.subscribe();
        let until_moved = async {
            while !moved() || self.defect == Defect::WaitSleeps {
                changes
                    .changed()
                    .await
                    .expect("the sender lives in the store");
            }
        };
        let at_most = if self.defect == Defect::WaitForgetsDeadline {
            Duration::MAX
        } else {
            at_most
        };
        let _ = tokio::time::timeout(at_most, until_moved).await;
        drop(held);
        Ok(())
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        let limit = if self.defect == Defect::PurgeUnbounded {
            usize::MAX
        } else {
            limit as usize
        };
        let due = |cells: &Cells| -> Vec<_> {
            cells
                .iter()
                .filter(|(_, record)| self.purgeable(record, keep))
                .map(|(id, _)| *id)
                .take(limit)
                .collect()
        };
        let mut early = None;
        if self.defect == Defect::PurgeCheckThenAct {
            early = Some(due(&self.cells()));
            tokio::task::yield_now().await;
        }
        let mut cells = self.cells();
        let gone = early.unwrap_or_else(|| due(&cells));
        let gone = gone.iter().filter(|id| cells.remove(*id).is_some()).count();
        drop(cells);
        self.changed();
        match self.defect {
            Defect::PurgeCountsLimit if gone > 0 => Ok(limit as u64),
            _ => Ok(gone as u64),
        }
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        let cells = self.cells();
        let mut all: Vec<_> = cells
            .iter()
            .filter(|(id, _)| {
                after.is_none_or(|after| {
                    *id > after.as_bytes() || self.defect == Defect::ScanRepeats
                })
            })
            .map(|(id, record)| (RecordId::from_bytes(*id), Arc::clone(record)))
            .collect();
        if self.defect == Defect::ScanUnordered {
            all.reverse();
        }
        all.truncate(limit as usize);
        Ok(all)
    }

    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        match self.defect {
            Defect::HeartbeatsElsewhere => Ok(Some(Clients::new(Defect::None).store().await)),
            _ => Ok(None),
        }
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }

    fn lists(&self) -> Option<&dyn RecordList> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for Simple {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        Ok(self.find_steps(call, names))
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        Ok(self.put_step(call, seen, next).await)
    }
}

/// As a number of 53 bits has it.
fn rounded(moment: Time) -> Time {
    let micros = moment.as_micros();
    let lost = (micros.unsigned_abs().ilog2()).saturating_sub(52);
    Time::from_micros(micros >> lost << lost)
}

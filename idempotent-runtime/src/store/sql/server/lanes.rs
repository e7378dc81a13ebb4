//! Operations of many callers over one connection.

use std::{collections::HashSet, sync::Arc, time::Duration};

use super::{Connected, Inner, ServerDialect};
use crate::{
    identity::RecordId,
    record::{Draft, Version},
    store::{
        Snapshot, StoreErrorKind, Swap,
        lane::{Answer, DoTogether, Job, Kind, Lanes, Passed, Work, pass},
        moment::Moment,
    },
};

const DOING: &str = "doing many operations together";

impl<D: ServerDialect> Inner<D> {
    /// Looks at a record together with others.
    pub(crate) async fn pass_look<'a>(self: &'a Arc<Self>, id: &RecordId) -> Passed<'a, Snapshot> {
        match pass(self, Kind::Look, id, || Work::Look).await {
            Passed::Answered(Ok(Swap::Refused(shown))) => Passed::Answered(Ok(shown)),
            Passed::Answered(Ok(Swap::Applied(_))) => Passed::Alone(None),
            Passed::Answered(Err(error)) => Passed::Answered(Err(error)),
            Passed::Alone(alone) => Passed::Alone(alone),
        }
    }

    /// Writes a record together with others, if it is one of the writes that most calls make.
    pub(crate) async fn pass_swap<'a>(
        self: &'a Arc<Self>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Passed<'a> {
        let Some(seen) = seen else {
            if next.subject.is_none() {
                // Nothing can begin without a subject.
                return Passed::Alone(None);
            }
            let known = self.versions.done(id);
            let kind = match known {
                Some(_) => Kind::Again,
                None => Kind::Claim,
            };
            let next = || next.clone();
            let work = || Work::Claim {
                next: next(),
                known,
            };
            return pass(self, kind, id, work).await;
        };
        let known = self.versions.version(id, Some(seen));
        if !known.is_some_and(|known| next.only_completes(known.record())) {
            return Passed::Alone(None);
        }
        let work = || Work::Complete {
            seen,
            next: next.clone(),
        };
        pass(self, Kind::Complete, id, work).await
    }

    /// Does these by one statement. If the server undid that, each half of them is tried again, so
    /// that the one that is in the way is found among many that are not. A lock that was not to be
    /// had is waited for once: all of them go alone.
    async fn do_parts(&self, kind: Kind, jobs: &[&Job], answers: &mut [Option<Answer>]) {
        let whole = 0..jobs.len();
        let mut parts = vec![whole];
        while let Some(part) = parts.pop() {
            let some = &jobs[part.clone()];
            let doing = async |connected: &mut Connected<D>| {
                let session = &mut connected.session();
                self.statements.do_many(session, kind, some).await
            };
            let done = match kind {
                Kind::Again | Kind::Look => self.connections.run_again(DOING, doing).await,
                Kind::Claim | Kind::Complete => self.connections.run(DOING, doing).await,
            };
            let error = match done {
                Ok(done) => {
                    answers[part]
                        .iter_mut()
                        .zip(done)
                        .for_each(|(to, it)| *to = it);
                    continue;
                }
                Err(error) => error,
            };
            match error.kind() {
                StoreErrorKind::Busy if D::is_undone(&error) => {}
                kind if kind != StoreErrorKind::Denied && D::is_undone(&error) => {
                    let middle = part.start + part.len() / 2;
                    if part.len() > 1 {
                        parts.extend([part.start..middle, middle..part.end]);
                    }
                }
                // It may have been done, or none of them can be.
                _ => answers[part].fill(Some(Err(error))),
            }
        }
    }

    fn note_answer(&self, job: &Job, answer: &Answer, sent_at: Moment) {
        match (&job.work, answer) {
            (Work::Claim { next, .. }, Ok(swap)) => self.note(&job.id, None, next, swap, sent_at),
            (Work::Complete { seen, next }, Ok(swap)) => {
                self.note(&job.id, Some(*seen), next, swap, sent_at);
            }
            (Work::Look, Ok(Swap::Refused(snapshot))) => {
                self.versions.observe(&job.id, snapshot, sent_at);
            }
            _ => {}
        }
    }
}

impl<D: ServerDialect> DoTogether for Inner<D> {
    fn lanes(&self) -> Option<&Lanes> {
        self.lanes.as_ref()
    }

    fn longest(&self) -> Duration {
        let limits = self.connections.limits();
        limits.connect + limits.answer
    }

    async fn do_together(&self, kind: Kind, jobs: &[Job]) -> Vec<Option<Answer>> {
        let sent_at = Moment::now();
        let all: Vec<_> = jobs.iter().collect();
        let mut answers: Vec<_> = jobs.iter().map(|_| None).collect();
        self.do_parts(kind, &all, &mut answers).await;
        if kind == Kind::Again {
            // The call is done no longer, or not as it was known.
            self.claim_the_rest(&all, &mut answers).await;
        }
        for (job, answer) in jobs.iter().zip(&answers) {
            if let Some(answer) = answer {
                self.note_answer(job, answer, sent_at);
            }
        }
        answers
    }
}

impl<D: ServerDialect> Inner<D> {
    async fn claim_the_rest(&self, jobs: &[&Job], answers: &mut [Option<Answer>]) {
        let mut ids = HashSet::new();
        let is_left = |place: &usize| answers[*place].is_none() && ids.insert(jobs[*place].id);
        let left: Vec<_> = (0..jobs.len()).filter(is_left).collect();
        if left.is_empty() {
            return;
        }
        let rest: Vec<_> = left.iter().map(|place| jobs[*place]).collect();
        let mut done: Vec<_> = rest.iter().map(|_| None).collect();
        self.do_parts(Kind::Claim, &rest, &mut done).await;
        for (place, answer) in left.into_iter().zip(done) {
            answers[place] = answer;
        }
    }
}

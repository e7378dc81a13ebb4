//! Operations of many callers over one connection.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use super::{Connected, Inner, ServerDialect};
use crate::{
    identity::RecordId,
    record::{Draft, Version},
    store::{
        Snapshot, StoreErrorKind, Swap,
        lane::{Answer, DoTogether, Job, Kind, LONGEST_SHOWN, Lanes, Passed, Work, pass},
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
            if known
                .as_ref()
                .is_some_and(|known| known.outcome_bytes() > LONGEST_SHOWN)
            {
                return Passed::Alone(None);
            }
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
        let known = known.filter(|known| next.only_completes(known.record()));
        let Some(known) = known else {
            return Passed::Alone(None);
        };
        let work = || Work::Complete {
            seen,
            next: next.clone(),
            known,
        };
        pass(self, Kind::Complete, id, work).await
    }

    /// Does these jobs by one statement. If the server undid it for a value, each half of the jobs
    /// is tried again, until the job that is in the way is alone. After a lock that another
    /// transaction holds, or for another reason, all jobs go alone.
    async fn do_parts(&self, kind: Kind, jobs: &[&Job], answers: &mut [Option<Answer>]) {
        let whole = 0..jobs.len();
        let mut parts = vec![whole];
        while let Some(part) = parts.pop() {
            let some = &jobs[part.clone()];
            let doing = async |connected: &mut Connected<D>| {
                if !D::does_many(&connected.about, kind) {
                    self.lanes.iter().for_each(|lanes| lanes.turn_off(kind));
                    return Ok(some.iter().map(|_| None).collect());
                }
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
            let middle = part.start + part.len() / 2;
            match error.kind() {
                StoreErrorKind::Unavailable => answers[part].fill(Some(Err(error))),
                _ if !D::is_undone(&error) => answers[part].fill(Some(Err(error))),
                // One record or one value may be the reason.
                StoreErrorKind::Configuration | StoreErrorKind::Other if part.len() > 1 => {
                    parts.extend([part.start..middle, middle..part.end]);
                }
                // Each meets the error for itself, or the lock.
                _ => {}
            }
        }
    }

    fn note_answer(&self, job: &Job, answer: &Answer, sent_at: Moment) {
        match (&job.work, answer) {
            (Work::Claim { next, .. }, Ok(swap)) => self.note(&job.id, None, next, swap, sent_at),
            (Work::Complete { seen, next, .. }, Ok(swap)) => {
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

    /// For a connection to be free, for a new one to be open, and for an answer.
    fn longest(&self) -> Duration {
        let limits = self.connections.limits();
        2 * limits.connect + limits.answer
    }

    async fn do_together(&self, kind: Kind, jobs: &[Job]) -> Vec<Option<Answer>> {
        let sent_at = Moment::now();
        let all: Vec<_> = jobs.iter().collect();
        let mut answers: Vec<_> = jobs.iter().map(|_| None).collect();
        if kind != Kind::Claim {
            self.do_parts(kind, &all, &mut answers).await;
        }
        if matches!(kind, Kind::Again | Kind::Claim) {
            // A record that is done no longer, or not as it was known, is claimed, too.
            self.claim(&all, &mut answers).await;
        }
        for (job, answer) in jobs.iter().zip(&answers) {
            match answer {
                Some(answer) => self.note_answer(job, answer, sent_at),
                // It does not stand as it was known.
                None if kind == Kind::Again => self.versions.forget(&job.id),
                None => {}
            }
        }
        answers
    }
}

impl<D: ServerDialect> Inner<D> {
    /// Claims the records of jobs without an answer. If several jobs claim one record, the first
    /// is sent. If it is refused, they all are.
    async fn claim(&self, jobs: &[&Job], answers: &mut [Option<Answer>]) {
        let mut ids = HashSet::new();
        let is_first = |place: &usize| answers[*place].is_none() && ids.insert(jobs[*place].id);
        let firsts: Vec<_> = (0..jobs.len()).filter(is_first).collect();
        if firsts.is_empty() {
            return;
        }
        let sent: Vec<_> = firsts.iter().map(|place| jobs[*place]).collect();
        let mut done: Vec<_> = sent.iter().map(|_| None).collect();
        self.do_parts(Kind::Claim, &sent, &mut done).await;
        let mut refused = HashMap::new();
        for (place, answer) in firsts.into_iter().zip(done) {
            if let Some(Ok(Swap::Refused(shown))) = &answer {
                refused.insert(jobs[place].id, shown.clone());
            }
            answers[place] = answer;
        }
        for (job, answer) in jobs.iter().zip(answers) {
            if answer.is_none() {
                *answer = refused
                    .get(&job.id)
                    .map(|shown| Ok(Swap::Refused(shown.clone())));
            }
        }
    }
}

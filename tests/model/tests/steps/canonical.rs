//! One name for worlds that differ in nothing that matters.

use crate::world::{
    At, Claiming, FIRST, NONE, Name, Request, Seen, StepVersion, Worker, World, Write,
};

/// The workers that are idle from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgets {
    Nobody,
    /// Those whose writes are all refused.
    WhoCannotWrite,
    /// The same, where no body of a step is ready that may run once.
    WhoCannotRun,
}

impl World {
    /// Counts attempts through, sorts workers, and leaves those idle whom it forgets.
    pub(crate) fn canonical(mut self, forgets: Forgets) -> Self {
        if forgets != Forgets::Nobody {
            self.forget(forgets == Forgets::WhoCannotRun);
        }
        self.count_attempts();
        self.workers.sort_unstable_by_key(Worker::order);
        self
    }

    fn forget(&mut self, keeps_who_runs: bool) {
        let (claimant, straggler) = (self.watch.claimant, self.straggler);
        for worker in &mut self.workers {
            let is_lost = match worker {
                Worker::Claiming(claiming) => {
                    let straggles = matches!(straggler, Some(Request::Record(write))
                        if write.by == claiming.attempt);
                    claiming.write.seen == Seen::Stale && claiming.attempt != claimant && !straggles
                }
                // Another claim has been applied, or its own end.
                Worker::Holding(held) => {
                    let runs = keeps_who_runs && matches!(held.at, At::Ready(_));
                    held.attempt != claimant && !runs
                }
                Worker::Absent | Worker::Idle => false,
            };
            if is_lost {
                *worker = Worker::Idle;
            }
        }
        self.forget_effects();
    }

    /// In a life that is over, only those count who can still run a step.
    fn forget_effects(&mut self) {
        let lives = self
            .workers
            .map(|worker| worker.held().map(|held| held.life));
        let now = self.watch.life;
        for (life, effects) in (1..).zip(&mut self.watch.effects) {
            if life != now && !lives.contains(&Some(life)) {
                *effects = Default::default();
            }
        }
    }

    fn count_attempts(&mut self) {
        let mut known = [false; 64];
        self.each_name(|name| known[usize::from(*name)] = true);
        let mut counted = [0; 64];
        let mut next = FIRST;
        for (name, counted) in counted.iter_mut().enumerate().skip(FIRST.into()) {
            *counted = next;
            next += u8::from(known[name]);
        }
        self.each_name(|name| {
            if *name >= FIRST {
                *name = counted[usize::from(*name)];
            }
        });
    }

    /// Shows every name of an attempt that stands somewhere.
    pub(crate) fn each_name(&mut self, mut each: impl FnMut(&mut Name)) {
        if let Some(cell) = &mut self.cell {
            each(&mut cell.attempt);
            in_versions(&mut cell.outcome, &mut each);
        }
        let steps = self.steps.iter_mut().flatten();
        steps.for_each(|step| each(&mut step.attempt));
        each(&mut self.watch.claimant);
        in_versions(&mut self.watch.recorded, &mut each);
        match &mut self.straggler {
            Some(Request::Record(write)) => in_write(write, &mut each),
            Some(Request::Step(request)) => {
                each(&mut request.next.attempt);
                in_versions(&mut request.seen, &mut each);
            }
            None => {}
        }
        for worker in &mut self.workers {
            match worker {
                Worker::Absent | Worker::Idle => {}
                Worker::Claiming(Claiming { attempt, write, .. }) => {
                    each(attempt);
                    in_write(write, &mut each);
                }
                Worker::Holding(held) => {
                    each(&mut held.attempt);
                    in_versions(&mut held.values, &mut each);
                    match &mut held.at {
                        At::Beginning(seen) | At::Ready(seen) | At::Writing(seen) => {
                            in_versions(seen, &mut each);
                        }
                        At::Between | At::Ending(_) => {}
                    }
                }
            }
        }
    }
}

fn in_write(write: &mut Write, each: &mut impl FnMut(&mut Name)) {
    each(&mut write.by);
    each(&mut write.draft.attempt);
    in_versions(&mut write.draft.outcome, each);
}

fn in_versions<'a>(
    versions: impl IntoIterator<Item = &'a mut StepVersion>,
    each: &mut impl FnMut(&mut Name),
) {
    for version in versions.into_iter().filter(|version| **version != NONE) {
        let mut attempt = *version >> 2;
        each(&mut attempt);
        *version = attempt << 2 | *version & 0b11;
    }
}

//! When two worlds are one. Whatever cannot make a difference any more is forgotten, names are
//! given in the order in which they are met, and workers are sorted.
//!
//! No later step can depend on anything that is forgotten, as long as versions are checked. So
//! nothing is forgotten where a fault is looked for. A test below compares what is reached with
//! forgetting and without.

use std::hash::{Hash, Hasher};

use idempotent_runtime::policy::OnCrash;

use crate::world::{Caller, NONE, Name, Phase, RESUMED, Request, World};

/// Whether worlds that differ in nothing that matters are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merging {
    /// Workers keep their places, and nothing is forgotten.
    NamesOnly,
    Everything,
}

/// A caller that will not call again.
const NOBODY: Caller = Caller {
    arguments: 0,
    on_crash: OnCrash::Rerun,
};

impl World {
    pub(crate) fn canonical(mut self, merging: Merging) -> Self {
        if merging == Merging::Everything {
            self.forget_what_is_lost();
            self.forget_versions();
            self.rename();
            self.workers.sort_by_cached_key(|worker| {
                let mut hasher = Quick::default();
                worker.hash(&mut hasher);
                hasher.finish()
            });
        }
        self.rename();
        self
    }

    /// A worker whose attempt id neither stands nor is on its way can write nothing any more.
    fn forget_what_is_lost(&mut self) {
        let stands = self.cell;
        let version = stands.map(|cell| cell.version);
        let late = |straggler: &Request| straggler.seen.is_none_or(|seen| Some(seen) == version);
        self.straggler = self.straggler.filter(late);
        if self.straggler.is_none() {
            self.given_up = 0;
        }
        let on_its_way = self.straggler.map(|straggler| straggler.by);
        for worker in &mut self.workers {
            let lost = worker.attempt_id().is_some_and(|attempt_id| {
                Some(attempt_id) != stands.map(|cell| cell.attempt_id)
                    && Some(attempt_id) != on_its_way
            });
            match &mut worker.phase {
                // It is told so, and that is all.
                Phase::Ending(..) if lost => worker.phase = Phase::Idle,
                Phase::Holding(held) if lost && held.polled && held.lease == 0 => {
                    worker.phase = Phase::Idle;
                }
                Phase::Holding(held) if lost => (held.attempt, held.beats) = (0, true),
                // It is refused, and decides about what stands, as if it had waited.
                Phase::Claiming(attempt_id, request) if lost && request.seen != version => {
                    worker.phase = Phase::Waiting {
                        attempt_id: *attempt_id,
                        seen: NONE,
                    };
                }
                // There is no claim left that it would have to keep from standing.
                Phase::GivingUp(_, seen) if lost && *seen != version => {
                    worker.phase = Phase::Idle;
                }
                // A lease that is over under one version stays so.
                Phase::Waiting { seen, .. } if stands.is_none_or(|cell| cell.lease == 0) => {
                    *seen = NONE;
                }
                _ => {}
            }
            if let Phase::Holding(held) = &mut worker.phase {
                held.current &= !held.polled;
            }
            let claims = matches!(
                worker.phase,
                Phase::Claiming(..) | Phase::GivingUp(..) | Phase::Waiting { .. }
            );
            if self.calls_left == 0 && !claims {
                worker.caller = NOBODY;
                if worker.phase == Phase::Idle {
                    worker.phase = Phase::Absent;
                }
            }
        }
    }

    /// A version that neither stands nor may come to stand is as good as any other.
    fn forget_versions(&mut self) {
        let drafts = self.workers.map(|worker| match worker.phase {
            Phase::Claiming(_, request) | Phase::Ending(_, _, request) => request.draft.version,
            _ => NONE,
        });
        let stands = self.cell.map_or(NONE, |cell| cell.version);
        let straggles = self.straggler.map_or(NONE, |request| request.draft.version);
        let forget = |seen: &mut Name| {
            if *seen != stands && *seen != straggles && !drafts.contains(seen) {
                *seen = NONE;
            }
        };
        for worker in &mut self.workers {
            match &mut worker.phase {
                Phase::Absent | Phase::Idle => {}
                Phase::Claiming(_, request) => request.seen.iter_mut().for_each(forget),
                Phase::GivingUp(_, seen) => seen.iter_mut().for_each(forget),
                Phase::Waiting { seen, .. } => forget(seen),
                Phase::Holding(held) => forget(&mut held.version),
                Phase::Ending(held, _, request) => {
                    forget(&mut held.version);
                    request.seen.iter_mut().for_each(forget);
                }
            }
        }
    }

    fn rename(&mut self) {
        let (mut versions, mut attempts) = (Names::default(), Names::default());
        if let Some(cell) = &mut self.cell {
            versions.meet(&mut cell.version);
            attempts.meet(&mut cell.attempt_id);
            attempts.meet(&mut cell.outcome);
        }
        attempts.meet(&mut self.watch.recorded);
        let request = |request: &mut Request, versions: &mut Names, attempts: &mut Names| {
            request.seen.iter_mut().for_each(|seen| versions.meet(seen));
            versions.meet(&mut request.draft.version);
            attempts.meet(&mut request.by);
            attempts.meet(&mut request.draft.attempt_id);
            attempts.meet(&mut request.draft.outcome);
        };
        for worker in &mut self.workers {
            match &mut worker.phase {
                Phase::Absent | Phase::Idle => {}
                Phase::Claiming(attempt_id, sent) => {
                    attempts.meet(attempt_id);
                    request(sent, &mut versions, &mut attempts);
                }
                Phase::GivingUp(attempt_id, seen) => {
                    attempts.meet(attempt_id);
                    seen.iter_mut().for_each(|seen| versions.meet(seen));
                }
                Phase::Waiting {
                    attempt_id, seen, ..
                } => {
                    versions.meet(seen);
                    attempts.meet(attempt_id);
                }
                Phase::Holding(held) => {
                    versions.meet(&mut held.version);
                    attempts.meet(&mut held.attempt_id);
                }
                Phase::Ending(held, _, sent) => {
                    versions.meet(&mut held.version);
                    attempts.meet(&mut held.attempt_id);
                    request(sent, &mut versions, &mut attempts);
                }
            }
        }
        if let Some(straggler) = &mut self.straggler {
            request(straggler, &mut versions, &mut attempts);
        }
    }
}

/// The names met so far, in their order.
#[derive(Default)]
struct Names {
    met: [Name; 16],
    count: usize,
}

impl Names {
    fn meet(&mut self, name: &mut Name) {
        if matches!(*name, NONE | RESUMED) {
            return;
        }
        let place = self.met[..self.count]
            .iter()
            .position(|other| other == name)
            .unwrap_or_else(|| {
                self.met[self.count] = *name;
                self.count += 1;
                self.count - 1
            });
        *name = place as Name + 1;
    }
}

/// Sorts workers: any order will do.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use idempotent_runtime::policy::OnCrash::{self, Reconcile, Rerun, Uncertain};
    use stateright::Model;

    use super::*;
    use crate::{driver::Protocol, faults::Fault, watch::Watch, world::Cell};

    /// Every record that ever stood, and the notes of the watch at that time.
    fn reached(
        modes: [OnCrash; 2],
        stragglers: u8,
        merging: Merging,
    ) -> HashSet<(Option<Cell>, Watch)> {
        let protocol = Protocol {
            callers: modes
                .map(|on_crash| Caller {
                    arguments: 0,
                    on_crash,
                })
                .to_vec(),
            calls: 2,
            stragglers,
            settlements: 1,
            fault: Fault::None,
            merging,
        };
        let mut known: HashSet<World> = protocol.init_states().into_iter().collect();
        let mut pending: Vec<World> = known.iter().copied().collect();
        while let Some(world) = pending.pop() {
            let next = protocol
                .next_steps(&world)
                .into_iter()
                .map(|(_, next)| next);
            pending.extend(next.filter(|next| known.insert(*next)));
        }
        known
            .into_iter()
            .map(|world| (world.cell, world.watch))
            .collect()
    }

    #[test]
    fn what_is_forgotten_makes_no_difference_to_what_is_reached() {
        let pairs = [
            ([Rerun, Rerun], 0),
            ([Uncertain, Uncertain], 0),
            ([Reconcile, Reconcile], 0),
            ([Rerun, Uncertain], 0),
            ([Reconcile, Uncertain], 0),
            ([Uncertain, Uncertain], 1),
        ];
        for (modes, stragglers) in pairs {
            let exact = reached(modes, stragglers, Merging::NamesOnly);
            let merged = reached(modes, stragglers, Merging::Everything);
            assert_eq!(
                exact.symmetric_difference(&merged).next(),
                None,
                "{modes:?}, {stragglers}"
            );
        }
    }
}

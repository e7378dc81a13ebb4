//! One name for worlds that differ in nothing that matters.

use crate::world::{FIRST, Name, Request, Row, Seen, Worker, World, Write};

impl World {
    /// Counts attempts through, sorts workers, and leaves those idle whose writes are all refused
    /// from now on, where it `forgets` them.
    pub(crate) fn canonical(mut self, forgets: bool) -> Self {
        if forgets {
            self.forget();
        }
        self.count_attempts();
        self.workers.sort_unstable_by_key(Worker::order);
        self
    }

    fn forget(&mut self) {
        let (claimant, straggler) = (self.watch.claimant, self.straggler);
        for worker in &mut self.workers {
            let is_lost = match worker {
                Worker::Claiming(claiming) => {
                    let straggles = matches!(straggler, Some(Request::Record(write))
                        if write.by == claiming.attempt);
                    claiming.write.seen == Seen::Stale && claiming.attempt != claimant && !straggles
                }
                // Another claim has been applied, or its own end, or the word of an operator.
                Worker::Holding(held) => held.attempt != claimant,
                Worker::Idle => false,
            };
            if is_lost {
                *worker = Worker::Idle;
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
        }
        in_rows(&mut self.steps, &mut each);
        each(&mut self.watch.claimant);
        match &mut self.straggler {
            Some(Request::Record(write)) => in_write(write, &mut each),
            Some(Request::Step(write)) => {
                each(&mut write.next.attempt);
                in_rows([&mut write.seen], &mut each);
            }
            None => {}
        }
        for worker in &mut self.workers {
            match worker {
                Worker::Idle => {}
                Worker::Claiming(claiming) => {
                    each(&mut claiming.attempt);
                    in_write(&mut claiming.write, &mut each);
                    in_rows(&mut claiming.looked, &mut each);
                }
                Worker::Holding(held) => {
                    each(&mut held.attempt);
                    in_rows(&mut held.known, &mut each);
                    in_rows(&mut held.looked, &mut each);
                }
            }
        }
    }
}

fn in_write(write: &mut Write, each: &mut impl FnMut(&mut Name)) {
    each(&mut write.by);
    each(&mut write.draft.attempt);
}

fn in_rows<'a>(
    rows: impl IntoIterator<Item = &'a mut Option<Row>>,
    each: &mut impl FnMut(&mut Name),
) {
    for row in rows.into_iter().flatten() {
        each(&mut row.attempt);
    }
}

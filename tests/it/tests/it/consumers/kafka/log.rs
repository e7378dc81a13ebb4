//! A log with partitions, which a group of consumers shares out anew again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU32};

use rand::{RngExt, rngs::StdRng};

use super::app::{Message, TOPIC};

/// Which partitions the members of the group have. A member is not told that it lost one. It finds
/// out at its next poll, and until then works on the messages that it has fetched.
pub(super) struct Log {
    partitions: Vec<Vec<Message>>,
    group: Mutex<Group>,
}

struct Group {
    /// Which member has each partition.
    owners: Vec<usize>,
    generation: u64,
}

impl Log {
    /// Some messages have failures before them, and one in each partition fails always.
    pub(super) fn draw(rng: &mut StdRng, partitions: i32, each: usize) -> Self {
        let drawn = (0..partitions).map(|partition| {
            let poison = rng.random_range(0..each);
            let mut offset = -1;
            let messages = (0..each).map(|number| {
                // Compaction leaves gaps, and the marks of transactions leave gaps, too.
                offset += rng.random_range(1..3);
                let failures = match rng.random_range(0..5) {
                    _ if number == poison => u32::MAX,
                    0 => rng.random_range(1..3),
                    _ => 0,
                };
                Message {
                    topic: TOPIC.to_owned(),
                    partition,
                    offset,
                    order: rng.random_range(1..1_000),
                    failures: Arc::new(AtomicU32::new(failures)),
                }
            });
            messages.collect()
        });
        let partitions: Vec<Vec<Message>> = drawn.collect();
        let owners = vec![0; partitions.len()];
        let generation = 0;
        Self {
            partitions,
            group: Mutex::new(Group { owners, generation }),
        }
    }

    fn group(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.partitions.iter().flatten()
    }

    /// Behind the last message of each partition.
    pub(super) fn ends(&self) -> Vec<i64> {
        let last = |messages: &Vec<Message>| messages.last().map_or(0, |last| last.offset + 1);
        self.partitions.iter().map(last).collect()
    }

    /// Shares the partitions out anew.
    pub(super) fn rebalance(&self, rng: &mut StdRng, members: usize) {
        let mut group = self.group();
        group.generation += 1;
        for owner in &mut group.owners {
            *owner = rng.random_range(0..members);
        }
    }

    /// The generation, and the partitions that a member has in it.
    pub(super) fn assigned(&self, member: usize) -> (u64, Vec<i32>) {
        let group = self.group();
        let owned = (0..).zip(&group.owners);
        let owned = owned.filter(|(_, owner)| **owner == member);
        (
            group.generation,
            owned.map(|(partition, _)| partition).collect(),
        )
    }

    /// The next messages of a partition, at most so many.
    pub(super) fn fetch(&self, partition: i32, next: i64, most: usize) -> Vec<Message> {
        let messages = usize::try_from(partition).map(|place| &self.partitions[place]);
        let messages = messages.expect("a partition of the log").iter();
        let behind = messages.filter(|message| message.offset >= next);
        behind.take(most).cloned().collect()
    }
}

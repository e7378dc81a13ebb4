//! Group commit: the writes of callers that wait for one connection stand after one commit.
//!
//! A commit waits for the disk, for several writes no longer than for one. So a caller that finds
//! the connection in use puts its write into a queue. The first of them whose turn comes writes for
//! those behind it, too.
//!
//! The writes, and the `BEGIN` and `COMMIT` around them, are one message to the thread behind the
//! connection. If they were sent one by one, the file would stay locked between them for as long as
//! blocking code keeps the sender from running. No write is answered before the commit is. If one
//! fails, all are rolled back and written one by one, so that each caller is told of its own
//! failure. Only two failures are told to all: a lock that another connection has on the file, and
//! a result that is unknown.

use std::{
    error::Error,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use sqlx::Executor;
use tokio::{
    sync::oneshot::{self, Sender},
    time::timeout,
};

use super::{
    connections::{Lent, PATIENCE},
    failure,
    inner::Inner,
    statements::MOST_TOGETHER,
};
use crate::{
    identity::RecordId,
    race::race,
    record::{Draft, Version},
    store::{
        StoreError, StoreErrorKind, Swap,
        queue::{self, Taken},
    },
    value::lock,
};

const DOING: &str = "writing a record";

/// Undoes what several writes have begun.
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// How many bytes of outcomes stand after one commit, unless a single one has more: the file is
/// locked while they are written.
const MOST_BYTES: usize = 1 << 20;

/// The writes that are not taken up yet.
#[derive(Debug)]
pub(super) struct Queue {
    writes: Mutex<queue::Queue<Write>>,
    /// How long SQLite waits for a lock that another connection has on the file.
    busy_timeout: Duration,
}

/// A write that its caller waits for.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) id: RecordId,
    pub(super) seen: Option<Version>,
    pub(super) next: Draft,
    /// `None` if nothing was written, and its caller has to do it alone.
    answer: Sender<Option<SwapAnswer>>,
}

type SwapAnswer = Result<Swap, StoreError>;

/// A caller's place in the queue. If it is dropped before the write is taken up, it takes the write
/// out again.
struct Ticket<'a> {
    queue: &'a Queue,
    ticket: queue::Ticket,
}

/// A connection on which a transaction may be open. If it is dropped so, it is closed, and its
/// locks are free once its statement has ended.
struct Open<'a> {
    connection: &'a mut Lent,
    is_over: bool,
}

impl Inner {
    /// Writes together with the callers that wait in the queue. `None` if nothing was written, and
    /// the caller has to do it alone.
    pub(super) async fn swap_together(
        self: &Arc<Self>,
        queue: &Queue,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Option<SwapAnswer> {
        let (answer, mut told) = oneshot::channel();
        let ticket = queue.enqueue(Write {
            id: *id,
            seen,
            next: next.clone(),
            answer,
        });
        let mut turn = None;
        let its_turn = async { turn = Some(self.connections.acquire(DOING).await) };
        if let Some(told) = race(&mut told, its_turn).await {
            return told.unwrap_or_else(|stopped| Some(Err(unknown(stopped))));
        }
        match turn? {
            Ok(connection) => match ticket.drain() {
                // Another caller writes it.
                writes if writes.is_empty() => drop(connection),
                writes if writes.len() == 1 => {
                    let mut connection = connection;
                    let swap = self.statements.swap(&mut connection, id, seen, next).await;
                    return Some(connection.release(swap));
                }
                // In a task that goes on if this caller goes away: others wait for it.
                writes => drop(tokio::spawn(Arc::clone(self).write(connection, writes))),
            },
            Err(error) if ticket.cancel() => return Some(Err(error)),
            Err(_) => {}
        }
        match timeout(PATIENCE + queue.busy_timeout, told).await {
            Ok(told) => told.unwrap_or_else(|stopped| Some(Err(unknown(stopped)))),
            Err(waited) => Some(Err(unknown(waited))),
        }
    }

    /// Writes for several waiting callers, the first of which may drive this task only until it is
    /// told.
    async fn write(self: Arc<Self>, mut connection: Lent, mut writes: Vec<Write>) {
        let (mut last, mut failed) = (None, None);
        if writes.iter().all(|write| write.seen.is_none()) {
            // A claim of a record that stands already is answered by a look, which takes no lock.
            match self.statements.look(&mut connection, &writes).await {
                Ok(looks) => {
                    let mut new = Vec::new();
                    for (place, (write, stands)) in writes.into_iter().zip(looks).enumerate() {
                        match stands {
                            None => new.push(write),
                            stands if place == 0 => last = Some((write, stands)),
                            stands => self.tell([(write, stands)]),
                        }
                    }
                    writes = new;
                }
                Err(error) => failed = Some(error),
            }
        }
        let answers = match failed {
            None if writes.len() > 1 => self.write_together(&mut connection, &writes).await,
            failed => self.write_each(failed, &mut connection, &writes).await,
        };
        drop(connection);
        self.tell(writes.into_iter().zip(answers).chain(last));
    }

    async fn write_together(
        &self,
        connection: &mut Lent,
        writes: &[Write],
    ) -> Vec<Option<SwapAnswer>> {
        let mut open = Open {
            connection,
            is_over: false,
        };
        let error = match self.statements.together(open.connection, writes).await {
            Ok(answers) => {
                open.is_over = true;
                return answers.into_iter().map(Some).collect();
            }
            Err(error) => error,
        };
        open.is_over = match open.connection.execute(ROLLBACK).await {
            Ok(_) => true,
            // No transaction was open.
            Err(error) => failure::kind(&error) == StoreErrorKind::Schema,
        };
        if open.is_over {
            drop(open);
            self.write_each(Some(error), connection, writes).await
        } else {
            let unknown = |_: &Write| Some(Err(unknown(error.to_string())));
            writes.iter().map(unknown).collect()
        }
    }

    /// Writes one by one the writes that could not be written together, if `failed` says why, and a
    /// write that stands alone.
    async fn write_each(
        &self,
        mut failed: Option<StoreError>,
        connection: &mut Lent,
        writes: &[Write],
    ) -> Vec<Option<SwapAnswer>> {
        let mut answers = Vec::new();
        for write in writes {
            let answer = match failed.as_ref().map(StoreError::kind) {
                _ if write.answer.is_closed() => None,
                // A lock was waited for on behalf of all of them.
                Some(StoreErrorKind::Busy) => failed.clone().map(Err),
                Some(StoreErrorKind::Unavailable) => None,
                _ => {
                    let Write { id, seen, next, .. } = write;
                    Some(self.statements.swap(connection, id, *seen, next).await)
                }
            };
            if let Some(Err(error)) = &answer {
                failed = Some(error.clone());
            }
            answers.push(answer);
        }
        if failed.is_some_and(|error| error.kind() == StoreErrorKind::Unavailable) {
            connection.close();
        }
        answers
    }

    fn tell(&self, answers: impl IntoIterator<Item = (Write, Option<SwapAnswer>)>) {
        for (write, answer) in answers {
            // A caller that went away wakes no waiters.
            if let Err(Some(Ok(Swap::Applied(_)))) = write.answer.send(answer) {
                self.waiters.wake(&write.id);
            }
        }
    }
}

/// It is unknown whether it was written.
fn unknown(why: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, DOING).with_source(why)
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.close();
        }
    }
}

impl Queue {
    pub(super) fn new(busy_timeout: Duration) -> Self {
        Self {
            writes: Mutex::default(),
            busy_timeout,
        }
    }

    fn enqueue(&self, write: Write) -> Ticket<'_> {
        Ticket {
            queue: self,
            ticket: self.lock().push(Duration::ZERO, write),
        }
    }

    fn lock(&self) -> MutexGuard<'_, queue::Queue<Write>> {
        lock(&self.writes)
    }
}

impl Write {
    fn bytes(&self) -> usize {
        let outcome = self.next.outcome.as_ref();
        outcome.map_or(0, |outcome| outcome.bytes.len())
    }
}

impl Ticket<'_> {
    /// Takes this write and others of its kind, as many as can stand after one commit. Empty if
    /// another caller has taken it.
    fn drain(&self) -> Vec<Write> {
        let mut writes = self.queue.lock();
        let Some(own) = writes.remove(self.ticket) else {
            return Vec::new();
        };
        let (begins, mut bytes) = (own.seen.is_none(), own.bytes());
        let (mut taken, mut count) = (vec![own], 1);
        taken.extend(writes.take(|_, write| {
            if count == MOST_TOGETHER {
                return Taken::Full;
            }
            let size = write.bytes();
            if write.seen.is_none() != begins || bytes + size > MOST_BYTES {
                return Taken::Stays;
            }
            (count, bytes) = (count + 1, bytes + size);
            Taken::Yes
        }));
        taken
    }

    /// Takes this write out again; tells whether no other caller had taken it.
    fn cancel(&self) -> bool {
        let left = self.queue.lock().remove(self.ticket);
        left.is_some()
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests;

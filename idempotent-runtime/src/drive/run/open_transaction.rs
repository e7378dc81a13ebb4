//! The transaction that [`transaction`](crate::transaction::transaction) has open in this task, and
//! the record by which its commit can be found out.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use crate::{
    attempt::Sending,
    handle::Idempotency,
    identity::RecordId,
    record::{Draft, Moment},
    store::JoinedConnection,
    value::lock,
};

tokio::task_local! {
    static OPEN: Arc<OpenTransaction>;
}

/// A transaction, and what the calls inside have done.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    /// The address of the connection. Calls on another one are no part of the transaction.
    address: usize,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// How many have begun, and did not end.
    unfinished: usize,
    /// The outcomes that were recorded first and last. A savepoint of the application's may take
    /// either back.
    recorded: [Option<RecordedIn>; 2],
    sent: SentInside,
}

/// The messages that were sent in a transaction. Their places are free again when this is dropped,
/// unless the transaction [stands](Self::stand).
#[derive(Debug, Default)]
pub(crate) struct SentInside(Vec<Sending>);

impl SentInside {
    /// The transaction has committed, or may have.
    pub(crate) fn stand(mut self) {
        self.0.clear();
    }
}

impl Drop for SentInside {
    fn drop(&mut self) {
        self.0.iter().for_each(Sending::forget);
    }
}

/// An outcome that was recorded in a transaction.
#[derive(Debug)]
pub(crate) struct RecordedIn {
    pub(crate) handle: Idempotency,
    pub(crate) operation: Arc<str>,
    pub(crate) id: RecordId,
    /// As it was written, with all that a first claim needs.
    pub(crate) draft: Draft,
    /// When, by the handle's timer.
    pub(crate) at: Duration,
}

impl RecordedIn {
    /// A query for the version of the record.
    pub(crate) fn version_query(&self) -> Option<String> {
        self.handle.store().transactions()?.version_query(&self.id)
    }

    /// Whether the record may be gone by now, because its time is over.
    pub(crate) fn may_be_gone(&self) -> bool {
        match self.draft.expires {
            Moment::In(ttl) => self.handle.timer().now() >= self.at.saturating_add(ttl),
            Moment::Keep => false,
        }
    }
}

impl OpenTransaction {
    pub(crate) fn on(connection: &JoinedConnection<'_>) -> Arc<Self> {
        Arc::new(Self {
            address: connection.address(),
            calls: Mutex::default(),
        })
    }

    /// Runs what happens in the transaction.
    pub(crate) fn enter<F: Future>(
        self: &Arc<Self>,
        inside: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        OPEN.scope(Arc::clone(self), inside)
    }

    /// The outcomes by which its commit may be found out: the first one, and the last. A savepoint
    /// of the application's may have taken either back.
    pub(crate) fn take_recorded(&self) -> Vec<RecordedIn> {
        let recorded = std::mem::take(&mut self.calls().recorded);
        recorded.into_iter().flatten().collect()
    }

    /// The messages that were sent, which stand if it commits.
    pub(crate) fn take_sent(&self) -> SentInside {
        std::mem::take(&mut self.calls().sent)
    }

    /// Whether a call inside was dropped before it had ended.
    pub(crate) fn has_unfinished(&self) -> bool {
        self.calls().unfinished > 0
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }
}

fn inside(connection: &JoinedConnection<'_>, note: impl FnOnce(&mut Calls)) {
    let _no_transaction_of_ours = OPEN.try_with(|open| {
        if open.address == connection.address() {
            note(&mut open.calls());
        }
    });
}

/// Takes note of a call that has claimed on this connection.
pub(super) fn begins(connection: &JoinedConnection<'_>) {
    inside(connection, |calls| calls.unfinished += 1);
}

/// Takes note of a call that has ended there.
pub(super) fn ends(connection: &JoinedConnection<'_>) {
    inside(connection, |calls| {
        calls.unfinished = calls.unfinished.saturating_sub(1);
    });
}

/// Takes note of an outcome that was recorded there.
pub(super) fn recorded(connection: &JoinedConnection<'_>, recorded: RecordedIn) {
    inside(connection, |calls| {
        let place = usize::from(calls.recorded[0].is_some());
        calls.recorded[place] = Some(recorded);
    });
}

/// Takes note of a message that is sent there.
pub(crate) fn sends(connection: &JoinedConnection<'_>, sending: Sending) {
    inside(connection, |calls| calls.sent.0.push(sending));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::draft::tests::{claim, completion};

    fn outcome(handle: &Idempotency, id: u8) -> RecordedIn {
        RecordedIn {
            handle: handle.clone(),
            operation: "test.charge".into(),
            id: RecordId::from_bytes([id; 32]),
            draft: completion(&claim(&[id]), "receipt"),
            at: Duration::ZERO,
        }
    }

    #[tokio::test]
    async fn mend_41_the_first_and_the_last_outcome_of_a_transaction_tell_of_its_commit() {
        let (mut one, mut two) = (1_u8, 2_u8);
        let connection = JoinedConnection::new(&mut one);
        let another = JoinedConnection::new(&mut two);
        let handle = Idempotency::memory();
        for (ids, told) in [
            (&[][..], &[][..]),
            (&[1], &[1]),
            (&[1, 2], &[1, 2]),
            (&[1, 2, 3], &[1, 3]),
        ] {
            let open = OpenTransaction::on(&connection);
            let calls = async {
                for id in ids {
                    recorded(&connection, outcome(&handle, *id));
                    recorded(&another, outcome(&handle, 9));
                }
            };
            open.enter(calls).await;
            recorded(&connection, outcome(&handle, 9));

            let taken = open.take_recorded().into_iter().map(|it| it.id);

            let told = told.iter().map(|id| RecordId::from_bytes([*id; 32]));
            assert!(taken.eq(told), "{ids:?}");
        }
    }
}

//! Tells of each call of a store: how long it took, and whether it failed.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    Store, StoreError, StoreErrorKind, TransactionStore,
    through::{through, transactions_through},
};
use crate::{
    clock::Timer,
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, Moment, State, TokenRule},
};

/// The kind of a call of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreAction {
    /// A look at a record.
    Load,
    /// A write that claims a record, first or over a holder that vanished.
    Claim,
    /// A write that prolongs a lease.
    Heartbeat,
    /// Every other write of a record: it ends a holding, or leaves a record to be settled.
    Ending,
    /// A look at steps.
    LoadSteps,
    /// A write of a step.
    WriteStep,
    /// A wait until a record changes. It takes as long as the caller is willing to wait.
    Wait,
    /// A purge of records that have expired.
    Purge,
    /// A page of records, for operators.
    Scan,
}

impl StoreAction {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Load,
        Self::Claim,
        Self::Heartbeat,
        Self::Ending,
        Self::LoadSteps,
        Self::WriteStep,
        Self::Wait,
        Self::Purge,
        Self::Scan,
    ];

    /// The kind of a write of this draft.
    pub(crate) fn of(draft: &Draft) -> Self {
        match (draft.token, draft.state, draft.lease) {
            (TokenRule::Above(_), ..) => Self::Claim,
            (TokenRule::Keep, State::Running | State::Undoing, Moment::In(lease))
                if !lease.is_zero() =>
            {
                Self::Heartbeat
            }
            _ => Self::Ending,
        }
    }

    /// Its name, as metrics spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Claim => "claim",
            Self::Heartbeat => "heartbeat",
            Self::Ending => "ending",
            Self::LoadSteps => "load_steps",
            Self::WriteStep => "write_step",
            Self::Wait => "wait",
            Self::Purge => "purge",
            Self::Scan => "scan",
        }
    }
}

/// A call of a store that was answered, or failed. A call that was dropped has no event, except for
/// a heartbeat, which its holder gives up if it takes too long.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoreEvent {
    /// The [name](Store::name) of the store. It is `tier` for a copy that a tier answered with: the
    /// store behind it was not asked.
    pub store: &'static str,
    /// The kind of the call.
    pub action: StoreAction,
    /// How long it took, by the handle's timer.
    pub elapsed: Duration,
    /// The kind of the error, if it failed.
    pub error_kind: Option<StoreErrorKind>,
}

/// Is told of the calls of a store. Clones tell the same.
#[derive(Clone)]
pub struct StoreObserver {
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) tell: Arc<dyn Fn(&StoreEvent) + Send + Sync>,
}

impl fmt::Debug for StoreObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreObserver")
    }
}

impl StoreObserver {
    /// Wraps this store, or what it is made of.
    pub(crate) fn observe(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store.observed(self).unwrap_or_else(|| {
            Arc::new(ObservedStore {
                inner: store,
                observer: self.clone(),
            })
        })
    }

    /// Tells of a call that began then.
    pub(super) fn tell<T>(
        &self,
        store: &'static str,
        action: StoreAction,
        began: Duration,
        answer: &Result<T, StoreError>,
    ) {
        (self.tell)(&StoreEvent {
            store,
            action,
            elapsed: self.timer.now().saturating_sub(began),
            error_kind: answer.as_ref().err().map(StoreError::kind),
        });
    }
}

/// A store whose calls an observer is told of. It exists only where one asks for that.
#[derive(Debug)]
struct ObservedStore {
    inner: Arc<dyn Store>,
    observer: StoreObserver,
}

impl ObservedStore {
    async fn through<T>(
        &self,
        action: StoreAction,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let mut pending = PendingAction {
            store: self,
            action,
            began: self.observer.timer.now(),
            is_given_up: action == StoreAction::Heartbeat,
        };
        let answer = call.await;
        pending.is_given_up = false;
        let (observer, began) = (&self.observer, pending.began);
        observer.tell(self.inner.name(), action, began, &answer);
        answer
    }

    async fn through_write<T>(
        &self,
        next: &Draft,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.through(StoreAction::of(next), call).await
    }
}

/// A call that has no answer yet.
struct PendingAction<'a> {
    store: &'a ObservedStore,
    action: StoreAction,
    began: Duration,
    /// Whether it is told of where it is dropped so.
    is_given_up: bool,
}

impl Drop for PendingAction<'_> {
    fn drop(&mut self) {
        if self.is_given_up {
            let silent = StoreError::new(StoreErrorKind::Unavailable, "prolonging a lease");
            let observer = &self.store.observer;
            let name = self.store.inner.name();
            observer.tell::<()>(name, self.action, self.began, &Err(silent));
        }
    }
}

through! {
    ObservedStore, StoreAction {
        // A look that takes no waiting is no call of a store.
        fn peek(&self, id: &RecordId) -> Option<Snapshot> {
            self.inner.peek(id)
        }

        fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
            self.inner.accepts(on_crash)
        }

        async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
            let own = self.inner.for_heartbeats().await?;
            let observer = || self.observer.clone();
            Ok(own.map(|inner| Arc::new(Self { inner, observer: observer() }) as Arc<dyn Store>))
        }

        fn transactions(&self) -> Option<&dyn TransactionStore> {
            self.inner.transactions().map(|_| self as _)
        }
    }
}

transactions_through!(ObservedStore, StoreAction);

//! The attempt that runs a body, as the body can ask about it.

mod child_id;
mod held;
mod part;
mod refusals;
mod stage;
mod steps;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use tokio::sync::Notify;

pub use self::child_id::ChildId;
#[cfg(feature = "_sql")]
pub(crate) use self::part::Sending;
use self::{held::Held, part::Part, refusals::Refusals};
pub(crate) use self::{
    held::{is_held, is_own, is_shut_out},
    refusals::{Asking, WithoutId, refuse},
    stage::Stage,
    steps::{INSIDE, goes_forward},
};
use crate::{engine::steps::StepScope, identity::RecordId, record::FencingToken, value::opaque};

tokio::task_local! {
    static CURRENT: Attempt;
}

/// The attempt that runs this body.
///
/// # Panics
///
/// Outside a body, and in a task that was spawned from one: [`Attempt::enter`] carries it there.
#[must_use]
pub fn current() -> Attempt {
    try_current().expect("`current()` is for the body of an idempotent call; in a task spawned from one, use `attempt.enter(future)`")
}

/// The attempt that runs this body; `None` outside one.
#[must_use]
pub fn try_current() -> Option<Attempt> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Carries the attempt that runs here, if one does, into a future for another task.
pub(crate) fn enter_again<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let here = try_current();
    async move {
        match here {
            Some(attempt) => attempt.enter(future).await,
            None => future.await,
        }
    }
}

/// One run of a body: which one it is, and the keys that it hands downstream.
#[derive(Clone)]
pub struct Attempt(Arc<Inner>, Part);

struct Inner {
    id: RecordId,
    /// Names what it hands downstream.
    child_of: RecordId,
    /// Whether an earlier holder may have begun something that no number of attempts tells.
    passes: bool,
    /// Its steps, where it holds a record of its own.
    steps: OnceLock<StepScope>,
    /// Whether it runs unprotected because the handle is switched off.
    is_switched_off: bool,
    operation: Arc<str>,
    number: u32,
    token: Option<FencingToken>,
    /// How it holds its record, where it has one.
    held: Option<Held>,
    /// The attempts around it that hold a record. It is a list and not a chain of parents. Each
    /// call that a body leaves behind in a task may leave another one, and the last one of a chain
    /// would keep, and drop, all of them.
    around: Vec<Weak<Inner>>,
    /// The messages that it has sent outside its steps.
    #[cfg(feature = "_sql")]
    sent: part::Sent,
    /// The refusals that it was given outside its steps.
    refusals: Refusals,
    over: AtomicBool,
    stage: AtomicU8,
    lost: AtomicBool,
    loss: Notify,
}

impl Attempt {
    pub(crate) fn new(
        id: RecordId,
        operation: Arc<str>,
        number: u32,
        token: Option<FencingToken>,
        stage: Stage,
    ) -> Self {
        let inner = Inner {
            id,
            child_of: id,
            passes: false,
            steps: OnceLock::new(),
            is_switched_off: false,
            operation,
            number,
            token,
            held: None,
            around: CURRENT
                .try_with(Attempt::with_those_around)
                .unwrap_or_default(),
            #[cfg(feature = "_sql")]
            sent: part::Sent::default(),
            refusals: Refusals::default(),
            over: AtomicBool::new(false),
            stage: AtomicU8::new(stage as u8),
            lost: AtomicBool::new(false),
            loss: Notify::new(),
        };
        Self(Arc::new(inner), Part::default())
    }

    /// Notes whether it is of a number of a stream, and whether it `passes` something that no
    /// number of attempts tells. That is a smaller number that it passed, or steps of a call that
    /// was given back.
    pub(crate) fn after(mut self, number: Option<u64>, passes: bool) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            let id = inner.id;
            inner.child_of = number.map_or(id, |number| id.of_number(number));
            inner.passes = passes;
        }
        self
    }

    /// Names what it hands downstream.
    pub(crate) fn child_of(&self) -> &RecordId {
        &self.0.child_of
    }

    /// The number of this attempt: 1 for the first, more after takeovers.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// A number that grows with every claim of this key. A downstream system that keeps the largest
    /// one it has seen can refuse a holder that lost its lease. `None` when the call runs
    /// unprotected.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.0.token
    }

    /// Tells whether an earlier holder vanished: it may have done some or all of the work. If its
    /// record has expired since, it is not known any more, and this is a first attempt.
    #[must_use]
    pub fn is_takeover(&self) -> bool {
        self.0.number > 1 || self.0.passes
    }

    /// The operation's name.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// A key for a downstream API: the same on every attempt of this call, another one for another
    /// `name`, key, scope or operation.
    ///
    /// # Panics
    ///
    /// When `name` is empty.
    #[must_use]
    pub fn child_key(&self, name: &str) -> String {
        assert!(
            !name.is_empty(),
            "a child key needs a name, such as \"stripe.charge\""
        );
        self.0.child_of.child_key(name)
    }

    /// An id for the resource that this call creates, in the form of a UUID (version 8): the same
    /// on every attempt.
    #[must_use]
    pub fn child_id(&self) -> ChildId {
        ChildId::from_bytes(self.0.child_of.child_id())
    }

    /// Runs `future` as a part of this attempt: [`current`] answers inside it, also in another
    /// task. Called in a step, it carries the step, too.
    pub fn enter<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        // A step may name the attempt of the body around it.
        let here = try_current().filter(|here| Arc::ptr_eq(&here.0, &self.0));
        let here = here.filter(|_| self.1.is_body());
        let looking = self.is_looked_through();
        let future = async move {
            let _in_the_task = looking;
            future.await
        };
        CURRENT.scope(here.unwrap_or_else(|| self.clone()), future)
    }

    /// Polls `future` as a part of this attempt.
    pub(crate) fn poll<T>(
        &self,
        mut future: Pin<&mut dyn Future<Output = T>>,
        cx: &mut Context<'_>,
    ) -> Poll<T> {
        let mut polled = Poll::Pending;
        self.inside(&mut || polled = future.as_mut().poll(cx));
        polled
    }

    /// Makes something as a part of this attempt.
    pub(crate) fn make<T>(&self, make: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), make)
    }

    /// Does `what` as a part of this attempt. It has no type of a caller's, so that it is compiled
    /// once.
    pub(crate) fn inside(&self, what: &mut dyn FnMut()) {
        CURRENT.sync_scope(self.clone(), what);
    }

    /// Does `what`, a part of a drop, as a part of this attempt. At the end of a thread there may
    /// be no room left for the attempt: it is done all the same then, because a panic there would
    /// end the process.
    pub(crate) fn dropping(&self, what: &mut dyn FnMut()) {
        let last = OnDrop(what);
        // Never polled: what it holds is dropped inside, where that can be.
        drop(CURRENT.scope(self.clone(), async move { drop(last) }));
    }

    /// Resolves when the lease is lost: from then on another attempt may run. The body is never
    /// stopped for it.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped and asked again.
    pub async fn lost(&self) {
        let loss = self.0.loss.notified();
        if !self.is_lost() {
            loss.await;
        }
    }

    /// Tells whether the lease is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }

    pub(crate) fn lose(&self) -> bool {
        let first = !self.0.lost.swap(true, Ordering::AcqRel);
        if first {
            self.0.loss.notify_waiters();
        }
        first
    }

    pub(crate) fn id(&self) -> &RecordId {
        &self.0.id
    }

    /// Tells whether both are one and the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn operation_name(&self) -> &Arc<str> {
        &self.0.operation
    }

    /// Says that its call has ended: a task that its body left behind would no longer wait for
    /// itself.
    pub(crate) fn end(&self) {
        self.0.over.store(true, Ordering::Release);
    }

    /// This attempt and those around it, if they still hold a record: they are around the next one.
    fn with_those_around(&self) -> Vec<Weak<Inner>> {
        let around = self.0.around.iter().filter_map(Weak::upgrade);
        let all = around.chain([Arc::clone(&self.0)]);
        let held = all.filter(|attempt| attempt.is_held());
        held.map(|attempt| Arc::downgrade(&attempt)).collect()
    }

    pub(crate) fn stage(&self) -> Stage {
        use Stage::{Answered, Ask, Body, Happened, InDoubt, RunAgain, Unknown};
        let reached = self.0.stage.load(Ordering::Acquire);
        let all = [Ask, Answered, Unknown, RunAgain, Happened, InDoubt];
        let stage = all.into_iter().find(|stage| *stage as u8 == reached);
        stage.unwrap_or(Body)
    }

    pub(crate) fn reach(&self, stage: Stage) {
        self.0.stage.store(stage as u8, Ordering::Release);
    }
}

/// Does something when it is dropped.
struct OnDrop<'a>(&'a mut dyn FnMut());

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}

opaque!(
    Attempt,
    |it| operation = it.0.operation,
    number = it.0.number,
    token = it.0.token,
    lost = it.is_lost()
);

#[cfg(test)]
mod tests;

//! The steps of one attempt: which names are taken, and whether it may write any.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::{sync::Notify, task::yield_now};

use super::undos::Undos;
use crate::{
    engine::Engine, engine::lease::Lease, protocol::Meaning, record::StepName, value::lock,
    value::opaque,
};

/// The steps of an attempt that holds a record, as the attempt knows them.
pub(crate) struct StepScope {
    engine: Weak<Engine>,
    lease: Weak<Lease>,
    /// Whether its claim began the life, so that no step of it stands yet.
    is_fresh: bool,
    names: Mutex<HashMap<StepName, Taken>>,
    has_steps: AtomicBool,
    is_closing: AtomicBool,
    is_closed: AtomicBool,
    is_poisoned: AtomicBool,
    is_in_doubt: AtomicBool,
    /// How many steps run.
    running: AtomicUsize,
    ended: Notify,
    /// How many steps look at what stands under their names, to find undos again.
    looking: AtomicUsize,
    undos: Undos,
    /// Whether an `Err` of the call can be final.
    errors_can_end: bool,
    /// Whether what the body returned is a failure for good.
    has_failed: AtomicBool,
    /// Whether the body is polled only to find the undos again.
    is_looking: AtomicBool,
    /// The steps that answer instead of the store's.
    #[cfg(feature = "testing")]
    replay: Option<super::Replay>,
}

/// Why a name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Its step runs, or has an outcome, or must not run again.
    Kept,
    /// Its step has run without an outcome, and may run again. Its write may stand.
    Again,
}

impl StepScope {
    /// `meaning` is of the claim, and `errors_can_end` tells whether an `Err` of the call can be
    /// final.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        lease: &Arc<Lease>,
        meaning: Meaning,
        errors_can_end: bool,
    ) -> Self {
        Self {
            engine: Arc::downgrade(engine),
            lease: Arc::downgrade(lease),
            is_fresh: meaning == Meaning::Fresh,
            names: Mutex::default(),
            has_steps: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_poisoned: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            ended: Notify::new(),
            looking: AtomicUsize::new(0),
            undos: Undos::new(lease.keeps_undos()),
            errors_can_end,
            has_failed: AtomicBool::new(false),
            is_looking: AtomicBool::new(meaning == Meaning::Undo),
            #[cfg(feature = "testing")]
            replay: None,
        }
    }

    /// The same, where these steps answer and none is written.
    #[cfg(feature = "testing")]
    pub(crate) fn replaying(mut self, replay: super::Replay) -> Self {
        self.replay = Some(replay);
        self
    }

    #[cfg(feature = "testing")]
    pub(crate) fn replay(&self) -> Option<&super::Replay> {
        self.replay.as_ref()
    }

    /// The engine and the lease, while the call is under way.
    pub(crate) fn held(&self) -> Option<(Arc<Engine>, Arc<Lease>)> {
        let is_over = self.is_closed.load(Ordering::SeqCst) || self.is_poisoned();
        let held = (!is_over).then(|| (self.engine.upgrade(), self.lease.upgrade()));
        match held? {
            (Some(engine), Some(lease)) => Some((engine, lease)),
            _ => None,
        }
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    pub(crate) fn errors_can_end(&self) -> bool {
        self.errors_can_end
    }

    /// The body has failed for good, whatever is recorded of it.
    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// Whether the body is polled only to find the undos again.
    pub(crate) fn is_looking(&self) -> bool {
        self.is_looking.load(Ordering::SeqCst)
    }

    pub(crate) fn undos(&self) -> &Undos {
        &self.undos
    }

    pub(crate) fn begins(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn ends(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    /// Counts a look for an undo while it is under way.
    pub(crate) async fn looks<T>(&self, look: impl Future<Output = T>) -> T {
        struct Looks<'a>(&'a StepScope);
        impl Drop for Looks<'_> {
            fn drop(&mut self) {
                self.0.looking.fetch_sub(1, Ordering::SeqCst);
                self.0.ended.notify_waiters();
            }
        }
        self.looking.fetch_add(1, Ordering::SeqCst);
        let _under_way = Looks(self);
        // The steps beside this one begin theirs in the meantime.
        yield_now().await;
        look.await
    }

    /// Resolves when no look is under way.
    pub(crate) async fn has_looked(&self) {
        self.until(|| self.looking.load(Ordering::SeqCst) == 0)
            .await;
    }

    /// Whether a step runs.
    pub(crate) fn is_at_work(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0
    }

    /// Resolves when no step runs.
    pub(crate) async fn is_through(&self) {
        self.until(|| !self.is_at_work()).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let ended = self.ended.notified();
            if is_so() {
                return;
            }
            ended.await;
        }
    }

    /// Takes a name for a step that begins, and gives what was known of it. `Err` where it is
    /// taken.
    pub(crate) fn take(&self, name: StepName) -> Result<Option<Taken>, ()> {
        match lock(&self.names).insert(name, Taken::Kept) {
            Some(Taken::Kept) => Err(()),
            before => Ok(before),
        }
    }

    /// Lets a step of this name run again.
    pub(crate) fn let_go(&self, name: StepName) {
        lock(&self.names).insert(name, Taken::Again);
    }

    /// Notes that its life has a step, or may have one.
    pub(crate) fn has_one(&self) {
        self.has_steps.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_steps(&self) -> bool {
        self.has_steps.load(Ordering::SeqCst)
    }

    /// From now on no step begins. Those that run may be written.
    pub(crate) fn begin_to_close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Whether a step may begin.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_closing.load(Ordering::SeqCst) && self.held().is_some()
    }

    /// From now on no step begins, and none is written.
    pub(crate) fn close(&self) {
        self.begin_to_close();
        self.is_closed.store(true, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    /// Resolves when nothing is written any more.
    pub(crate) async fn is_over(&self) {
        self.until(|| self.is_closed.load(Ordering::SeqCst)).await;
    }

    /// A step could not be recorded while the lease stood: this attempt writes nothing more.
    pub(crate) fn poison(&self) {
        self.is_poisoned.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::SeqCst)
    }

    /// It is unknown whether a step happened: the call becomes uncertain.
    pub(crate) fn doubt(&self) {
        self.is_in_doubt.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::SeqCst)
    }
}

opaque!(
    StepScope,
    |it| is_fresh = it.is_fresh,
    names = lock(&it.names).len()
);

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::{Pin, pin},
        task::Poll,
    };

    use crate::{Idempotency, RawEnding, record::RawOutcome};

    async fn is_ready(mut future: Pin<&mut impl Future<Output = ()>>) -> bool {
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
    }

    /// A task that was left behind waits for this, and is refused then.
    #[tokio::test]
    async fn mend_41_a_task_that_was_left_behind_is_refused_when_undos_begin_and_not_before() {
        let idem = Idempotency::memory();
        let call = idem.call("steps").key("k").run_raw(|attempt| async move {
            let scope = attempt.steps().expect("it holds a record");
            let mut refused = pin!(scope.is_over());
            assert!(!is_ready(refused.as_mut()).await);
            scope.begins();
            scope.ends();
            assert!(!is_ready(refused.as_mut()).await, "a step has ended");
            scope.begin_to_close();
            assert!(!is_ready(refused.as_mut()).await, "steps are awaited");

            scope.close();

            assert!(is_ready(refused.as_mut()).await);
            assert!(is_ready(pin!(scope.is_over())).await);
            RawEnding::Record(RawOutcome::value("receipt"))
        });
        call.await.expect("it is recorded");
    }
}

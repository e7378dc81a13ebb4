//! Keeps the broker's hold on a message while its handler runs.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Mutex,
    time::Duration,
};

use crate::{
    attempt::Attempt,
    clock::Timer,
    error::BoxError,
    race::race,
    value::{lock, opaque},
};

type Extending<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>>;

/// How the broker is told that a message is still being processed.
pub(super) struct KeepAlive<'a> {
    pub(super) visibility: Duration,
    pub(super) extend: Box<dyn Fn() -> Extending<'a> + Send + Sync + 'a>,
}

opaque!(KeepAlive<'a>, |it| visibility = it.visibility);

/// The attempt that runs the handler, and whether the broker still holds the message for it.
#[derive(Debug, Default)]
pub(super) struct Hold {
    attempt: Mutex<Option<Attempt>>,
    is_lost: Mutex<bool>,
}

impl Hold {
    pub(super) fn begins(&self, attempt: &Attempt) {
        *lock(&self.attempt) = Some(attempt.clone());
        if self.is_lost() {
            attempt.lose();
        }
    }

    /// The same for the attempt whose body runs here: a handler in a transaction is not handed it.
    #[cfg(feature = "_sql")]
    pub(super) fn begins_here(&self) {
        if let Some(attempt) = crate::attempt::try_current() {
            self.begins(&attempt);
        }
    }

    /// Whether the broker may have given the message to another consumer.
    pub(super) fn is_lost(&self) -> bool {
        *lock(&self.is_lost)
    }

    /// Whether the attempt has lost its lease.
    pub(super) fn has_lost_lease(&self) -> bool {
        let attempt = lock(&self.attempt);
        !self.is_lost() && attempt.as_ref().is_some_and(Attempt::is_lost)
    }

    /// Whether steps of the attempt, or of one before it, have undos that are open.
    pub(super) fn keeps_undos(&self) -> bool {
        let attempt = lock(&self.attempt);
        let steps = attempt.as_ref().and_then(Attempt::steps);
        steps.is_some_and(|steps| steps.undos().are_kept())
    }

    fn lose(&self) {
        *lock(&self.is_lost) = true;
        if let Some(attempt) = &*lock(&self.attempt) {
            // The lease is kept: no other attempt may run while this one does.
            attempt.lose();
        }
    }
}

impl KeepAlive<'_> {
    /// Awaits the call, and extends the hold beside it, in the same task.
    pub(super) async fn beside<F: Future>(
        &self,
        timer: &dyn Timer,
        hold: &Hold,
        call: F,
    ) -> F::Output {
        let (mut call, mut extending) = (pin!(call), pin!(self.extend(timer, hold)));
        let mut is_extending = true;
        poll_fn(|cx| {
            if is_extending && extending.as_mut().poll(cx).is_ready() {
                is_extending = false;
            }
            call.as_mut().poll(cx)
        })
        .await
    }

    /// Extends the hold at a third of its time, until it is lost, or the lease is.
    async fn extend(&self, timer: &dyn Timer, hold: &Hold) {
        let mut last = timer.now();
        loop {
            let ends = last.saturating_add(self.visibility);
            let left = ends.saturating_sub(timer.now());
            timer.sleep(left.min(self.visibility / 3)).await;
            if hold.has_lost_lease() {
                return;
            }
            let asked = timer.now();
            let left = ends.saturating_sub(asked);
            match race((self.extend)(), timer.sleep(left)).await {
                Some(Ok(())) => last = asked,
                Some(Err(error)) => tracing::warn!(%error, "a message is not extended"),
                None => {}
            }
            if timer.now() >= last.saturating_add(self.visibility) {
                tracing::warn!("the broker's hold on a message is lost while its handler runs");
                return hold.lose();
            }
        }
    }
}

//! A call in a task of its own, which outlives its caller once its body has begun.

use std::{
    future::Future,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::{
    attempt::{self, Attempt, Stage},
    handle,
};

/// The caller's side of a detached call. Dropped before the body began, it takes the task along.
pub(crate) struct Detached {
    began: Arc<AtomicBool>,
    task: Option<AbortHandle>,
}

/// What the body says when it begins.
pub(crate) struct Beginning(Arc<AtomicBool>);

impl Detached {
    pub(crate) fn new() -> Self {
        Self {
            began: Arc::default(),
            task: None,
        }
    }

    pub(crate) fn beginning(&self) -> Beginning {
        Beginning(Arc::clone(&self.began))
    }

    /// Runs `call`, whose body says when it begins, in a task of its own, as a part of the attempt and under the handle
    /// that count here.
    pub(crate) async fn join<T: Send + 'static>(
        mut self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let call = handle::enter_again(attempt::enter_again(call)).in_current_span();
        let task = tokio::spawn(call);
        self.task = Some(task.abort_handle());
        match task.await {
            Ok(answer) => answer,
            Err(stopped) => match stopped.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime shuts down and has taken the task; this future goes the same way.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if let Some(task) = &self.task
            && !self.began.swap(true, Ordering::AcqRel)
        {
            task.abort();
        }
    }
}

impl Beginning {
    /// Resolves when the body may begin: never, where the caller went away at this very moment and the task is being
    /// aborted.
    pub(crate) async fn begin(self, attempt: &Attempt) {
        if self.0.swap(true, Ordering::AcqRel) {
            attempt.reach(Stage::NeverBegan);
            std::future::pending::<()>().await;
        }
    }
}

//! The task that listens while a call waits, and when it heard the server last.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::task::JoinHandle;

use super::{Audience, Channel, listen};
use crate::{
    store::{
        ListenerHealth,
        waiters::{Waiters, look::PollInterval},
    },
    value::lock,
};

/// The waiters, and when the server was heard last.
struct Noting {
    waiters: Weak<Waiters>,
    heard: Arc<Mutex<Option<Instant>>>,
}

impl Audience for Noting {
    fn told(&self, message: &str) {
        *lock(&self.heard) = Some(Instant::now());
        self.waiters.told(message);
    }

    fn look(&self) {
        self.waiters.look();
    }

    fn is_there(&self) -> bool {
        self.waiters.is_there()
    }
}

/// One connection that listens while a call waits, in a task of its own.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    is_live: Arc<AtomicBool>,
    heard: Arc<Mutex<Option<Instant>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listener {
    /// Begins to listen, unless it does already, on the runtime of the caller.
    pub(crate) fn begin<C: Channel>(&self, waiters: &Arc<Waiters>, channel: impl FnOnce() -> C) {
        let mut task = lock(&self.task);
        // Finished also means that the runtime it ran on has shut down.
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.is_live.store(false, Ordering::Release);
        let mut channel = channel();
        let audience = Noting {
            waiters: Arc::downgrade(waiters),
            heard: Arc::clone(&self.heard),
        };
        let is_live = Arc::clone(&self.is_live);
        *task = Some(tokio::spawn(async move {
            listen(&mut channel, &audience, &is_live).await;
            is_live.store(false, Ordering::Release);
            channel.close().await;
        }));
    }

    pub(crate) fn health(&self) -> ListenerHealth {
        ListenerHealth {
            is_live: self.is_live.load(Ordering::Acquire),
            last_notice: lock(&self.heard).map(|heard| heard.elapsed()),
        }
    }

    /// How often a waiter has to look by itself at this moment.
    pub(crate) fn poll_interval(&self) -> PollInterval {
        if self.is_live.load(Ordering::Acquire) {
            PollInterval::NOTIFIED
        } else {
            PollInterval::POLLING
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = &*lock(&self.task) {
            task.abort();
        }
    }
}

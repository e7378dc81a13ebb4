//! The only place where time is read: a store's clock decides, a holder's timer only measures.

use std::{
    fmt::Debug,
    future::Future,
    pin::Pin,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{Time, micros};

/// The wall clock of a store that has no server.
pub trait Clock: Debug + Send + Sync {
    /// The time that it is.
    fn now(&self) -> Time;
}

/// The clock that measures waiting, heartbeats and a holder's own view of its lease: monotonic, and
/// never compared with a store's clock.
pub trait Timer: Debug + Send + Sync {
    /// How long ago some fixed moment was.
    fn now(&self) -> Duration;

    /// Resolves after `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Tells whether it stands still until a test moves it, so that no lease is too short by it.
    /// The default is no.
    fn is_manual(&self) -> bool {
        false
    }

    /// Resolves at `moment`, as [`now`](Self::now) counts; at once where that is past. A timer that
    /// is moved by hand does so also when it was moved after the caller looked at it.
    fn sleep_until(&self, moment: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.sleep(moment.saturating_sub(self.now()))
    }
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time::from_micros(micros(since_epoch))
    }
}

/// The machine's monotonic clock and tokio's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTimer;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Timer for SystemTimer {
    fn now(&self) -> Duration {
        START.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Tokio's clock and timer: where a test pauses or advances tokio's time, it does so for this one.
#[derive(Clone, Copy, Debug)]
pub struct TokioTimer {
    start: tokio::time::Instant,
}

impl TokioTimer {
    /// Makes a timer that counts from now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
        }
    }
}

impl Default for TokioTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for TokioTimer {
    fn now(&self) -> Duration {
        tokio::time::Instant::now().saturating_duration_since(self.start)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

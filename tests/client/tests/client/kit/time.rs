//! Time that passes when nothing else is waited for.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_runtime::{clock::Timer, testing::Gate};

use super::lock;

/// Lets pauses pass at once and writes them down. A sleep that is longer than any pause is a
/// deadline, and is never over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    taken: Arc<Mutex<Vec<Duration>>>,
    /// The gate at which pauses wait until the test lets them pass.
    gate: Option<Gate>,
}

const LONGEST_PAUSE: Duration = Duration::from_secs(90);

impl Pauses {
    pub(crate) fn behind(gate: &Gate) -> Self {
        Self {
            gate: Some(gate.clone()),
            ..Self::default()
        }
    }

    pub(crate) fn taken(&self) -> Vec<Duration> {
        lock(&self.taken).clone()
    }
}

impl Timer for Pauses {
    fn now(&self) -> Duration {
        lock(&self.taken).iter().sum()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if duration > LONGEST_PAUSE {
            return Box::pin(std::future::pending());
        }
        let pauses = self.clone();
        Box::pin(async move {
            if let Some(gate) = &pauses.gate {
                gate.pass().await;
            }
            lock(&pauses.taken).push(duration);
        })
    }
}

/// Lets pauses pass at once, and one timeout of an attempt when its gate is opened; the others are
/// never over.
#[derive(Clone, Debug)]
pub(crate) struct Timeout(Arc<TimeoutState>);

#[derive(Debug)]
struct TimeoutState {
    /// How long an attempt may take: a shorter sleep is a pause.
    most: Duration,
    /// Which of the timeouts it is, counted from 1.
    which: usize,
    gate: Gate,
    /// The timeouts that attempts were given.
    given: Mutex<Vec<Duration>>,
    now: Mutex<Duration>,
}

impl Timeout {
    pub(crate) fn of(most: Duration, which: usize, gate: &Gate) -> Self {
        Self(Arc::new(TimeoutState {
            most,
            which,
            gate: gate.clone(),
            given: Mutex::default(),
            now: Mutex::default(),
        }))
    }

    pub(crate) fn given(&self) -> Vec<Duration> {
        lock(&self.0.given).clone()
    }
}

impl Timer for Timeout {
    fn now(&self) -> Duration {
        *lock(&self.0.now)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let state = Arc::clone(&self.0);
        if duration < state.most {
            return Box::pin(std::future::ready(()));
        }
        let mut given = lock(&state.given);
        given.push(duration);
        if given.len() != state.which {
            return Box::pin(std::future::pending());
        }
        drop(given);
        Box::pin(async move {
            state.gate.pass().await;
            *lock(&state.now) += duration;
        })
    }
}

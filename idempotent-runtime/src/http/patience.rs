//! Limits of time for a body.

use std::time::Duration;

/// How long a body may take to arrive, or to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// From one byte to the next.
    pub(crate) between: Duration,
    pub(crate) in_all: Duration,
}

impl Patience {
    pub(crate) const USUAL: Self = Self {
        between: Duration::from_secs(30),
        in_all: Duration::from_secs(10 * 60),
    };

    /// That of a response which streams.
    pub(crate) const OF_A_STREAM: Self = Self {
        between: Duration::from_secs(60),
        in_all: Duration::from_secs(24 * 60 * 60),
    };
}

/// A body did not arrive in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body of the request did not arrive in time")]
pub(crate) struct TooSlow;

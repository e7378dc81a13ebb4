//! Fencing tokens, and how a draft asks for one.

use std::fmt;

use super::Time;

/// A number that grows with every claim of a key: a downstream system that keeps the largest one
/// it has seen can refuse a holder that lost its lease (Kleppmann, *How to do distributed
/// locking*, 2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// Makes a token from its number.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The token that follows this one at `now`.
    #[must_use]
    pub fn next(self, now: Time) -> Self {
        Self(
            self.0
                .saturating_add(1)
                .max(u64::try_from(now.as_micros()).unwrap_or(0)),
        )
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a draft says the fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenRule {
    /// As it stands.
    Keep,
    /// A new one, above this and not below the store's time: `max(this + 1, now in microseconds)`.
    ///
    /// So tokens grow over release, takeover, purge and re-creation without a sequence, while the
    /// store's clock does not step back.
    Above(FencingToken),
}

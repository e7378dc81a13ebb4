//! The random names of versions and attempts.

use std::fmt;

/// Names one version of a record: a fresh random value at every write, because a counter would
/// repeat after a delete.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u128);

/// Names one attempt: random, made by the caller, so that the caller recognises its own claim when
/// the answer was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptId(u128);

macro_rules! random_id {
    ($name:ident) => {
        impl $name {
            /// Draws a fresh one.
            #[must_use]
            pub fn random() -> Self {
                Self(rand::random())
            }

            /// Makes one from a number: for stores, and for tests that name their versions.
            #[must_use]
            pub const fn from_u128(number: u128) -> Self {
                Self(number)
            }

            /// Makes one from its bytes in a store.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(u128::from_be_bytes(bytes))
            }

            /// Its bytes in a store.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:08x}…)"), self.0 >> 96)
            }
        }
    };
}

random_id!(Version);
random_id!(AttemptId);

impl AttemptId {
    /// No attempt's: a record with it waits for the next call. A drawn one is the same once in
    /// 2^128.
    pub const NOBODY: Self = Self(0);

    /// That of an operator who let a parked record be tried again. It is drawn no more often.
    pub const RESUMED: Self = Self(1);

    /// That of a call whose holder gave it back after it had recorded steps, or left while it
    /// undid them: no holder vanished, and the next call goes on with them.
    pub const GIVEN_BACK: Self = Self(2);
}

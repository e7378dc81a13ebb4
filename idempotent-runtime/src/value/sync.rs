//! The locks of the memory store and of the waiters: the standard library's, or those of the
//! shuttle scheduler, which tries interleavings.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, PoisonError, atomic};

//! A lock that a panic does not break.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after a thread has panicked while it held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

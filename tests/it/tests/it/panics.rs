//! The planned panics: those of bodies and of drivers, if the generator says so. Every other one is
//! the library's, or a judge's.

use std::panic::resume_unwind;

use tokio::task::JoinError;

/// The messages of planned panics.
const PLANNED: [&str; 2] = ["a body that panics", "a driver that panics"];

/// The result of a task; nothing if it was stopped, or panicked as planned.
pub(crate) fn came_of<T>(task: Result<T, JoinError>) -> Option<T> {
    let ended = match task {
        Ok(came) => return Some(came),
        Err(ended) if ended.is_cancelled() => return None,
        Err(ended) => ended.into_panic(),
    };
    let said = ended.downcast_ref::<&str>();
    if !said.is_some_and(|said| PLANNED.contains(said)) {
        resume_unwind(ended);
    }
    None
}

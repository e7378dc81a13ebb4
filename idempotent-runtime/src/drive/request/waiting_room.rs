//! The room of calls that wait for another one.

use std::{any::Any, fmt, sync::Arc};

/// The place of a call that waits, which it gives back by dropping it.
pub(crate) type WaitingPlace = Box<dyn Any + Send + Sync>;

/// Lets a call wait, for as long as it keeps its place: for a front end that bounds what it keeps
/// of its calls meanwhile.
#[derive(Clone)]
pub(crate) struct WaitingRoom(Arc<dyn Fn() -> Option<WaitingPlace> + Send + Sync>);

impl WaitingRoom {
    #[allow(dead_code, reason = "a front end calls it, where there is one")]
    pub(crate) fn new(enter: impl Fn() -> Option<WaitingPlace> + Send + Sync + 'static) -> Self {
        Self(Arc::new(enter))
    }

    /// Returns a place, or `None` if there is no room.
    pub(crate) fn enter(&self) -> Option<WaitingPlace> {
        (self.0)()
    }
}

impl fmt::Debug for WaitingRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitingRoom")
    }
}

//! The choice of a route about handlers that fail.

/// The meaning of a failure: a response of 500 or above, other than 503, a handler that panicked,
/// also while its response was read, and an error of the service's in place of a response.
///
/// A layer that stands outside of the handler's database cannot know whether a handler that failed
/// has taken effect before.
///
/// A handler whose process died has given no response: [`Rules::on_crash`](super::Rules::on_crash),
/// or the handle, says what becomes of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerErrors {
    /// The failure is the outcome: it is stored, and answers every retry. The handler runs at most
    /// once, unless its process dies while it runs, or cannot reach the store for longer than the
    /// lease. Then another process runs it again, unless
    /// [`OnCrash::Uncertain`](crate::OnCrash::Uncertain) is said.
    Replay,
    /// Nothing happened: the key is released, and a retry runs again. It is right only if a failure
    /// undoes the effects of the handler.
    ///
    /// A panic does not say that nothing happened. So under
    /// [`OnCrash::Uncertain`](crate::OnCrash::Uncertain), and if the handler has answered and its
    /// response was being read, retries are told that the outcome is unknown.
    Release,
    /// It is unknown what happened: retries are told so until an operator settles it.
    Uncertain,
}

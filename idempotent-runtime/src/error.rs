//! Why a call got no answer.
/// e
#[derive(Debug, Clone)]
pub enum Error {
    /// e
    InProgress,
    /// e
    InvalidKey,
    /// e
    Store,
}

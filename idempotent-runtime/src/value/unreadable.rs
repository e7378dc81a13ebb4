//! Errors of functions that the application gives.

use std::{error::Error as StdError, fmt, sync::Arc};

/// The error that an encoder, decoder, or a function of the user's reported.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Keeps the error that a codec, an `upgrade` function or a `load` function reported.
#[derive(Clone, Debug)]
pub struct Unreadable(Arc<dyn StdError + Send + Sync>);

impl Unreadable {
    /// The error as it was reported, for `downcast_ref`.
    #[must_use]
    pub fn inner(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }
}

impl From<BoxError> for Unreadable {
    fn from(error: BoxError) -> Self {
        Self(Arc::from(error))
    }
}

impl PartialEq for Unreadable {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Unreadable {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

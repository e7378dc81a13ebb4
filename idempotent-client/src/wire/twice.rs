//! The mark of a request that goes through a middleware of this crate, so that the same one finds out
//! if it stands there twice. It stands in the extensions of the request.

use std::sync::{Arc, Weak};

use http::Extensions;

use crate::error::ClientError;
use crate::keys::Inner;

/// A request is inside of this middleware.
#[derive(Clone, Debug)]
struct Inside {
    of: Weak<Inner>,
    /// It is gone when the request has come back, or was dropped.
    passing: Weak<()>,
}

/// Lets a request pass for as long as the result is kept; refuses it if it is inside already.
pub(crate) fn pass(
    extensions: &mut Extensions,
    inner: &Arc<Inner>,
) -> Result<Arc<()>, ClientError> {
    let of = Arc::downgrade(inner);
    let is_inside = |mark: &Inside| mark.passing.strong_count() > 0 && mark.of.ptr_eq(&of);
    if extensions.get().is_some_and(is_inside) {
        return Err(ClientError::Twice);
    }
    let passing = Arc::new(());
    extensions.insert(Inside {
        of,
        passing: Arc::downgrade(&passing),
    });
    Ok(passing)
}

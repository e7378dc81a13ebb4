//! The mark of a request that goes through a middleware of this crate, so that the same one finds
//! out if it stands there twice. It stands in the extensions of the request.

use std::sync::{Arc, Weak};

use http::Extensions;

use crate::error::ClientError;
use crate::keys::Inner;

/// The middlewares that a request is inside of.
#[derive(Clone, Debug, Default)]
struct Inside(Vec<Mark>);

#[derive(Clone, Debug)]
struct Mark {
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
    let Inside(marks) = extensions.get_or_insert_default();
    marks.retain(|mark| mark.passing.strong_count() > 0);
    if marks.iter().any(|mark| mark.of.ptr_eq(&of)) {
        return Err(ClientError::Twice);
    }
    let passing = Arc::new(());
    marks.push(Mark {
        of,
        passing: Arc::downgrade(&passing),
    });
    Ok(passing)
}

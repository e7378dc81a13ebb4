//! Whether anything was sent, by the failure to get an answer.

use std::{error::Error as StdError, io};

use reqwest_middleware::Error;

use crate::error::ClientError;
use crate::key::ClientKey;
use crate::policy::decide::Observed;
use crate::policy::redirect::TooMany;

/// The meaning of a failure for the call with this key.
pub(crate) fn observed(error: &Error, key: Option<&ClientKey>) -> Observed {
    let Some(transport) = transport(error) else {
        // Another middleware may send calls of its own through one like this, and hand on how those
        // ended.
        let is_ours = ClientError::from_error(error).is_some_and(|ended| ended.key() == key)
            || causes(error).any(<dyn StdError>::is::<TooMany>);
        return if is_ours || is_twice(error) {
            Observed::Hopeless
        } else {
            Observed::Failed
        };
    };
    if transport.is_builder() || transport.is_redirect() {
        Observed::Hopeless
    } else if !transport.is_connect() {
        Observed::Lost
    } else {
        // The middleware that wrapped the failure may have tried several times, and this is only
        // the last one.
        let is_wrapped = matches!(error, Error::Middleware(_));
        match (causes(error).any(is_bad_certificate), is_wrapped) {
            (true, true) => Observed::Failed,
            (true, false) => Observed::Hopeless,
            (false, true) => Observed::Lost,
            (false, false) => Observed::NotSent,
        }
    }
}

/// Whether nothing left this process, for certain.
pub(crate) fn was_not_sent(error: &Error) -> bool {
    let is_early = |error: &reqwest::Error| error.is_builder() || error.is_connect();
    is_twice(error) || transport(error).is_some_and(is_early)
}

/// Whether the attempt came to this very middleware again, which then sends nothing.
fn is_twice(error: &Error) -> bool {
    matches!(ClientError::from_error(error), Some(ClientError::Twice))
}

/// Encryption reports what the other side showed as invalid data, and a broken connection as
/// something else.
fn is_bad_certificate(cause: &(dyn StdError + 'static)) -> bool {
    let cause = cause.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::InvalidData)
}

fn transport(error: &Error) -> Option<&reqwest::Error> {
    match error {
        Error::Reqwest(error) => Some(error),
        Error::Middleware(error) => error.chain().find_map(|cause| {
            cause
                .downcast_ref()
                .or_else(|| cause.downcast_ref().and_then(transport))
        }),
    }
}

pub(crate) fn causes(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = match error {
        Error::Reqwest(error) => error,
        Error::Middleware(error) => error.as_ref(),
    };
    std::iter::successors(Some(first), |cause: &&(dyn StdError + 'static)| {
        (*cause).source()
    })
}

//! The requests that the client beneath sends again by itself: only those that a server of HTTP/2
//! says that it did not begin.
//!
//! A failed connection is taken for a call that was not sent. That holds only if nothing was sent
//! before it in the same attempt. So an application's own policy of retries has no place beneath:
//! it may send again a request that was carried out.

use std::error::Error as StdError;

use h2::Reason;
use reqwest::retry;

/// Every host.
struct Anywhere;

impl PartialEq<&str> for Anywhere {
    fn eq(&self, _: &&str) -> bool {
        true
    }
}

/// Does the same as a client that was given no policy. That policy cannot be had once another one
/// stands in its place.
pub(crate) fn policy() -> retry::Builder {
    let policy = retry::for_host(Anywhere).no_budget();
    policy.classify_fn(|attempt| {
        if attempt.error().is_some_and(is_refused) {
            attempt.retryable()
        } else {
            attempt.success()
        }
    })
}

/// The server refused the stream, or went away before it (RFC 9113, section 8.7).
fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |cause: &&(dyn StdError + 'static)| {
        (*cause).source()
    });
    let told: Option<&h2::Error> = causes.find_map(|cause| cause.downcast_ref());
    told.filter(|told| told.is_remote()).is_some_and(|told| {
        let reason = told.reason();
        told.is_go_away() && reason == Some(Reason::NO_ERROR)
            || told.is_reset() && reason == Some(Reason::REFUSED_STREAM)
    })
}

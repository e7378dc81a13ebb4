//! The caller: servers keep the keys of each account apart, so an answer that one caller got is no
//! other caller's.
//!
//! Servers tell accounts apart by headers of many names, and no list has them all. So every header
//! counts, unless it is known to say nothing of who asks. A header that counts without need costs a
//! question to the server. One that does not count, and should, gives an account the answer of
//! another.

use http::{
    HeaderMap, HeaderValue,
    header::{
        ACCEPT_CHARSET, ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, DATE, EXPECT,
        HeaderName, PRAGMA, TE, TRAILER, TRANSFER_ENCODING, USER_AGENT,
    },
};

use crate::journal::EntryId;
use crate::policy::profile::Profile;
use crate::wire::request_headers::is_own;
use idempotent_runtime::__client::{sha256, write_framed};

/// The headers that say nothing of who asks. The manual lists them, with those that are compared as
/// a part of the request. `baggage` is none of them, because applications put tenants into it.
const UNRELATED: [HeaderName; 30] = [
    ACCEPT_CHARSET,
    ACCEPT_ENCODING,
    HeaderName::from_static("b3"),
    CACHE_CONTROL,
    CONNECTION,
    CONTENT_LENGTH,
    DATE,
    EXPECT,
    PRAGMA,
    HeaderName::from_static("request-id"),
    HeaderName::from_static("sentry-trace"),
    TE,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    TRAILER,
    TRANSFER_ENCODING,
    HeaderName::from_static("uber-trace-id"),
    USER_AGENT,
    HeaderName::from_static("x-amzn-trace-id"),
    HeaderName::from_static("x-b3-flags"),
    HeaderName::from_static("x-b3-parentspanid"),
    HeaderName::from_static("x-b3-sampled"),
    HeaderName::from_static("x-b3-spanid"),
    HeaderName::from_static("x-b3-traceid"),
    HeaderName::from_static("x-cloud-trace-context"),
    HeaderName::from_static("x-correlation-id"),
    HeaderName::from_static("x-datadog-parent-id"),
    HeaderName::from_static("x-datadog-sampling-priority"),
    HeaderName::from_static("x-datadog-trace-id"),
    HeaderName::from_static("x-request-id"),
];

/// Whether a header may say who asks, or for whom. A value that is marked as sensitive counts under
/// every name that the profile does not leave out.
fn counts(profile: &Profile, name: &HeaderName, value: &HeaderValue) -> bool {
    let is_left_out = *name == profile.header || profile.volatile_headers.contains(name);
    let is_unrelated = UNRELATED.contains(name) && !value.is_sensitive();
    // Another value of a header of the request itself makes another request, which is never
    // answered by this one.
    !is_left_out && !is_unrelated && !is_own(profile, name, value)
}

/// A digest of the caller of the call `id`: of its account if one is named, else of the headers of
/// the request.
///
/// The key of the call goes into it. So digests do not tell which calls have one caller, and cannot
/// be looked up.
pub(crate) fn caller(id: &EntryId, headers: &HeaderMap, profile: &Profile) -> [u8; 32] {
    let mut buffer = Vec::new();
    // An earlier release took few headers into the digest. An entry of its making may be another
    // account's, so no digest of headers is to equal one of those.
    let form = if id.account.is_empty() {
        "idempotent-client-caller-2"
    } else {
        "idempotent-client-caller-1"
    };
    for part in [form, &id.origin, &id.account, id.key.as_str()] {
        write_framed(&mut buffer, part.as_bytes());
    }
    if id.account.is_empty() {
        let mut counting: Vec<_> = headers
            .iter()
            .filter(|(name, value)| counts(profile, name, value))
            .collect();
        // The order of the lines of one header counts; the order of headers does not.
        counting.sort_by_key(|(name, _)| name.as_str());
        for (name, value) in counting {
            write_framed(&mut buffer, name.as_str().as_bytes());
            write_framed(&mut buffer, value.as_bytes());
        }
    }
    sha256(&mut buffer)
}

#[cfg(test)]
mod tests;

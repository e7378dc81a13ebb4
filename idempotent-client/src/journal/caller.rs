//! The caller: servers keep the keys of each account apart, so an answer that one caller got is no
//! other caller's.

use http::{
    HeaderMap, HeaderValue,
    header::{AUTHORIZATION, COOKIE, HeaderName, PROXY_AUTHORIZATION},
};

use crate::journal::EntryId;
use idempotent_runtime::__client::{sha256, write_framed};

/// The headers that say who asks, or for whom. Values that are marked as sensitive count as well.
const CREDENTIALS: [HeaderName; 11] = [
    AUTHORIZATION,
    COOKIE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("ocp-apim-subscription-key"),
    HeaderName::from_static("stripe-account"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-amz-security-token"),
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("x-tenant-id"),
];

/// Whether a header says who asks, or for whom.
pub(crate) fn is_credential(name: &HeaderName, value: &HeaderValue) -> bool {
    value.is_sensitive() || CREDENTIALS.contains(name)
}

/// A digest of the caller of the call `id`: of its account if one is named, else of the credentials
/// on the request.
///
/// The key of the call goes into it. So digests do not tell which calls have one caller, and cannot
/// be looked up.
pub(crate) fn caller(id: &EntryId, headers: &HeaderMap, key: &HeaderName) -> [u8; 32] {
    let mut buffer = Vec::new();
    for part in [
        "idempotent-client-caller-1",
        &id.origin,
        &id.account,
        id.key.as_str(),
    ] {
        write_framed(&mut buffer, part.as_bytes());
    }
    if id.account.is_empty() {
        let mut credentials: Vec<_> = headers
            .iter()
            .filter(|(name, value)| *name != key && is_credential(name, value))
            .collect();
        // The order of the lines of one header counts; the order of headers does not.
        credentials.sort_by_key(|(name, _)| name.as_str());
        for (name, value) in credentials {
            write_framed(&mut buffer, name.as_str().as_bytes());
            write_framed(&mut buffer, value.as_bytes());
        }
    }
    sha256(&mut buffer)
}

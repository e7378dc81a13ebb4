//! The headers of a request that make it what it is: they are compared, written down, and sent
//! again after a restart.

use http::{
    HeaderMap, HeaderValue,
    header::{
        ACCEPT, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_ENCODING,
        CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, COOKIE, HeaderName,
        IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, PROXY_AUTHORIZATION,
    },
};

use crate::policy::profile::Profile;

/// The headers that say what the body is, what is accepted, on which conditions the request is to
/// be carried out, and as which method. With another value of one of them, it would be another
/// request.
pub(crate) const ALWAYS: [HeaderName; 20] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    HeaderName::from_static("content-digest"),
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    HeaderName::from_static("content-md5"),
    CONTENT_RANGE,
    CONTENT_TYPE,
    HeaderName::from_static("digest"),
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE,
    HeaderName::from_static("prefer"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
];

/// The headers that no journal keeps, also if a profile names them.
const NEVER_WRITTEN: [HeaderName; 11] = [
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

/// Whether a header belongs to a request itself, or is one that its profile names: neither the key,
/// nor anything that is never written down.
pub(crate) fn is_own(profile: &Profile, name: &HeaderName, value: &HeaderValue) -> bool {
    let is_named = ALWAYS.contains(name) || profile.request_headers.contains(name);
    let is_secret = value.is_sensitive() || NEVER_WRITTEN.contains(name);
    is_named && !is_secret && *name != profile.header
}

/// The headers that belong to a request itself, with those that its profile names.
pub(crate) fn own_headers(profile: &Profile, headers: &HeaderMap) -> HeaderMap {
    let mut own = HeaderMap::new();
    for name in ALWAYS.iter().chain(&*profile.request_headers) {
        if own.contains_key(name) {
            continue;
        }
        for value in headers.get_all(name) {
            if is_own(profile, name, value) {
                own.append(name, value.clone());
            }
        }
    }
    own
}

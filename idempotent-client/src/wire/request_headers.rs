//! The headers of a request that make it what it is: they are compared, written down, and sent
//! again after a restart.

use http::{
    HeaderMap,
    header::{
        ACCEPT, ACCEPT_LANGUAGE, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
        CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, HeaderName, IF_MATCH, IF_MODIFIED_SINCE,
        IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
    },
};

use crate::journal::caller::is_credential;
use crate::policy::profile::Profile;

/// The headers that say what the body is, what is accepted, on which conditions the request is to
/// be carried out, and as which method. With another value of one of them, it would be another
/// request.
const ALWAYS: [HeaderName; 20] = [
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

/// The headers that belong to a request itself, with those that its profile names: neither its key,
/// nor anything that says who is asking.
pub(crate) fn own_headers(profile: &Profile, headers: &HeaderMap) -> HeaderMap {
    let mut own = HeaderMap::new();
    for name in ALWAYS.iter().chain(&*profile.request_headers) {
        if *name == profile.header || own.contains_key(name) {
            continue;
        }
        for value in headers.get_all(name) {
            if !is_credential(name, value) {
                own.append(name, value.clone());
            }
        }
    }
    own
}

//! Headers of answers that say something about a key.

use http::{HeaderMap, header::HeaderName};

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Whether it is the answer of an earlier call.
pub(crate) fn is_replayed(headers: &HeaderMap) -> bool {
    verdict(headers, &REPLAYED) == Some(true)
}

/// A header that says `true` or `false`, as a structured-field boolean or as the word.
pub(crate) fn verdict(headers: &HeaderMap, name: &HeaderName) -> Option<bool> {
    match headers.get(name)?.as_bytes() {
        b"?1" => Some(true),
        b"?0" => Some(false),
        word if word.eq_ignore_ascii_case(b"true") => Some(true),
        word if word.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

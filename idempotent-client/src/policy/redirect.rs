//! Redirects: a key stays at the origin that it was meant for.
//!
//! The client beneath repeats a request with all its headers where a redirect leads, to any origin,
//! and only takes out those that it knows to be secret. Its policy sees addresses and no headers.
//! So the policy lets it follow only what may keep its key, a repetition at the same origin; what
//! becomes a GET is followed here, without the key; and what leads elsewhere is the caller's to
//! follow.
//!
//! A GET in place of a call tells of that call only after 303, by which a server answers what it
//! has done. With 301 and 302 it says that the target is elsewhere, and nothing may have been done,
//! though some servers mean 303: what a GET finds there would be taken for the outcome of a call
//! that never was.

use http::{
    Method, StatusCode,
    header::{
        EXPECT, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
        LOCATION, TRANSFER_ENCODING,
    },
};
use reqwest::{Request, Response, Url, redirect};

use crate::headers::is_replayed;

/// How many redirects are followed, as clients do.
pub(crate) const MOST: usize = 10;

/// Says that redirects never came to an end.
#[derive(Debug, thiserror::Error)]
#[error("the server redirected more than {MOST} times")]
pub(crate) struct TooMany;

/// Follows 307 and 308 at one origin, and stops at everything else.
pub(crate) fn policy() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let repeats = matches!(attempt.status().as_u16(), 307 | 308);
        let stays = attempt
            .previous()
            .last()
            .is_some_and(|previous| same_origin(previous, attempt.url()));
        if !repeats || !stays {
            attempt.stop()
        } else if attempt.previous().len() > MOST {
            attempt.error(TooMany)
        } else {
            attempt.follow()
        }
    })
}

pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// The server says that the target is elsewhere, and not what became of the request.
pub(crate) fn is_elsewhere(status: StatusCode) -> bool {
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND)
}

/// The request without key, body and conditions that `response` asks for in place of `request`,
/// where it leads to the same origin and is the answer to `request`: that of a call with a key,
/// only where the server says so.
pub(crate) fn see_other(
    request: &Request,
    response: &Response,
    key: &HeaderName,
) -> Option<Request> {
    let method = request.method();
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_answered = !request.headers().contains_key(key) || is_replayed(response.headers());
    match response.status() {
        StatusCode::SEE_OTHER => {}
        moved if is_elsewhere(moved) && is_read => {}
        moved if is_elsewhere(moved) && *method == Method::POST && is_answered => {}
        _ => return None,
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let url = response.url().join(location).ok()?;
    if !same_origin(response.url(), &url) {
        return None;
    }
    let method = if method == Method::HEAD {
        Method::HEAD
    } else {
        Method::GET
    };
    let mut next = Request::new(method, url);
    let headers = request.headers().iter();
    let headers = headers.filter(|(name, _)| *name != key && !is_of_a_body(name));
    for (name, value) in headers.filter(|(name, _)| is_read || !is_of_the_call(name)) {
        next.headers_mut().append(name, value.clone());
    }
    *next.timeout_mut() = request.timeout().copied();
    *next.version_mut() = request.version();
    Some(next)
}

/// A header of a body, which is not sent again.
fn is_of_a_body(name: &HeaderName) -> bool {
    const OTHERS: [HeaderName; 4] = [
        HeaderName::from_static("digest"),
        EXPECT,
        HeaderName::from_static("repr-digest"),
        TRANSFER_ENCODING,
    ];
    name.as_str().starts_with("content-") || OTHERS.contains(name)
}

/// Says on which conditions a call is to be carried out, or as which method: what tells of the call
/// is not what the conditions were about, and is only read.
fn is_of_the_call(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 7] = [
        IF_MATCH,
        IF_MODIFIED_SINCE,
        IF_NONE_MATCH,
        IF_UNMODIFIED_SINCE,
        HeaderName::from_static("x-http-method"),
        HeaderName::from_static("x-http-method-override"),
        HeaderName::from_static("x-method-override"),
    ];
    NAMES.contains(name)
}

//! Before the first byte of a call leaves: what the journal says about it, and what it is told.

use bytes::Bytes;
use http::{
    HeaderMap,
    header::{
        ACCEPT, ACCEPT_LANGUAGE, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
        CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, HeaderName, IF_MATCH, IF_MODIFIED_SINCE,
        IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
    },
};
use reqwest::{Body, Response, ResponseBuilderExt as _, Url};
use reqwest_middleware::Result;

use super::{
    call::Source,
    caller::is_credential,
    decide::Why,
    error::{ClientError, Ended},
    journal::{Ending, Entry},
    outcome::{KeyStatus, Origin, Outcome},
    profile::Profile,
    retry_after,
    send::{KeyedCall, Sending},
};

/// What the journal knew.
#[derive(Debug)]
pub(super) enum Begun {
    /// Nothing, or this call has no place in it.
    New,
    /// The call was begun earlier, and nobody here knows how it ended, or whether it is the same one.
    Again,
    /// The call is over.
    Over(Response),
}

/// The headers that belong to a request itself, and may be written down: what its body is, what is accepted, on which conditions it
/// is to be carried out, and as which method. Sent again without one of them, it would be another request.
const KEPT: [HeaderName; 16] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    HeaderName::from_static("content-digest"),
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_TYPE,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE,
    HeaderName::from_static("prefer"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("x-http-method-override"),
];

pub(super) async fn begin(sending: &Sending<'_>, keyed: &mut KeyedCall) -> Result<Begun> {
    let entry = entry(sending, keyed);
    let now = sending.inner.clock.now();
    keyed.age = entry.age(now);
    let standing = if keyed.journaled {
        let begun = sending.inner.journal.begin(&entry).await;
        begun.map_err(|source| ClientError::Journal {
            key: entry.id.key.clone(),
            source,
        })?
    } else {
        None
    };
    let call = || Ended::unsent(entry.id.key.clone());
    let Some(standing) = standing else {
        if keyed.age < sending.profile.oldest() {
            return Ok(Begun::New);
        }
        super::finish::nothing_happened(sending.inner, keyed).await;
        return Err(too_old(call()).into());
    };
    keyed.age = standing.age(now);
    match compare(&entry, &standing) {
        Compared::Equal => {}
        Compared::Other => return Err(ClientError::KeyReusedLocally { call: call() }.into()),
        Compared::ServerKnows if sending.is_unprotected() => {
            return Err(undeclared(call()).into());
        }
        Compared::ServerKnows if keyed.age < sending.profile.oldest() => {
            // What stands there is somebody else's, or may be, and stays as it is.
            keyed.journaled = false;
            return Ok(Begun::Again);
        }
        Compared::ServerKnows => return Err(too_old(call()).into()),
    }
    match standing.ending {
        None if keyed.age >= sending.profile.oldest() => Err(too_old(call()).into()),
        // The attempt before may have been carried out, and only a server that honours keys would notice.
        None if sending.is_unprotected() => Err(undeclared(call()).into()),
        None => Ok(Begun::Again),
        Some(Ending::Burned) => Err(ClientError::KeyReused { call: call() }.into()),
        Some(Ending::Answered {
            status,
            headers,
            body: Some(body),
        }) => {
            let mut response = stored(sending.request.request().url(), body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response.extensions_mut().insert(Outcome {
                key: Some(entry.id.key),
                attempts: 0,
                replayed: true,
                origin: Origin::Journal,
                key_status: KeyStatus::Unsaid,
            });
            Ok(Begun::Over(response.into()))
        }
        Some(Ending::Gone | Ending::Answered { .. }) => {
            Err(ClientError::ResultGone { call: call() }.into())
        }
    }
}

/// How a call is to be taken that has the key of one in the journal.
enum Compared {
    /// It is the same one.
    Equal,
    /// It is another request of the same caller.
    Other,
    /// Only the server can tell: it keeps accounts apart and saw the bytes.
    ServerKnows,
}

fn compare(asked: &Entry, standing: &Entry) -> Compared {
    let digests = asked.digest.zip(standing.digest);
    let same_caller = asked.caller == standing.caller;
    match digests.map(|(one, other)| one == other) {
        Some(true) if same_caller => Compared::Equal,
        Some(false) if same_caller => Compared::Other,
        // An unfinished call may be resumed with a new token, and by a process that sees its stream for the first time.
        Some(true) | None if standing.ending.is_none() => Compared::Equal,
        _ => Compared::ServerKnows,
    }
}

fn too_old(call: Box<Ended>) -> ClientError {
    let why = Why::Age;
    ClientError::Unknown { why, call }
}

fn undeclared(call: Box<Ended>) -> ClientError {
    let why = Why::Undeclared;
    ClientError::Unknown { why, call }
}

fn stored(url: &Url, body: Bytes) -> http::Response<Body> {
    let response = http::Response::builder().url(url.clone());
    response.body(body.into()).expect("it has no parts yet")
}

/// What is written down of the headers of a request: its key, and nothing that says who is asking.
fn kept(profile: &Profile, headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in KEPT.iter().chain(&*profile.request_headers) {
        if *name == profile.header || kept.contains_key(name) {
            continue;
        }
        for value in headers.get_all(name) {
            if !is_credential(name, value) {
                kept.append(name, value.clone());
            }
        }
    }
    for value in headers.get_all(&profile.header) {
        kept.append(&profile.header, value.clone());
    }
    kept
}

fn entry(sending: &Sending<'_>, keyed: &KeyedCall) -> Entry {
    let request = sending.request.request();
    let now = sending.inner.clock.now();
    let used = now.minus(keyed.age);
    let begun = match &sending.call.source {
        Source::Intent(intent) => intent.begun.map(retry_after::time),
        Source::Random | Source::Given(_) => None,
    };
    let longest = sending.inner.settings.longest_kept;
    let headers = kept(sending.profile, request.headers());
    let body = sending.request.bytes().filter(|body| body.len() <= longest);
    Entry {
        id: keyed.live.id.clone(),
        method: request.method().clone(),
        url: request.url().clone(),
        headers,
        caller: Some(keyed.caller),
        digest: sending.request.digest,
        body: body.map(Bytes::copy_from_slice),
        created: begun.map_or(used, |begun| begun.min(used)),
        deadline: now.plus(sending.deadline),
        ending: None,
    }
}

//! The journal before the first byte of a call leaves: what it says about the call, and what it is
//! told.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use reqwest::{Body, Response, ResponseBuilderExt as _, Url};
use reqwest_middleware::Result;

use crate::call::Source;
use crate::error::{CallSummary, ClientError};
use crate::journal::finish;
use crate::journal::in_time::{go_on, overdue};
use crate::journal::resume::{Resumed, Written};
use crate::journal::{Ending, Entry};
use crate::outcome::{ClientOutcome, KeyStatus, Origin};
use crate::policy::decide::{Protection, StopReason};
use crate::wire::request_headers::own_headers;
use crate::wire::retry_after;
use crate::wire::send::{KeyedCall, Sending};
use idempotent_runtime::{StoreError, StoreErrorKind, Time};

/// The journal's knowledge of a call.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Nothing, or this call has no place in it.
    New,
    /// The call was begun earlier, and it is not known here how it ended, or whether it is the same
    /// one.
    Again {
        /// The header of its key as it stands in the journal, where it does.
        written: Option<HeaderValue>,
    },
    /// The call is over.
    Over(Response),
}

/// The fate of a call that stands in the journal.
enum StandingEntry {
    /// It is over.
    Over(Response),
    /// It is open, and is sent again.
    Open,
    /// It is another caller's, or may be, and the server is asked.
    OfAnother,
}

pub(crate) async fn begin(sending: &Sending<'_>, keyed: &mut KeyedCall) -> Result<Begun> {
    let mut entry = entry(sending, keyed);
    let undecided = sending.inner.undecided.since(&entry.id);
    if let Some(since) = undecided {
        entry.created = since;
    }
    let now = sending.inner.clock.now();
    let age = sending.profile.age(entry.created, now).max(keyed.age);
    let entry = Arc::new(entry);
    loop {
        (keyed.age, keyed.created) = (age, entry.created);
        let Some(standing) = write(sending, keyed, &entry).await? else {
            if is_resumed(sending, &entry) {
                return Err(withdrawn(&entry).into());
            }
            return begin_anew(sending, keyed, &entry, undecided).await;
        };
        let is_anothers = match take(sending, keyed, &entry, &standing)? {
            StandingEntry::Over(response) => return Ok(Begun::Over(response)),
            StandingEntry::Open => false,
            // Its caller was told how it ended, and may have changed the same thing again since.
            StandingEntry::OfAnother
                if standing.ending.is_some()
                    && is_resumed(sending, &entry)
                    && sending.protection() == Protection::Method =>
            {
                return Err(withdrawn(&entry).into());
            }
            StandingEntry::OfAnother => true,
        };
        // A call that is not sent takes nothing up, so the call that began the entry knows what
        // became of it. An entry that is over stays as it is.
        if standing.ending.is_none() && sending.elapsed() >= sending.deadline {
            return Err(too_late(keyed).into());
        }
        if standing.ending.is_some() || take_up(sending, keyed, &standing).await? {
            // A retry outside goes on with what this process has begun.
            if standing.ending.is_none() && !keyed.was_sent {
                sending.watched.resumes(keyed.age);
            }
            keyed.journaled &= !is_anothers;
            let written = standing.headers.get(&sending.profile.header);
            let written = written.filter(|_| !(is_anothers && keyed.written));
            let written = written.cloned();
            return Ok(Begun::Again { written });
        }
    }
}

/// Writes the call into the journal, if it has a place in it and was not taken from there. Answers
/// with the entry that stands there already, if there is one.
async fn write(
    sending: &Sending<'_>,
    keyed: &KeyedCall,
    entry: &Arc<Entry>,
) -> Result<Option<Entry>> {
    if !keyed.journaled {
        return Ok(None);
    }
    let is_resumed = is_resumed(sending, entry);
    let (inner, written) = (Arc::clone(sending.inner), Arc::clone(entry));
    let work = Box::pin(async move {
        let journal = &inner.journal;
        if is_resumed {
            journal.find(&written.id).await
        } else {
            journal.begin(&written).await
        }
    });
    let standing = match sending.in_time(work).await {
        Ok(standing) => standing,
        Err(_) if is_resumed => Err(overdue("looking for a call in the journal")),
        Err(late) => {
            let withdraw = finish::withdrawing(sending.inner, keyed);
            go_on(sending.inner, async move {
                if late
                    .await
                    .map_or_else(|error| may_be_written(&error), |stands| stands.is_none())
                {
                    withdraw.await;
                }
            });
            return Err(failed(keyed, overdue("writing a call into the journal")).into());
        }
    };
    if let Err(error) = &standing
        && may_be_written(error)
    {
        // A caller that is told that nothing was sent may do something else, so the call must not
        // be sent from there.
        finish::withdraw(sending, keyed).await;
    }
    Ok(standing.map_err(|source| failed(keyed, source))?)
}

/// The journal may have written the entry, and its answer was lost.
fn may_be_written(error: &StoreError) -> bool {
    use StoreErrorKind::{Other, Unavailable};
    matches!(error.kind(), Unavailable | Other)
}

fn is_resumed(sending: &Sending<'_>, entry: &Entry) -> bool {
    resumed(sending, entry).is_some()
}

fn resumed<'a>(sending: &'a Sending<'_>, entry: &Entry) -> Option<&'a Resumed> {
    let resumed = sending.resumed.as_ref();
    resumed.filter(|resumed| resumed.id == entry.id)
}

/// The call was listed, and the bytes that its caller was to make again are others.
fn is_made_otherwise(sending: &Sending<'_>, entry: &Entry, standing: &Entry) -> bool {
    let made =
        resumed(sending, entry).is_some_and(|resumed| resumed.written == Written::ByTheCaller);
    let digests = [entry.digest, sending.request.without_headers];
    let is_another = |stands| entry.digest.is_some() && !digests.contains(&Some(stands));
    made && standing.digest.is_some_and(is_another)
}

/// Lets a call that stands in the journal count as begun by this one; another process may have been
/// quicker.
async fn take_up(sending: &Sending<'_>, keyed: &KeyedCall, standing: &Entry) -> Result<bool> {
    let inner = Arc::clone(sending.inner);
    let (id, seen, begun) = (standing.id.clone(), standing.begun, keyed.begun);
    let work = Box::pin(async move { inner.journal.take_up(&id, seen.as_ref(), &begun).await });
    match sending.in_time(work).await {
        Ok(taken_up) => Ok(taken_up.map_err(|source| failed(keyed, source))?),
        Err(_late) => Err(too_late(keyed).into()),
    }
}

/// The error of a call that was open before, and for which no time is left.
fn too_late(keyed: &KeyedCall) -> ClientError {
    let call = CallSummary::unsent(keyed.key().clone());
    unknown(StopReason::Deadline, call)
}

fn failed(keyed: &KeyedCall, source: StoreError) -> ClientError {
    let key = keyed.live.id.key.clone();
    ClientError::Journal { key, source }
}

/// Begins a call that the journal does not know.
async fn begin_anew(
    sending: &Sending<'_>,
    keyed: &KeyedCall,
    entry: &Entry,
    undecided: Option<Time>,
) -> Result<Begun> {
    if let Some(why) = unsendable(sending, keyed, undecided) {
        finish::withdraw(sending, keyed).await;
        return Err(unknown(why, CallSummary::unsent(entry.id.key.clone())).into());
    }
    if !keyed.journaled {
        sending.inner.undecided.remember(&entry.id, entry.created);
    }
    Ok(undecided.map_or(Begun::New, |_| Begun::Again { written: None }))
}

/// Decides about a call that the journal knows.
fn take(
    sending: &Sending<'_>,
    keyed: &mut KeyedCall,
    entry: &Entry,
    standing: &Entry,
) -> Result<StandingEntry> {
    let call = || CallSummary::unsent(entry.id.key.clone());
    let now = sending.inner.clock.now();
    (keyed.age, keyed.created) = (sending.profile.age(standing.created, now), standing.created);
    let without_headers = sending.request.without_headers;
    let listed = sending.resumed.as_ref().map(|resumed| &resumed.id);
    let goes_on = keyed.was_sent || listed == Some(&standing.id);
    match compare(entry, goes_on, without_headers, standing) {
        Compared::Equal => {}
        Compared::Other => return Err(ClientError::KeyReusedLocally { call: call() }.into()),
        Compared::ServerKnows if is_made_otherwise(sending, entry, standing) => {
            return Err(ClientError::KeyReusedLocally { call: call() }.into());
        }
        Compared::ServerKnows if sending.is_unprotected() => {
            return Err(unknown(StopReason::Undeclared, call()).into());
        }
        // The entry that stands there is another caller's, or may be, and stays as it is.
        Compared::ServerKnows if keyed.age < sending.profile.oldest() => {
            return Ok(StandingEntry::OfAnother);
        }
        Compared::ServerKnows => return Err(unknown(StopReason::Age, call()).into()),
    }
    match &standing.ending {
        None if keyed.age >= sending.profile.oldest() => {
            Err(unknown(StopReason::Age, call()).into())
        }
        // The attempt before may have been carried out, and only a server that honours keys would
        // notice.
        None if sending.is_unprotected() => Err(unknown(StopReason::Undeclared, call()).into()),
        None => Ok(StandingEntry::Open),
        Some(Ending::Burned) => Err(ClientError::KeyReused { call: call() }.into()),
        Some(Ending::Answered {
            status,
            headers,
            body: Some(body),
        }) => {
            let mut response = stored(sending.request.request().url(), body.clone());
            *response.status_mut() = *status;
            *response.headers_mut() = headers.clone();
            response.extensions_mut().insert(ClientOutcome {
                key: Some(entry.id.key.clone()),
                attempts: 0,
                replayed: true,
                origin: Origin::Journal,
                key_status: KeyStatus::Unsaid,
                unrecorded: false,
            });
            Ok(StandingEntry::Over(response.into()))
        }
        Some(Ending::Gone | Ending::Answered { .. }) => {
            Err(ClientError::ResultGone { call: call() }.into())
        }
    }
}

/// Why a call that the journal does not know is not sent.
fn unsendable(
    sending: &Sending<'_>,
    keyed: &KeyedCall,
    undecided: Option<Time>,
) -> Option<StopReason> {
    if keyed.age >= sending.profile.oldest() {
        return Some(StopReason::Age);
    }
    // A retry outside decides that, and names no key.
    let is_resumed = undecided.is_some() && keyed.named;
    (is_resumed && sending.is_unprotected()).then_some(StopReason::Undeclared)
}

/// How a call with the key of one in the journal is to be taken.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    /// It is the same one.
    Equal,
    /// It is another request of the same caller.
    Other,
    /// Only the server can tell: it keeps accounts apart and saw the bytes.
    ServerKnows,
}

/// Compares the call with the entry that stands. A call that `goes_on` is known to go on with it,
/// whoever its caller. `without_headers` is the digest of the call as an earlier release made it,
/// of less than is compared now. If the entry has that digest, headers may differ, so nothing is
/// answered from it.
fn compare(
    asked: &Entry,
    goes_on: bool,
    without_headers: Option<[u8; 32]>,
    standing: &Entry,
) -> Compared {
    let is_open = standing.ending.is_none();
    let same_caller = asked.caller == standing.caller;
    // A caller that goes on with a call may have a new token. Elsewhere other headers may be of
    // another account, at which the server does something else: its answer there does not end the
    // call.
    let may_end = is_open && (same_caller || goes_on || standing.caller.is_none());
    let Some(stands) = standing.digest else {
        // Nothing is ever answered from an entry without a digest, so a caller that makes its
        // stream again may say how it ended.
        return if may_end {
            Compared::Equal
        } else {
            Compared::ServerKnows
        };
    };
    match asked.digest {
        Some(asked) if asked == stands && (same_caller || may_end) => Compared::Equal,
        Some(_) if without_headers == Some(stands) && may_end => Compared::Equal,
        Some(_) if without_headers == Some(stands) => Compared::ServerKnows,
        Some(asked) if asked != stands && same_caller => Compared::Other,
        // The answer to a stream must not be taken for the answer to the bytes that stand there.
        Some(_) | None => Compared::ServerKnows,
    }
}

fn unknown(why: StopReason, call: Box<CallSummary>) -> ClientError {
    ClientError::Unknown { why, call }
}

fn withdrawn(entry: &Entry) -> ClientError {
    let call = CallSummary::unsent(entry.id.key.clone());
    ClientError::Withdrawn { call }
}

fn stored(url: &Url, body: Bytes) -> http::Response<Body> {
    let response = http::Response::builder().url(url.clone());
    response.body(body.into()).expect("it has no parts yet")
}

fn entry(sending: &Sending<'_>, keyed: &KeyedCall) -> Entry {
    let request = sending.request.request();
    let now = sending.inner.clock.now();
    let used = now.minus(keyed.age);
    let begun = match &sending.call.source {
        Source::Intent(intent) => intent.begun.map(retry_after::time),
        Source::Random | Source::Given(_) => None,
    };
    let longest = sending.inner.settings.max_journaled;
    let key = &sending.profile.header;
    let mut headers = own_headers(sending.profile, request.headers());
    for value in request.headers().get_all(key) {
        headers.append(key, value.clone());
    }
    let body = sending.request.bytes().filter(|body| body.len() <= longest);
    Entry {
        id: keyed.live.id.clone(),
        method: request.method().clone(),
        url: request.url().clone(),
        headers,
        caller: Some(keyed.caller),
        begun: Some(keyed.begun),
        digest: sending.request.digest,
        body: body.map(Bytes::copy_from_slice),
        created: begun.map_or(used, |begun| begun.min(used)),
        deadline: now.plus(sending.deadline.saturating_sub(sending.elapsed())),
        ending: None,
    }
}

#[cfg(test)]
mod tests;

//! The journal after a call, and what it is told. It is told after the server, so a failure here
//! changes nothing about the call.

use std::sync::Arc;

use http::{
    HeaderMap,
    header::{
        CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_RANGE,
        CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED, LINK, LOCATION,
    },
};

use crate::journal::Ending;
use crate::journal::in_time::{Work, go_on};
use crate::keys::Inner;
use crate::outcome::KeyStatus;
use crate::policy::decide::{Happened, is_refusal};
use crate::wire::answer::Read;
use crate::wire::attempts::Attempted;
use crate::wire::send::{KeyedCall, Sending};

/// The headers that describe a body, and are given back with it.
const KEPT: [HeaderName; 12] = [
    HeaderName::from_static("content-digest"),
    CONTENT_DISPOSITION,
    // It is there only where the client beneath has not decoded the body.
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_TYPE,
    ETAG,
    LAST_MODIFIED,
    LINK,
    LOCATION,
    HeaderName::from_static("repr-digest"),
];

/// The meaning of the last attempt of a call to a later call with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It is what the call came to.
    Outcome,
    /// This attempt did nothing. For example, the server, or a proxy before it, did not let it
    /// through, or the server said that the key is free again.
    NotDone,
    /// It does not say what happened.
    Open,
}

/// The meaning of an attempt after which there is nothing more to find out.
pub(crate) fn meaning(attempted: &Attempted) -> Meaning {
    let Attempted::Answered(read) = attempted else {
        return Meaning::Open;
    };
    let status = read.response.status();
    match status.as_u16() {
        _ if read.key_status() == KeyStatus::Released => Meaning::NotDone,
        _ if !read.is_replayed() && is_refusal(status, read.problem().kind) => Meaning::NotDone,
        408 | 500.. => Meaning::Open,
        _ => Meaning::Outcome,
    }
}

/// The meaning of an attempt that is the last one only because no other one is allowed.
impl From<Happened> for Meaning {
    fn from(happened: Happened) -> Self {
        match happened {
            Happened::No => Meaning::NotDone,
            Happened::Perhaps => Meaning::Open,
        }
    }
}

/// Writes the answer that a call came to, and answers whether the journal has it by the deadline.
pub(crate) async fn answered(sending: &Sending<'_>, keyed: &KeyedCall, read: &Read) -> bool {
    ended(sending, keyed, ending(sending.inner, read)).await
}

fn ending(inner: &Inner, read: &Read) -> Ending {
    let mut headers = HeaderMap::new();
    for name in &KEPT {
        for value in read.response.headers().get_all(name) {
            headers.append(name, value.clone());
        }
    }
    let longest = inner.settings.max_journaled;
    let body = read.body.as_ref().filter(|body| body.len() <= longest);
    Ending::Answered {
        status: read.response.status(),
        headers,
        body: body.cloned(),
    }
}

/// Writes how a call ended, and answers whether the journal has that by the deadline. A call whose
/// key cannot be named again is forgotten instead, unless another process took it up. That process
/// is told from there, or, if it dies, the process that lists the call.
pub(crate) async fn ended(sending: &Sending<'_>, keyed: &KeyedCall, ending: Ending) -> bool {
    sending.inner.undecided.forget(&keyed.live.id);
    if !keyed.journaled {
        return true;
    }
    match sending
        .in_time(ending_of(sending.inner, keyed, ending))
        .await
    {
        Ok(told) => told,
        Err(late) => {
            tracing::warn!(
                "a call ended and the journal did not say by its deadline that it knows"
            );
            go_on(sending.inner, async move {
                late.await;
            });
            false
        }
    }
}

/// The work of `ended`. The call counts as being made until that is done, so that no later one with
/// its key, whatever its request, is given this ending.
fn ending_of(inner: &Arc<Inner>, keyed: &KeyedCall, ending: Ending) -> Work<bool> {
    let (inner, live) = (Arc::clone(inner), Arc::clone(&keyed.live));
    let (named, begun, caller) = (keyed.named, keyed.begun, keyed.caller);
    Box::pin(async move {
        let is_forgotten = if named {
            Ok(false)
        } else {
            inner.journal.withdraw(&live.id, Some(&begun)).await
        };
        let told = match is_forgotten {
            Ok(true) => Ok(()),
            Ok(false) => inner.journal.finish(&live.id, &caller, &ending).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &told {
            tracing::warn!(%error, "a call ended and the journal does not know: it will be sent again with its key");
        }
        told.is_ok()
    })
}

/// Lets the key of a call that did not happen be used as if it was new, and answers whether the
/// caller may be told so. It may not if another process took the call up meanwhile: what that one
/// did is not known here. It may not, either, if the journal cannot be told, or does not answer by
/// the deadline: the call will be sent again from there.
pub(crate) async fn nothing_happened(sending: &Sending<'_>, keyed: &KeyedCall) -> bool {
    sending.inner.undecided.forget(&keyed.live.id);
    withdraw(sending, keyed).await
}

/// Takes a call that was not sent, or did nothing, out of the journal, and answers whether it is
/// sure by the deadline not to be sent from there.
pub(crate) async fn withdraw(sending: &Sending<'_>, keyed: &KeyedCall) -> bool {
    if !keyed.journaled {
        return true;
    }
    match sending.in_time(withdrawing(sending.inner, keyed)).await {
        Ok(withdrawn) => withdrawn,
        Err(late) => {
            tracing::warn!(
                "a call did not happen and the journal did not say by its deadline that it knows"
            );
            go_on(sending.inner, async move {
                late.await;
            });
            false
        }
    }
}

/// The work of `withdraw`.
pub(crate) fn withdrawing(inner: &Arc<Inner>, keyed: &KeyedCall) -> Work<bool> {
    let (inner, id, begun) = (Arc::clone(inner), keyed.live.id.clone(), keyed.begun);
    Box::pin(async move {
        let withdrawn = inner.journal.withdraw(&id, Some(&begun)).await;
        withdrawn.unwrap_or_else(|error| {
            tracing::warn!(%error, "a call did not happen and the journal does not know");
            false
        })
    })
}

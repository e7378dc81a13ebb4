//! The mark of a call that has no outcome yet, for a middleware outside that sends it through this
//! one again. It stands in the extensions of the request.

use std::time::Duration;

use http::Extensions;

use crate::key::ClientKey;

/// The call that the extensions belong to.
#[derive(Clone, Debug)]
struct Mark {
    /// Its method, target and body; `None` for a stream, which is never known again.
    digest: Option<[u8; 32]>,
    key: ClientKey,
    /// Since when there is the key, by the timer.
    since: Duration,
    /// An earlier pass may have sent it.
    was_sent: bool,
}

impl Mark {
    fn is_of(&self, digest: Option<[u8; 32]>) -> bool {
        digest.is_some() && self.digest == digest
    }
}

/// The key that an earlier pass of the same call was given, and since when there is that key. The
/// key of another call, as an error, where that one was sent and has no outcome.
pub(crate) fn find(
    extensions: &Extensions,
    digest: Option<[u8; 32]>,
) -> Result<Option<(ClientKey, Duration)>, ClientKey> {
    match extensions.get::<Mark>() {
        Some(mark) if mark.is_of(digest) => Ok(Some((mark.key.clone(), mark.since))),
        Some(mark) if mark.was_sent => Err(mark.key.clone()),
        _ => Ok(None),
    }
}

/// Whether an earlier pass of the same call may have sent it with this key.
pub(crate) fn was_sent(extensions: &Extensions, digest: Option<[u8; 32]>, key: &ClientKey) -> bool {
    let mark = extensions.get::<Mark>();
    mark.is_some_and(|mark| mark.was_sent && mark.is_of(digest) && mark.key == *key)
}

/// Marks the extensions with this call, unless another one stands there that was sent and has no
/// outcome.
pub(crate) fn put(
    extensions: &mut Extensions,
    digest: Option<[u8; 32]>,
    key: &ClientKey,
    since: Duration,
) {
    let stays = |mark: &Mark| mark.was_sent || mark.is_of(digest) && mark.key == *key;
    if extensions.get().is_some_and(stays) {
        return;
    }
    extensions.insert(Mark {
        digest,
        key: key.clone(),
        since,
        was_sent: false,
    });
}

/// This pass is about to send it.
pub(crate) fn note_sent(extensions: &mut Extensions, key: &ClientKey) {
    if let Some(mark) = extensions.get_mut::<Mark>()
        && mark.key == *key
    {
        mark.was_sent = true;
    }
}

/// A retry out there would repeat the call; a request after its outcome is another call.
pub(crate) fn forget(extensions: &mut Extensions, key: &ClientKey) {
    if extensions.get().is_some_and(|mark: &Mark| mark.key == *key) {
        extensions.remove::<Mark>();
    }
}

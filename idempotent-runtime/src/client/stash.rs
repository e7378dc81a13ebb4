//! The keys of calls that have no outcome yet, for another middleware outside that sends them through this one again. They stand in
//! the extensions of the requests, which several may share: whoever retries a call may fetch a token in between.

use std::{collections::HashMap, time::Duration};

use http::Extensions;

use super::key::Key;

#[derive(Clone, Debug, Default)]
struct Stash(HashMap<[u8; 32], Kept>);

#[derive(Clone, Debug)]
struct Kept {
    key: Key,
    since: Duration,
    /// An earlier pass may have sent it.
    was_sent: bool,
}

/// The key that an earlier pass of the same call was given, and since when there is that key, by the timer.
pub(super) fn find(extensions: &Extensions, digest: Option<[u8; 32]>) -> Option<(Key, Duration)> {
    let Kept { key, since, .. } = kept(extensions, digest)?;
    Some((key.clone(), *since))
}

/// Whether an earlier pass of the same call may have sent it with this key.
pub(super) fn was_sent(extensions: &Extensions, digest: Option<[u8; 32]>, key: &Key) -> bool {
    kept(extensions, digest).is_some_and(|kept| kept.was_sent && kept.key == *key)
}

fn kept(extensions: &Extensions, digest: Option<[u8; 32]>) -> Option<&Kept> {
    let Stash(keys) = extensions.get()?;
    keys.get(&digest?)
}

pub(super) fn put(
    extensions: &mut Extensions,
    digest: Option<[u8; 32]>,
    key: &Key,
    since: Duration,
    was_sent: bool,
) {
    if let Some(digest) = digest {
        let Stash(keys) = extensions.get_or_insert_default();
        let key = key.clone();
        let kept = Kept {
            key,
            since,
            was_sent,
        };
        keys.insert(digest, kept);
    }
}

/// This pass is about to send it.
pub(super) fn note_sent(extensions: &mut Extensions, digest: Option<[u8; 32]>) {
    if let Some(digest) = digest
        && let Some(Stash(keys)) = extensions.get_mut()
        && let Some(kept) = keys.get_mut(&digest)
    {
        kept.was_sent = true;
    }
}

/// A retry out there would repeat the call; what comes after its outcome is another call.
pub(super) fn forget(extensions: &mut Extensions, digest: Option<[u8; 32]>) {
    if let Some(digest) = digest
        && let Some(Stash(keys)) = extensions.get_mut()
    {
        keys.remove(&digest);
    }
}

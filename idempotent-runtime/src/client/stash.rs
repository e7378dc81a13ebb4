//! The keys of calls that have no outcome yet, for another middleware outside that sends them through this one again. They stand in
//! the extensions of the requests, which several may share: whoever retries a call may fetch a token in between.

use std::{collections::HashMap, time::Duration};

use http::Extensions;

use super::key::Key;

#[derive(Clone, Debug, Default)]
struct Stash(HashMap<[u8; 32], (Key, Duration)>);

/// The key that an earlier pass of the same call was given, and since when there is that key, by the timer.
pub(super) fn find(extensions: &Extensions, digest: Option<[u8; 32]>) -> Option<(Key, Duration)> {
    let Stash(keys) = extensions.get()?;
    keys.get(&digest?).cloned()
}

pub(super) fn put(
    extensions: &mut Extensions,
    digest: Option<[u8; 32]>,
    key: &Key,
    since: Duration,
) {
    if let Some(digest) = digest {
        let Stash(keys) = extensions.get_or_insert_default();
        keys.insert(digest, (key.clone(), since));
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

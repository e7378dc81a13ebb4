//! The journal: a program's memory of the calls that it makes, so that a restart neither forgets a
//! key nor makes up another one.

pub(crate) mod begin;
pub(crate) mod caller;
pub(crate) mod finish;
pub(crate) mod in_time;
mod memory;
pub(crate) mod resume;
#[cfg(feature = "sqlite")]
mod sqlite;
pub(crate) mod unjournaled;

use std::{
    fmt::{self, Debug},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use reqwest::Url;

#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::sqlite::{JournalFileGone, SqliteJournal};
pub use self::{
    memory::MemoryJournal,
    resume::{PendingCall, Resend},
};
use crate::key::ClientKey;
use idempotent_runtime::{StoreError, Time};

/// Keeps calls from before their first byte leaves until their outcome is known, and longer.
///
/// It is mechanism: what to send again is decided elsewhere. Several processes may share one. An
/// `Arc` of a journal is a journal, too, so the application can keep a handle to purge it by.
///
/// # Errors
///
/// Each method fails if the journal cannot be read or written, and may have been carried out all
/// the same. A call that cannot be written down is not sent.
///
/// # Cancel safety
///
/// A future of these methods may be dropped at any await. Its work is then carried out whole or not
/// at all, and possibly only after the drop. A call waits for such a future until its deadline.
/// After that, a future that writes is polled in a task of its own for a minute at most, and
/// dropped.
#[async_trait]
pub trait ClientJournal: Debug + Send + Sync + 'static {
    /// Writes `entry` if nothing stands under its id, and answers `None` once it will survive all
    /// that the journal is meant to survive. Else it answers with the entry that stands there, and
    /// changes nothing.
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError>;

    /// Answers with the entry that stands under `id`, and writes nothing.
    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError>;

    /// Takes up the entry under `id`, if one stands that has no ending and was
    /// [begun](Entry::begun) by `seen`, and by no other since. From then on it counts as begun by
    /// `begun`. Nothing else of it changes. Looking and writing are one atomic step, and the answer
    /// tells whether it was taken up.
    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError>;

    /// Writes the ending of the entry under `id`, if one stands. The caller that is told of it
    /// takes the place of its [`caller`](Entry::caller).
    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError>;

    /// Deletes the entry under `id`, if one stands that has no ending and was [begun](Entry::begun)
    /// by this begin, and by no other since. An entry that another begin took up meanwhile stays.
    /// `None` is an entry that names no begin. Looking and deleting are one atomic step, and the
    /// answer tells whether it was deleted.
    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError>;

    /// Deletes the entry under `id`, if one stands, no matter which process is making the call.
    async fn forget(&self, id: &EntryId) -> Result<(), StoreError>;

    /// At most `limit` entries without an ending, oldest first. An entry that cannot be read stands
    /// in the list with the parts that are left of it: it keeps no other one back and is not passed
    /// over.
    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError>;

    /// Counts the entries without an ending, `limit` of them at most, and returns when the key of
    /// the oldest one was made. A sampler asks for it again and again. A journal that does not
    /// count them by itself lists them.
    async fn count_unfinished(&self, limit: u32) -> Result<(u64, Option<Time>), StoreError> {
        let listed = self.unfinished(limit).await?;
        let created = listed.iter().flatten().map(|entry| entry.created);
        Ok((listed.len() as u64, created.min()))
    }

    /// Deletes at most `limit` entries that have an ending and were created before `before`, and
    /// says how many.
    ///
    /// A key whose entry is gone counts as new: a call with it is sent again, and a server that has
    /// forgotten it, too, does it again. So `before` must lie further back than any repeat of an
    /// intent, or the intent must say [when it began](crate::Intent::begun).
    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError>;
}

#[async_trait]
impl<J: ClientJournal + ?Sized> ClientJournal for Arc<J> {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        (**self).begin(entry).await
    }

    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        (**self).find(id).await
    }

    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError> {
        (**self).take_up(id, seen, begun).await
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError> {
        (**self).finish(id, caller, ending).await
    }

    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError> {
        (**self).withdraw(id, begun).await
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        (**self).forget(id).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError> {
        (**self).unfinished(limit).await
    }

    async fn count_unfinished(&self, limit: u32) -> Result<(u64, Option<Time>), StoreError> {
        (**self).count_unfinished(limit).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        (**self).purge(before, limit).await
    }
}

/// Names a call: a key belongs to the server that it is sent to, and there to an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId {
    /// The server, such as `https://api.example.com`.
    pub origin: String,
    /// The account at the server that the application named; empty where it named none.
    pub account: String,
    /// The key.
    pub key: ClientKey,
}

/// A call, as it is written down before it is sent. `Debug` shows neither key nor values.
#[derive(Clone, PartialEq)]
pub struct Entry {
    /// Which call it is.
    pub id: EntryId,
    /// Its method.
    pub method: Method,
    /// Its target.
    pub url: Url,
    /// The headers that belong to the request itself. No other header is written down.
    pub headers: HeaderMap,
    /// A one-way digest of the caller, from which no header can be read; `None` if an earlier
    /// release wrote the entry. Once the entry has an ending, that was told to this caller, and to
    /// no other.
    pub caller: Option<[u8; 32]>,
    /// Which begin this is, a random number of its own each time. In the journal, it is the last
    /// one that may have sent the call; `None` if an earlier release wrote the entry.
    pub begun: Option<[u8; 16]>,
    /// The digest of method, target, body and the headers that belong to the request itself; `None`
    /// for a stream, whose bytes were not yet seen. An earlier release took no header into it
    /// except the content type.
    pub digest: Option<[u8; 32]>,
    /// The body, where it is in memory and not too long.
    pub body: Option<Bytes>,
    /// When its key was used first, or when its intent began.
    pub created: Time,
    /// Until when it is worth sending, as the caller said.
    pub deadline: Time,
    /// How it ended, where that is known.
    pub ending: Option<Ending>,
}

/// Says that a call stands in a journal and cannot be read: it may have been sent, and it is
/// unknown how it ended. Find out what happened, and take it out, with [`ClientJournal::forget`]
/// where its id can be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("a call that may have been sent cannot be read from the journal, it stands in {place}")]
pub struct CorruptEntry {
    /// Which call it is, where that much can be read.
    pub id: Option<Box<EntryId>>,
    /// The place where it stands, in words of the journal by which an operator finds it, such as
    /// ``row 7 of `idempotent_calls` ``.
    pub place: String,
    /// The error that the journal found.
    pub source: StoreError,
}

/// How a call ended. `Debug` shows no values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The server answered.
    Answered {
        /// The status.
        status: StatusCode,
        /// The headers that describe the body.
        headers: HeaderMap,
        /// The body, where it was not too long.
        body: Option<Bytes>,
    },
    /// It took effect, and the server no longer has its response.
    Gone,
    /// The server knows its key from another request.
    Burned,
}

impl Entry {
    /// How old its key is at `now`.
    #[must_use]
    pub fn age(&self, now: Time) -> Duration {
        now.since(self.created)
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("created", &self.created)
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

impl Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Answered { status, .. } => f.debug_tuple("Answered").field(status).finish(),
            Ending::Gone => f.write_str("Gone"),
            Ending::Burned => f.write_str("Burned"),
        }
    }
}

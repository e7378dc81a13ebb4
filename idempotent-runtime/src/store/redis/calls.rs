//! The scripts, called with what the protocol knows.

use std::{borrow::Cow, sync::Arc, time::Duration};

use redis::Value as CallOutcome;

use super::{
    Inner,
    attention::Purged,
    link::Node,
    rows::{Cells, place},
    scripts::Text,
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, State, Version, micros},
    store::{
        Snapshot, StoreError, Swap,
        moment::Moment,
        sql::{self, APPLIED, COLUMNS, Value},
        version_cache::CachedVersion,
    },
};

impl Inner {
    pub(super) async fn load(
        &self,
        id: &RecordId,
        doing: &'static str,
    ) -> Result<Snapshot, StoreError> {
        let answer = self.run(&self.scripts.load, id, &[], doing).await?;
        let cells = Cells::of(answer, doing)?.with_id(id);
        sql::snapshot(&cells, place::NOW, place::RECORD, doing)
    }

    /// The known facts of a record that is done, with its outcome; `None` if it no longer stands
    /// so.
    ///
    /// A record that Redis forgets when it expires has not expired if it stands, so one command
    /// tells all. For another record the time decides, which no single command tells. And a command
    /// that only reads may tell of a record that is gone, if something else than the primary may
    /// answer it. A script is always answered by the primary.
    pub(super) async fn again(
        &self,
        id: &RecordId,
        known: &CachedVersion,
        doing: &'static str,
    ) -> Result<Option<Snapshot>, StoreError> {
        if !known.vanishes() || !self.link.is_own() {
            let sent_at = Moment::now();
            let snapshot = self.load(id, doing).await?;
            self.versions.observe(id, &snapshot, sent_at);
            return Ok(snapshot.record.is_some().then_some(snapshot));
        }
        let mut command = redis::cmd("HMGET");
        command.arg(self.prefix.key(id)).arg(&KNOWN);
        let answer = self.link.send(&command, &Node::Only, doing).await?;
        Ok(stands(answer, known).map(|record| Snapshot {
            now: known.now(),
            record: Some(record),
        }))
    }

    pub(super) async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
        doing: &'static str,
    ) -> Result<Swap, StoreError> {
        let written = sql::written(id, seen, next);
        let stays = match self.versions.version(id, seen) {
            Some(known) if next.only_completes(known.record()) => &ATTEMPT[..],
            _ => &[],
        };
        let arguments = arguments(&written, next.keep, stays);
        let swapping = self.run(&self.scripts.swap, id, &arguments, doing);
        let cells = Cells::of(swapping.await?, doing).map_err(StoreError::after_a_write)?;
        if sql::is_applied(&cells, doing)? {
            self.follow(id, &cells, doing).await;
            return sql::stamp(&cells, place::NOW, next.version, doing).map(Swap::Applied);
        }
        sql::snapshot(&cells.with_id(id), place::NOW, place::RECORD, doing).map(Swap::Refused)
    }

    /// Notes that a call waits while version `seen` stands.
    pub(super) async fn mark(
        &self,
        id: &RecordId,
        seen: Version,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        let seen = seen.to_bytes();
        self.run(&self.scripts.mark, id, &[Cow::Borrowed(&seen)], doing)
            .await
            .map(drop)
    }

    /// Notes that a call waits while version `seen` stands, and tells whether that is noted. A
    /// server that takes no writes, because its memory is full for example, can still be looked at.
    pub(super) async fn notes_waiter(&self, id: &RecordId, seen: Version) -> bool {
        let marked = self.mark(id, seen, "waiting for a record").await;
        if let Err(error) = &marked {
            tracing::debug!(%error, "no notification tells that a record moves, so waiters look by themselves");
        }
        marked.is_ok()
    }

    /// Deletes the record if it has been expired for `keep`. Puts one that needs somebody into the
    /// set if it is missing there.
    pub(super) async fn forget(
        &self,
        id: &RecordId,
        keep: Duration,
        doing: &'static str,
    ) -> Result<Purged, StoreError> {
        let keep = [Cow::Owned(digits(keep))];
        let purging = self.run(&self.scripts.purge, id, &keep, doing);
        Ok(match purging.await? {
            CallOutcome::Int(APPLIED) => Purged::Deleted(*id),
            CallOutcome::Int(2) => Purged::Repaired,
            CallOutcome::Int(3) if self.adds(id, doing).await => Purged::Repaired,
            _ => Purged::Stays,
        })
    }

    /// The record under an id that a walk came by, unless it is gone.
    pub(super) async fn listed(
        &self,
        id: RecordId,
        doing: &'static str,
    ) -> Result<Option<(RecordId, Arc<Record>)>, StoreError> {
        let record = self.load(&id, doing).await?.record;
        Ok(record.map(|record| (id, record)))
    }

    pub(super) async fn run(
        &self,
        script: &Text,
        id: &RecordId,
        arguments: &[Cow<'_, [u8]>],
        doing: &'static str,
    ) -> Result<CallOutcome, StoreError> {
        self.link
            .run(script, &self.prefix.key(id), arguments, doing)
            .await
    }
}

/// The fields by which a known record is recognised, and those that are not known of it.
const KNOWN: [&str; 4] = ["version", "state", "expires", "outcome"];

/// The record with the values in the fields of [`KNOWN`], if it is the one that is known.
fn stands(answer: CallOutcome, known: &CachedVersion) -> Option<Arc<Record>> {
    let CallOutcome::Array(fields) = answer else {
        return None;
    };
    let [version, state, expires, outcome]: [_; KNOWN.len()] = fields.try_into().ok()?;
    let is = |field, expected: &[u8]| matches!(field, CallOutcome::BulkString(bytes) if bytes == expected);
    let is_known = is(version, &known.version().to_bytes())
        && is(state, State::Done.code().to_string().as_bytes())
        && is(expires, known.expires().as_micros().to_string().as_bytes());
    let outcome = match outcome {
        CallOutcome::BulkString(bytes) => Some(bytes),
        _ => None,
    };
    is_known.then(|| known.with(outcome))?
}

/// The arguments of the swap, as its script reads them, except the fields that stay as they are.
fn arguments<'a>(
    written: &'a [Value<'_>; 23],
    keep: Duration,
    stays: &[&str],
) -> Vec<Cow<'a, [u8]>> {
    let [
        _,
        fields @ ..,
        lease,
        retention,
        kind,
        schema,
        outcome,
        note,
        note_by,
        note_of,
        seen,
    ] = written;
    let [_, operation, .., state, least_token, _, _, _, _, _] = fields;
    let mut deleted = Vec::new();
    let mut set = Vec::new();
    // The token depends on the one before it: the script sets it.
    let named = COLUMNS[1..14]
        .iter()
        .zip(fields)
        .filter(|(name, _)| **name != "token");
    let last = [kind, schema, outcome, note, note_by, note_of];
    let all = named.chain(COLUMNS[18..].iter().zip(last));
    for (name, value) in all.filter(|(name, _)| !stays.contains(*name)) {
        match text(value) {
            Some(value) => set.extend([Cow::Borrowed(name.as_bytes()), value]),
            None if SUBJECT.contains(name) => {}
            None => deleted.push(Cow::Borrowed(name.as_bytes())),
        }
    }
    let begins: &[u8] = if text(operation).is_some() { b"1" } else { b"" };
    let mut arguments: Vec<_> = [seen, state, least_token, lease, retention]
        .map(|value| text(value).unwrap_or_default())
        .into();
    arguments.extend([
        Cow::Owned(digits(keep)),
        Cow::Borrowed(begins),
        Cow::Owned(deleted.len().to_string().into_bytes()),
    ]);
    arguments.append(&mut deleted);
    arguments.append(&mut set);
    arguments
}

/// The fields that stay if a draft says nothing of them.
const SUBJECT: [&str; 5] = ["operation", "scope", "call_key", "fingerprint", "digests"];

/// The fields of the claim that a completion says again, and those of a note, which neither has.
const ATTEMPT: [&str; 8] = [
    "attempt",
    "attempt_id",
    "holder",
    "trace_parent",
    "on_crash",
    "note",
    "note_by",
    "note_of",
];

fn digits(duration: Duration) -> Vec<u8> {
    micros(duration).to_string().into_bytes()
}

fn text<'a>(value: &'a Value<'_>) -> Option<Cow<'a, [u8]>> {
    match value {
        Value::Bytes(bytes) => bytes.as_deref().map(Cow::Borrowed),
        Value::Text(text) => text.map(|text| Cow::Borrowed(text.as_bytes())),
        Value::Number(number) => number.map(|number| Cow::Owned(number.to_string().into_bytes())),
    }
}

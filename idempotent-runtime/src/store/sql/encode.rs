//! From a draft to the parameters of a statement.

use std::borrow::Cow;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::store::version_cache::CachedVersion;
use crate::{
    identity::RecordId,
    record::{Draft, Moment, Note, RawOutcome, TokenRule, Version, micros},
};

/// The parameters of a statement that reads the outcome of a known record again: id, version, when
/// it expires.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn known<'a>(id: &'a RecordId, known: &CachedVersion) -> [Value<'a>; 3] {
    let expires = known.expires().as_micros();
    [
        bytes(id.as_bytes()),
        owned(known.version().to_bytes()),
        Value::Number(Some(expires)),
    ]
}

/// A parameter. `None` is NULL, of the type that the column has.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Bytes(Option<Cow<'a, [u8]>>),
    Text(Option<&'a str>),
    Number(Option<i64>),
}

/// The parameters of a write, in the order in which every dialect numbers them.
///
/// | | | NULL means |
/// |---|---|---|
/// | 1, 2 | id, version to write | |
/// | 3 to 7 | operation, scope, key, fingerprint, digests | the subject stays |
/// | 8 | state | |
/// | 9 | the least token there may be | the token stays |
/// | 10 to 14 | attempt, attempt id, holder, trace parent, on crash | no trace parent |
/// | 15, 16 | lease, retention, in microseconds from now | the moment stays |
/// | 17 to 19 | kind, schema and bytes of the outcome | no outcome |
/// | 20 to 22 | text, person and version of the note | no note |
/// | 23 | version that was seen | nothing was seen |
pub(crate) fn written<'a>(
    id: &'a RecordId,
    seen: Option<Version>,
    draft: &'a Draft,
) -> [Value<'a>; 23] {
    let subject = draft.subject.as_deref();
    let [kind, schema, outcome] = outcome_of(draft.outcome.as_ref());
    let [note, note_by, note_of] = note_of(draft.note.as_deref(), draft.version);
    [
        bytes(id.as_bytes()),
        owned(draft.version.to_bytes()),
        Value::Text(subject.map(|subject| &*subject.operation)),
        Value::Bytes(subject.map(|subject| Cow::Borrowed(&*subject.scope))),
        Value::Bytes(subject.map(|subject| Cow::Borrowed(&*subject.key))),
        Value::Bytes(
            subject
                .map(|subject| Cow::Owned(subject.fingerprint.fingerprint().as_bytes().to_vec())),
        ),
        Value::Bytes(subject.map(|subject| Cow::Owned(subject.fingerprint.digests().to_bytes()))),
        Value::Number(Some(draft.state.code().into())),
        Value::Number(least_token(draft.token)),
        Value::Number(Some(draft.attempt.into())),
        owned(draft.attempt_id.to_bytes()),
        Value::Text(Some(&draft.holder.label)),
        Value::Text(draft.holder.trace_parent.as_deref()),
        Value::Number(Some(draft.on_crash.code().into())),
        moment(draft.lease),
        moment(draft.expires),
        kind,
        schema,
        outcome,
        note,
        note_by,
        note_of,
        Value::Bytes(seen.map(|seen| Cow::Owned(seen.to_bytes().to_vec()))),
    ]
}

/// The parameters of a completion that changes nothing else. The dialects that have a statement for
/// it number them in this order: id, version to write, version that was seen, retention in
/// microseconds from now, and kind, schema and bytes of the outcome.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn completed<'a>(id: &'a RecordId, seen: Version, draft: &'a Draft) -> [Value<'a>; 7] {
    let [kind, schema, outcome] = outcome_of(draft.outcome.as_ref());
    [
        bytes(id.as_bytes()),
        owned(draft.version.to_bytes()),
        owned(seen.to_bytes()),
        moment(draft.expires),
        kind,
        schema,
        outcome,
    ]
}

/// The parameters of an outcome: kind, schema and bytes.
pub(super) fn outcome_of(outcome: Option<&RawOutcome>) -> [Value<'_>; 3] {
    [
        Value::Number(outcome.map(|outcome| outcome.kind.code().into())),
        Value::Number(outcome.map(|outcome| outcome.schema.into())),
        Value::Bytes(outcome.map(|outcome| Cow::Borrowed(&*outcome.bytes))),
    ]
}

/// The parameters of a note about `version`: text, person and that version.
pub(super) fn note_of(note: Option<&Note>, version: Version) -> [Value<'_>; 3] {
    let of = note.map(|_| Cow::Owned(version.to_bytes().to_vec()));
    [
        Value::Text(note.map(|note| &*note.text)),
        Value::Text(note.and_then(|note| note.by.as_deref())),
        Value::Bytes(of),
    ]
}

/// A parameter of bytes.
pub(crate) fn bytes(bytes: &[u8]) -> Value<'_> {
    Value::Bytes(Some(Cow::Borrowed(bytes)))
}

pub(super) fn owned<'a>(bytes: [u8; 16]) -> Value<'a> {
    Value::Bytes(Some(Cow::Owned(bytes.to_vec())))
}

fn moment<'a>(moment: Moment) -> Value<'a> {
    Value::Number(match moment {
        Moment::Keep => None,
        Moment::In(duration) => Some(micros(duration)),
    })
}

/// SQL integers are signed; tokens are microseconds since 1970, so the upper half is never reached.
fn least_token(rule: TokenRule) -> Option<i64> {
    match rule {
        TokenRule::Keep => None,
        TokenRule::Above(floor) => {
            Some(i64::try_from(floor.as_u64().saturating_add(1)).unwrap_or(i64::MAX))
        }
    }
}

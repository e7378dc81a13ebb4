//! One record in a list.

use std::sync::Arc;

use crate::{
    identity::RecordId,
    record::{Note, OutcomeKind, RawOutcome, Record, State, Time, Version},
    store::ListedRecord,
};

/// A record as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordRow {
    /// The id, by which [`settle_id`](crate::Idempotency::settle_id) finds the record.
    pub id: RecordId,
    /// The operation's stable name.
    pub operation: Arc<str>,
    /// The scope as it stands in the store, in quotes and escaped; `None` if there is none, or the
    /// handle that wrote it [redacts keys](crate::Builder::redact_keys).
    pub scope: Option<String>,
    /// The key, likewise.
    pub key: Option<String>,
    /// The state.
    pub state: State,
    /// Whether it is the record of a [stream](crate::sequence) of numbered calls.
    pub is_stream: bool,
    /// The number of the attempt.
    pub attempt: u32,
    /// The label of the process that holds or held it.
    pub holder: Arc<str>,
    /// When the first claim was written. All times are by the store's clock.
    pub created: Time,
    /// When the lease of the holder ends, or ended.
    pub lease_end: Time,
    /// When it last left [`State::Running`].
    pub finished: Option<Time>,
    /// When it stops binding calls, if its state allows that.
    pub expires: Time,
    /// Names the version that stands.
    pub version: Version,
    /// The outcome, if there is one.
    pub outcome: Option<OutcomeSummary>,
    /// The person who wrote this version, and why.
    pub note: Option<Arc<Note>>,
}

/// The kind and the size of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutcomeSummary {
    /// The kind.
    pub kind: OutcomeKind,
    /// How many bytes it has in the store.
    pub bytes: u64,
}

impl From<&RawOutcome> for OutcomeSummary {
    fn from(outcome: &RawOutcome) -> Self {
        Self {
            kind: outcome.kind,
            bytes: outcome.bytes.len() as u64,
        }
    }
}

impl From<&ListedRecord> for RecordRow {
    fn from(listed: &ListedRecord) -> Self {
        let record: &Record = &listed.record;
        let outcome = record.outcome.as_ref();
        Self {
            id: listed.id,
            operation: Arc::clone(&record.subject.operation),
            scope: readable(&record.subject.scope),
            key: readable(&record.subject.key),
            state: record.state,
            is_stream: record.is_stream(),
            attempt: record.attempt,
            holder: Arc::clone(&record.holder.label),
            created: record.created,
            lease_end: record.lease_end,
            finished: record.finished,
            expires: record.expires,
            version: record.version,
            outcome: outcome.map(|outcome| OutcomeSummary {
                kind: outcome.kind,
                bytes: listed.outcome_bytes,
            }),
            note: record.note.clone(),
        }
    }
}

/// Bytes that people read, in quotes and escaped: nothing in them moves a terminal or a page.
fn readable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    (!text.is_empty()).then(|| format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_key_moves_a_terminal() {
        assert_eq!(readable(b"m-7, 3").as_deref(), Some(r#""m-7, 3""#));
        assert_eq!(
            readable(b"\x1b[2J\"\r\n\0\xff").as_deref(),
            Some("\"\\u{1b}[2J\\\"\\r\\n\\0\u{fffd}\"")
        );
        assert_eq!(
            readable("\u{202e}".as_bytes()).as_deref(),
            Some(r#""\u{202e}""#)
        );
        assert_eq!(readable(b""), None);
    }
}

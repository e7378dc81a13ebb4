//! Records and steps as objects of JSON.

use idempotent_runtime::{
    RawOutcome, Time,
    identity::RecordId,
    operate::{Note, OutcomeSummary, RecordRow, StepRow},
};
use serde_json::{Value, json};

use super::table::{kind_of, state_of};
use crate::version;

/// A record as a list has it. Its version is what `--at-version` takes.
pub(crate) fn object_of_row(row: &RecordRow) -> Value {
    json!({
        "id": row.id.to_hex(),
        "operation": &*row.operation,
        "scope": row.scope.as_deref().map(unquoted),
        "key": row.key.as_deref().map(unquoted),
        "state": state_of(row.state),
        "is_stream": row.is_stream,
        "attempt": row.attempt,
        "holder": &*row.holder,
        "created": time(row.created),
        "lease_end": time(row.lease_end),
        "finished": row.finished.map(time),
        "expires": time(row.expires),
        "version": version::text(row.version),
        "outcome": row.outcome.map(summary),
        "note": row.note.as_deref().map(note),
    })
}

pub(crate) fn object_of_step(row: &StepRow) -> Value {
    json!({
        "name": RecordId::from_bytes(*row.name.as_bytes()).to_hex(),
        "label": &*row.label,
        "state": format!("{:?}", row.state).to_lowercase(),
        "is_to_be_undone": row.is_to_be_undone,
        "version": version::text(row.version),
        "outcome": row.outcome.map(summary),
        "note": row.note.as_deref().map(note),
    })
}

/// An outcome without its value.
pub(crate) fn object_of_outcome(outcome: &RawOutcome) -> Value {
    json!({
        "kind": kind_of(outcome.kind),
        "bytes": outcome.bytes.len(),
        "schema": outcome.schema,
    })
}

fn summary(outcome: OutcomeSummary) -> Value {
    json!({ "kind": kind_of(outcome.kind), "bytes": outcome.bytes })
}

fn note(note: &Note) -> Value {
    json!({ "by": note.by.as_deref(), "reason": &*note.text })
}

fn time(time: Time) -> String {
    time.to_string()
}

/// A text of a list without its quotes. Characters that move a terminal stay escaped.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|it| it.strip_suffix('"'))
        .unwrap_or(text)
}

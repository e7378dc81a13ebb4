//! The columns of a record.

/// The columns that a select lists, in this order: the id first, so that it alone tells whether a
/// record stands.
///
/// Moments are whole microseconds by the clock of the database. `scope` and `call_key` are for
/// people to read; identity is the id alone. A note counts where `note_of` is the version of the
/// row: a build that does not know these columns leaves them as they are.
pub(crate) const COLUMNS: [&str; 24] = [
    "id",
    "version",
    "operation",
    "scope",
    "call_key",
    "fingerprint",
    "digests",
    "state",
    "token",
    "attempt",
    "attempt_id",
    "holder",
    "trace_parent",
    "on_crash",
    "lease_end",
    "created",
    "finished",
    "expires",
    "outcome_kind",
    "outcome_schema",
    "outcome",
    "note",
    "note_by",
    "note_of",
];

/// How many characters of an operation's name stand in an index, on servers that bound these.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const INDEXED_NAME: usize = 191;

/// The states in which a record [needs somebody](crate::record::State::needs_attention).
#[cfg(feature = "_sql")]
pub(crate) fn attention() -> String {
    let states = crate::record::State::ATTENTION.map(|state| state.code().to_string());
    states.join(", ")
}

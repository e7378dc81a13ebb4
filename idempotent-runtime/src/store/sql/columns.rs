//! The columns of a record.

/// The columns that a select lists, in this order: the id first, so that it alone tells whether a
/// record stands.
///
/// Moments are whole microseconds by the clock of the database. `scope` and `call_key` are for
/// people to read; identity is the id alone.
pub(crate) const COLUMNS: [&str; 21] = [
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
];

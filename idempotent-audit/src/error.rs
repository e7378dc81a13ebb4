//! Why an audit could not be made or found.

use std::time::Duration;

use idempotent_runtime::StoreError;

/// Says why an audit could not be made, or why it does not stand.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The database refused a statement, or did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),

    /// The tables of the store are not there: its `migrate()` comes first.
    #[error(
        "there are no records to audit: the table `{table}` is missing, run the store's `migrate()` first"
    )]
    #[non_exhaustive]
    NoRecords {
        /// The table.
        table: String,
    },

    /// A trigger, function or table of the trail is missing, disabled, or has another text.
    #[error(
        "the audit does not stand: `{object}` {flaw}, run `migrate()` of the audit as the owner of the tables"
    )]
    #[non_exhaustive]
    Broken {
        /// Its name.
        object: String,
        /// The flaw, such as `is missing`.
        flaw: &'static str,
    },

    /// Other transactions kept a table locked. Nothing was left behind, and calls went on.
    #[error(
        "the table `{table}` was in use for {waited:?}, in {tries} tries: end the transaction that is open on it, and try again"
    )]
    #[non_exhaustive]
    Locked {
        /// The table.
        table: String,
        /// How often it was tried.
        tries: u32,
        /// How long it waited in all.
        waited: Duration,
    },

    /// An anchor is that of another store.
    #[error("the anchor of `{origin}` is that of another store: give those of this one")]
    #[non_exhaustive]
    OtherAnchor {
        /// Its origin.
        origin: String,
    },

    /// An act on the trail lacks something, or has too much of it. Nothing was written.
    #[error("{0}")]
    InvalidAct(&'static str),

    /// The server has a binary log, and lets only a user with the right `SUPER` make triggers
    /// (error 1419).
    #[error(
        "the server writes a binary log, so this user may not make triggers (error 1419): run `migrate()` as a user with the right `SUPER`, or set `log_bin_trust_function_creators = 1` on the server"
    )]
    #[non_exhaustive]
    NeedsSuper {},
}

#![doc = include_str!("client.md")]

mod answer;
mod attempts;
mod begin;
mod body;
mod boundary;
mod call;
mod caller;
mod conclude;
mod deadline;
mod decide;
mod error;
mod failure;
mod finish;
pub mod journal;
mod key;
mod keys;
mod limits;
mod live;
mod outcome;
mod own_headers;
mod problem;
mod profile;
mod redirect;
mod refused;
mod resume;
mod retry_after;
mod send;
mod stash;
mod undecided;

#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::journal::SqliteJournal;
pub use self::{
    call::{Call, Intent},
    decide::Why,
    error::{Answer, ClientError, Ended},
    journal::{ClientJournal, MemoryJournal},
    key::{InvalidKey, Key, LONGEST_KEY},
    keys::{IdempotencyKeys, KeysBuilder},
    limits::{Budget, Limits},
    outcome::{KeyStatus, Origin, Outcome},
    profile::{Conflict, KeyStyle, Profile, Support},
    resume::{Resend, Unfinished},
};

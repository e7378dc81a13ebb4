#![doc = include_str!("client.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod call;
mod error;
mod in_flight;
pub mod journal;
mod key;
mod keys;
mod outcome;
mod policy;
mod wire;

#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::journal::SqliteJournal;
pub use self::{
    call::{Call, Intent},
    error::{Answer, ClientError, Ended},
    journal::{ClientJournal, MemoryJournal, Resend, Unfinished},
    key::{InvalidKey, Key, LONGEST_KEY},
    keys::{IdempotencyKeys, KeysBuilder},
    outcome::{KeyStatus, Origin, Outcome},
    policy::{Budget, Conflict, KeyStyle, Limits, Profile, Support, Why},
};

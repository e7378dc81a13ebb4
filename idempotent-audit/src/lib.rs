#![cfg_attr(feature = "sqlite", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sqlite"),
    doc = "An audit trail for `idempotent-runtime`, in a database that a feature names."
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
#[doc = include_str!("guide.md")]
pub mod guide {}

#[cfg(not(any(feature = "mysql", feature = "postgres", feature = "sqlite")))]
compile_error!(
    "without a database there is no trail: choose `mysql`, `postgres` or `sqlite` among the features of idempotent-audit"
);

mod act;
mod anchor;
mod approval;
mod asked;
mod audit;
mod database;
mod entry;
mod error;
mod event;
mod export;
mod four_eyes;
mod hold;
mod merkle;
mod migrate;
mod names;
mod prune;
mod reading;
mod report;
mod retention;
mod seal;
mod source;
mod standing;
mod tables;
mod timeline;
mod trail;
mod unaudited;
mod verify;
mod verifying;

pub use crate::{
    act::TrailAct,
    anchor::{Anchor, NoAnchor},
    approval::{NoProposal, Proposal, Proposed},
    audit::{Audit, AuditBuilder, SealTask},
    error::AuditError,
    event::Signed,
    export::Manifest,
    hold::{Held, Hold},
    prune::Pruned,
    reading::Verify,
    report::{Divergence, DivergenceKind, Report},
    retention::Prune,
    timeline::TimelineEntry,
    verifying::{Verifications, Verified, VerifyTask},
};

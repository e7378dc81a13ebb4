#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod acts;
mod approvals;
mod chart;
mod links;
mod mail;
mod mailbox;
mod origin;
mod overview;
mod page;
mod record_act;
mod replies;
mod routes;
mod search;
mod seconds;
mod token;
mod views;

pub use crate::{
    access::{Access, Act, Person},
    chart::CallChart,
    page::Page,
};

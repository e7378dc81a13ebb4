#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod acts;
mod bulk;
mod chart;
mod chosen;
mod limit;
mod links;
mod origin;
mod outbox;
mod outbox_acts;
mod overview;
mod page;
mod proposals;
mod record_act;
mod replies;
mod reveal;
mod routes;
mod search;
mod token;
mod trail;
mod views;

pub use crate::{
    access::{Access, Act, Person},
    chart::CallChart,
    page::Page,
};

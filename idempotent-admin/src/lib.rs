#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod links;
mod overview;
mod page;
mod replies;
mod search;
mod views;

pub use crate::{
    access::{Access, Person},
    page::Page,
};

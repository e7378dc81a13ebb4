#![doc = include_str!("../README.md")]

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

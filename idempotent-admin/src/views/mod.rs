//! The pages, in HTML.

mod layout;
mod list;
mod overview;
mod record;

pub(crate) use self::{
    layout::{failed, missing, refused},
    list::{list, no_list},
    overview::overview,
    record::record,
};

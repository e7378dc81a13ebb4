//! The pages, in HTML.

mod act;
mod layout;
mod list;
mod overview;
mod record;

pub(crate) use self::{
    act::{Wanted, ended, form, not_here},
    layout::{failed, missing, refused},
    list::{list, no_list},
    overview::overview,
    record::record,
};

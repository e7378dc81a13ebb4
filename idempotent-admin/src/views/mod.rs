//! The pages, in HTML.

mod act;
mod chart;
mod layout;
mod list;
mod outbox;
mod overview;
mod record;
mod seconds;

pub(crate) use self::{
    act::{Wanted, ended, form, not_here},
    layout::{failed, missing, refused},
    list::{list, no_list},
    outbox::{mail_form, mailed, no_outbox, outbox},
    overview::overview,
    record::record,
    seconds::{proposals, seconded},
};

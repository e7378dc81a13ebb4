//! The pages, in HTML.

mod act;
mod bulk;
mod chart;
mod layout;
mod list;
mod outbox;
mod overview;
mod proposals;
mod record;

pub(crate) use self::{
    act::{Wanted, ended, form, not_here, revealed, title},
    bulk::{bulk_ended, bulk_form, no_bulk, no_bulk_below},
    layout::{failed, missing, no_page, refused},
    list::{Listed, list, no_list},
    outbox::{no_outbox, outbox, outbox_ended, outbox_form},
    overview::overview,
    proposals::{proposal_ended, proposals},
    record::record,
};

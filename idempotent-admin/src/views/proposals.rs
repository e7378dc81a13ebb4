//! Proposals, and their approval.

use maud::{Markup, html};

use super::layout::{page, time};
use crate::{
    access::{Act, Person},
    links::Depth,
    trail::Proposal,
};

/// The proposals; those that the person may approve have a token.
pub(crate) fn proposals(person: &Person, all: &[(Proposal, Option<String>)]) -> Markup {
    let content = html! {
        @if all.is_empty() { p { "No proposal stands." } }
        @for (it, token) in all {
            section {
                h2 { "Proposal " (it.number) }
                dl {
                    dt { "Record" } dd { a href={ "records/" (it.record.to_hex()) } { code { (it.record.short()) } } }
                    dt { "Proposed by" } dd { (it.by) }
                    dt { "Reason" } dd { (it.because) }
                    dt { "The end that is wanted" } dd { code { (end(it, person.may(Act::Approve))) } }
                    dt { "Approved by" } dd { (approved_by(it)) }
                    dt { "Until" } dd { (time(it.until, None)) }
                }
                @if let Some(token) = token { (form(it, token)) }
            }
        }
    };
    page(person, Depth::Top, "Proposals", &content)
}

/// The end of a proposal. The hash of a short outcome says which it is, so only those see it who
/// may approve it.
fn end(proposal: &Proposal, with_hash: bool) -> &str {
    match proposal.text.rsplit_once(' ') {
        Some((end, _)) if !with_hash => end,
        _ => &proposal.text,
    }
}

fn approved_by(proposal: &Proposal) -> String {
    match proposal.approved_by.is_empty() {
        true => "nobody yet".to_owned(),
        false => proposal.approved_by.join(", "),
    }
}

fn form(proposal: &Proposal, token: &str) -> Markup {
    html! {
        form.act method="post" action={ "approvals/" (proposal.number) } {
            input type="hidden" name="proposal" value=(proposal.text);
            input type="hidden" name="token" value=(token);
            label { "Reason, which the audit keeps"
                textarea name="reason" required maxlength="4096" rows="2" {}
            }
            p { button type="submit" { "Approve" } }
        }
    }
}

/// An approval that ended, or could not be done.
pub(crate) fn proposal_ended(person: &Person, depth: Depth, text: &str, is_done: bool) -> Markup {
    let content = html! {
        @if is_done { p role="status" { (text) } } @else { p role="alert" { (text) } }
        p { a href=(depth.to("approvals")) { "Back to the proposals" } }
    };
    page(person, depth, "Proposals", &content)
}

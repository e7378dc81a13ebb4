//! An act on many records: its form, and how it ended for each.

use idempotent_runtime::identity::RecordId;
use maud::{Markup, html};

use super::{
    act::title,
    layout::{page, table},
};
use crate::{
    access::Person,
    chosen::Chosen,
    links::Depth,
    record_act::{Ended, RecordAct},
};

/// The sentence that says what an act does to each of the records.
fn will(act: RecordAct) -> &'static str {
    match act {
        RecordAct::Resume => "Each is tried again: the next call with its key takes over and runs.",
        RecordAct::Invalidate => {
            "The outcome of each answers no call any more: the next call with its key runs the body once more."
        }
        _ => {
            "Each call happened, and its value is not known: duplicates are refused, and it never runs again."
        }
    }
}

/// The form of an act on these records.
pub(crate) fn bulk_form(person: &Person, act: RecordAct, chosen: &[Chosen], token: &str) -> Markup {
    let content = html! {
        p { strong { (will(act)) } }
        p { (count(chosen.len())) ", each only at the version that you saw. Person: " (person.name()) "." }
        form.act method="post" action={ "bulk/" (act.name()) } {
            (fields(chosen, token))
            label { "Reason, which the store keeps"
                textarea name="reason" required maxlength="4096" rows="3" {}
            }
            p { button type="submit" { (title(act)) } " " a href="records" { "Back to the list" } }
        }
        ul { @for it in chosen { li { (link("records/", it.id)) } } }
    };
    page(person, Depth::Top, &many(act), &content)
}

fn many(act: RecordAct) -> String {
    format!("{} many", title(act))
}

fn count(records: usize) -> String {
    match records {
        1 => "1 record".to_owned(),
        records => format!("{records} records"),
    }
}

fn link(path: &str, id: RecordId) -> Markup {
    let id = id.to_hex();
    html! { a href={ (path) (id) } { code { (id[..12]) } } }
}

fn fields(chosen: &[Chosen], token: &str) -> Markup {
    html! {
        input type="hidden" name="token" value=(token);
        @for it in chosen { input type="hidden" name="record" value=(it.field()); }
    }
}

/// How the act ended for each record, and a form that goes on with the rest.
pub(crate) fn bulk_ended(
    person: &Person,
    act: RecordAct,
    ended: &[(RecordId, Ended)],
    (rest, token, reason): (&[Chosen], &str, &str),
) -> Markup {
    let done = ended.iter().filter(|(_, it)| *it == Ended::Done).count();
    let rows = html! {
        @for (id, it) in ended {
            @let (word, why) = words(it);
            tr { td { (link("../records/", *id)) } td { (word) } td { (why) } }
        }
    };
    let content = html! {
        p role="status" { (done) " of " (count(ended.len())) " done." }
        @if !rest.is_empty() {
            form.act method="post" action=(act.name()) {
                (fields(rest, token))
                input type="hidden" name="reason" value=(reason);
                p { button type="submit" { "Go on with the next of " (count(rest.len())) } }
            }
        }
        (table("Records", &["Record", "Ended", "Why"], &rows))
        p { a href="../records" { "Back to the list" } }
    };
    page(person, Depth::Below, &many(act), &content)
}

fn words(ended: &Ended) -> (&'static str, &str) {
    match ended {
        Ended::Done => ("done", ""),
        Ended::Moved(why) => ("moved", why),
        Ended::Invalid(why) => ("refused", why),
        Ended::Refused(why) => ("refused", why),
        Ended::Proposed => ("proposed", "another person has to approve it"),
        Ended::NotProposed(why) => ("refused", why),
        Ended::Unknown(why) => ("not known", why),
    }
}

/// A form that makes no sense, or is not this person's.
pub(crate) fn no_bulk(person: &Person, text: &str) -> Markup {
    refused(person, Depth::Top, text)
}

/// The same, one folder below.
pub(crate) fn no_bulk_below(person: &Person, text: &str) -> Markup {
    refused(person, Depth::Below, text)
}

fn refused(person: &Person, depth: Depth, text: &str) -> Markup {
    let content = html! {
        p role="alert" { (text) }
        p { a href=(depth.to("records")) { "Back to the list" } }
    };
    page(person, depth, "Nothing was changed", &content)
}

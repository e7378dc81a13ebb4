//! An outbox.

use maud::{Markup, html};

use super::layout::{in_short, page, table, time};
use crate::{
    access::Person,
    links::{Depth, with_search},
    outbox::{OutboxAct, ParkedKey, SetAside, Target},
};

/// The acts that the person may do, by their names in links.
type Acts<'a> = &'a [(&'static str, OutboxAct)];

pub(crate) fn outbox(
    person: &Person,
    acts: Acts<'_>,
    (parked, set_aside): (&[ParkedKey], &[SetAside]),
) -> Markup {
    let content = html! {
        section {
            h2 { "Parked keys" }
            @if parked.is_empty() { p { "No key is parked." } } @else { (table_of_keys(acts, parked)) }
        }
        section {
            h2 { "Messages that were set aside" }
            @if set_aside.is_empty() { p { "None was." } } @else { (table_of_messages(acts, set_aside)) }
        }
    };
    page(person, Depth::Top, "Outbox", &content)
}

fn table_of_keys(acts: Acts<'_>, parked: &[ParkedKey]) -> Markup {
    let wanted = [OutboxAct::Resume, OutboxAct::Discard];
    let rows = html! {
        @for it in parked { tr {
            td { (it.key) } td { (it.topic) } td { (in_short(it.since)) }
            td.number { (it.messages) } td { (it.reason) }
            td { (links(acts, &wanted, &it.key, &it.message, 0)) }
        } }
    };
    let heads = ["Key", "Topic", "For", "Messages", "Reason", "Acts"];
    table("Parked keys", &heads, &rows)
}

fn table_of_messages(acts: Acts<'_>, set_aside: &[SetAside]) -> Markup {
    let wanted = [OutboxAct::Resend, OutboxAct::Delete];
    let rows = html! {
        @for it in set_aside {
            @let key = it.key.as_deref().unwrap_or("");
            tr {
                td { (it.message) } td { (it.topic) } td { (key) } td.number { (it.bytes) }
                td { (time(it.at, None)) } td { (it.reason) }
                td { (links(acts, &wanted, key, &it.message, it.at.as_micros())) }
            }
        }
    };
    let heads = [
        "Message",
        "Topic",
        "Key",
        "Bytes",
        "Set aside",
        "Reason",
        "Acts",
    ];
    table("Messages that were set aside", &heads, &rows)
}

fn links(acts: Acts<'_>, wanted: &[OutboxAct], key: &str, message: &str, at: i64) -> Markup {
    let at = at.to_string();
    html! {
        @for (name, act) in acts.iter().filter(|(_, act)| wanted.contains(act)) {
            @let about = [("key", key), ("message", message), ("at", &at)];
            a href=(with_search(&format!("outbox/{name}"), &about)) { (title(*act)) } " "
        }
    }
}

fn title(act: OutboxAct) -> &'static str {
    match act {
        OutboxAct::Resume => "Resume",
        OutboxAct::Discard => "Set aside",
        OutboxAct::Resend => "Send again",
        OutboxAct::Delete => "Delete",
    }
}

fn will(act: OutboxAct) -> &'static str {
    match act {
        OutboxAct::Resume => "The key goes on with its oldest message.",
        OutboxAct::Discard => "The message is set aside, and the key goes on behind it.",
        OutboxAct::Resend => "The message is sent again, behind all that its key has now.",
        OutboxAct::Delete => "The message is deleted for good.",
    }
}

/// The form of an act.
pub(crate) fn outbox_form(
    person: &Person,
    (name, act): (&str, OutboxAct),
    target: Target<'_>,
    token: &str,
) -> Markup {
    let content = html! {
        p { strong { (will(act)) } }
        dl {
            dt { "Key" } dd { (target.key) }
            dt { "Message" } dd { (target.message) }
            dt { "Person" } dd { (person.name()) }
        }
        form.act method="post" action=(name) {
            input type="hidden" name="key" value=(target.key);
            input type="hidden" name="message" value=(target.message);
            input type="hidden" name="at" value=(target.at);
            input type="hidden" name="token" value=(token);
            label { "Reason, which the outbox keeps"
                textarea name="reason" required maxlength="4096" rows="3" {}
            }
            p { button type="submit" { (title(act)) } " " a href="../outbox" { "Back to the outbox" } }
        }
    };
    page(person, Depth::Below, title(act), &content)
}

/// An act that ended, or could not be done.
pub(crate) fn outbox_ended(person: &Person, depth: Depth, text: &str, is_done: bool) -> Markup {
    let content = html! {
        @if is_done { p role="status" { (text) } } @else { p role="alert" { (text) } }
        p { a href=(depth.to("outbox")) { "Back to the outbox" } }
    };
    page(person, depth, "Outbox", &content)
}

pub(crate) fn no_outbox(person: &Person, depth: Depth) -> Markup {
    page(
        person,
        depth,
        "No such page",
        &html! { p { "There is no such page of an outbox." } },
    )
}

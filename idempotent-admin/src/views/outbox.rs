//! An outbox.

use maud::{Markup, html};

use super::layout::{in_short, page, table, time};
use crate::{
    access::Person,
    links::{Depth, with_search},
    mailbox::{MailAct, ParkedKey, SetAside, Target},
};

/// The acts that the person may do, by their names in links.
type Acts<'a> = &'a [(&'static str, MailAct)];

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
    let wanted = [MailAct::Resume, MailAct::Discard];
    let rows = html! {
        @for it in parked { tr {
            td { (it.key) } td { (it.topic) } td { (in_short(it.since)) }
            td.number { (it.messages) } td { (it.reason) }
            td { (links(acts, &wanted, &it.key, &it.message)) }
        } }
    };
    let heads = ["Key", "Topic", "For", "Messages", "Reason", "Acts"];
    table("Parked keys", &heads, &rows)
}

fn table_of_messages(acts: Acts<'_>, set_aside: &[SetAside]) -> Markup {
    let wanted = [MailAct::Resend, MailAct::Delete];
    let rows = html! {
        @for it in set_aside {
            @let key = it.key.as_deref().unwrap_or("");
            tr {
                td { (it.message) } td { (it.topic) } td { (key) } td.number { (it.bytes) }
                td { (time(it.at, None)) } td { (it.reason) }
                td { (links(acts, &wanted, key, &it.message)) }
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

fn links(acts: Acts<'_>, wanted: &[MailAct], key: &str, message: &str) -> Markup {
    html! {
        @for (name, act) in acts.iter().filter(|(_, act)| wanted.contains(act)) {
            @let about = [("key", key), ("message", message)];
            a href=(with_search(&format!("outbox/{name}"), &about)) { (title(*act)) } " "
        }
    }
}

fn title(act: MailAct) -> &'static str {
    match act {
        MailAct::Resume => "Resume",
        MailAct::Discard => "Set aside",
        MailAct::Resend => "Send again",
        MailAct::Delete => "Delete",
    }
}

fn will(act: MailAct) -> &'static str {
    match act {
        MailAct::Resume => "The key goes on with its oldest message.",
        MailAct::Discard => "The message is set aside, and the key goes on behind it.",
        MailAct::Resend => "The message is sent again, behind all that its key has now.",
        MailAct::Delete => "The message is deleted for good.",
    }
}

/// The form of an act.
pub(crate) fn mail_form(
    person: &Person,
    (name, act): (&str, MailAct),
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
pub(crate) fn mailed(person: &Person, text: &str, is_done: bool) -> Markup {
    let content = html! {
        @if is_done { p role="status" { (text) } } @else { p role="alert" { (text) } }
        p { a href="../outbox" { "Back to the outbox" } }
    };
    page(person, Depth::Below, "Outbox", &content)
}

pub(crate) fn no_outbox(person: &Person) -> Markup {
    page(
        person,
        Depth::Below,
        "No such page",
        &html! { p { "There is no such page of an outbox." } },
    )
}

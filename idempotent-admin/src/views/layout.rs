//! The frame of every page, and pages without one.

use std::time::Duration;

use idempotent_runtime::Time;
use maud::{DOCTYPE, Markup, html};

use crate::{access::Person, links::Depth, trail::Verification};

/// A page with its navigation.
pub(super) fn page(person: &Person, depth: Depth, title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, depth))
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    nav aria-label="Pages" {
                        a href=(depth.to("overview")) { "Overview" }
                        a href=(depth.to("records?state=attention")) { "Needs a person" }
                        a href=(depth.to("records")) { "All records" }
                    }
                    p.person { (person.name()) }
                }
                @if let Some(last) = person.verification() { (verification(last)) }
                main #content { h1 { (title) } (content) }
            }
        }
    }
}

/// The last verification of the audit. One that does not hold is an alert.
fn verification(last: &Verification) -> Markup {
    let words = html! {
        (last.text)
        @if let Some(at) = last.at { " Verified: " (time(at, None)) "." }
    };
    html! {
        aside.verification aria-label="Audit" {
            @match last.holds { true => p { (words) }, false => p role="alert" { (words) } }
        }
    }
}

fn head(title: &str, depth: Depth) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · idempotent" }
            link rel="stylesheet" href=(depth.to("style.css"));
            script src=(depth.to("script.js")) defer {}
        }
    }
}

/// A table that scrolls by itself where it is wider than the page.
pub(super) fn table(label: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// A time in UTC. The script shows the local one beside it.
pub(super) fn time(time: Time, now: Option<Time>) -> Markup {
    let text = time.to_string();
    let short = match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(second)) if text.ends_with('Z') => format!("{day} {second} UTC"),
        _ => text.clone(),
    };
    html! {
        time datetime=(text) { (short) }
        @if let Some(now) = now { " " span.ago { "(" (ago(time, now)) ")" } }
    }
}

/// How long ago it was, in its largest unit.
pub(super) fn ago(time: Time, now: Time) -> String {
    match time <= now {
        true => format!("{} ago", in_short(now.since(time))),
        false => format!("in {}", in_short(time.since(now))),
    }
}

pub(super) fn in_short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A person whom nobody knows.
pub(crate) fn refused() -> Markup {
    bare("Not allowed", "You have no right to see this page.")
}

/// A path that is no page. How deep it lies is not known, so it has no link.
pub(crate) fn no_page() -> Markup {
    bare("No such page", "There is no such page.")
}

fn bare(title: &str, text: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (title) } }
            body { main { h1 { (title) } p { (text) } } }
        }
    }
}

pub(crate) fn missing(person: &Person, depth: Depth) -> Markup {
    let content = html! { p { "No record has this id. It may have been forgotten since." } };
    page(person, depth, "No such record", &content)
}

pub(crate) fn failed(person: &Person, depth: Depth, error: &str) -> Markup {
    let content = html! { p role="alert" { "The store did not answer: " (error) } };
    page(person, depth, "The store is away", &content)
}

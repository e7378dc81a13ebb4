//! The overview.

use idempotent_runtime::{
    Operation,
    operate::{Health, OperationChange},
};
use maud::{Markup, html};

use super::{
    chart::chart,
    layout::{ago, in_short, page, table},
};
use crate::{
    access::Person,
    chart::Minute,
    links::{Depth, with_search},
    outbox::Topic,
    overview::{Needy, Overview},
    search::name_of,
};

pub(crate) fn overview(
    person: &Person,
    overview: &Overview,
    (operations, changes): (&[Operation], &[OperationChange]),
    (has_outbox, has_approvals, hour): (bool, bool, Option<&[Minute]>),
) -> Markup {
    let content = html! {
        (needs_a_person(overview))
        @if has_approvals { p { a href="approvals" { "Proposals that a second person approves" } } }
        @if has_outbox { (topics(overview)) }
        @if let Some(hour) = hour { (chart(hour)) }
        @match &overview.health {
            Ok(it) => (health(it)),
            Err(error) => section { h2 { "Health" } p role="alert" { "The store does not answer: " (error) } },
        }
        (protected(operations, changes))
    };
    page(person, Depth::Top, "Overview", &content)
}

fn needs_a_person(overview: &Overview) -> Markup {
    html! {
        section {
            h2 { "Needs a person" }
            @match &overview.needy {
                Err(error) => p role="alert" { "The store did not answer: " (error) },
                Ok(needy) if needy.is_empty() => p { "Nothing does." },
                Ok(needy) => {
                    (table_of_needy(needy, overview))
                    @if overview.is_capped { p { "There are more: only the first 5,000 were counted." } }
                }
            }
        }
    }
}

fn table_of_needy(needy: &[Needy], overview: &Overview) -> Markup {
    let rows = html! {
        @for it in needy {
            @let state = name_of(it.state);
            @let link = with_search("records", &[("state", state), ("operation", &it.operation)]);
            tr {
                td { (state) @if it.is_stream { " stream" } }
                td { a href=(link) { (it.operation) } }
                td.number { (it.count) }
                td { @if let Some(now) = overview.now { (ago(it.oldest, now)) } }
            }
        }
    };
    let heads = ["State", "Operation", "Records", "Oldest"];
    table("Records that need a person", &heads, &rows)
}

fn topics(overview: &Overview) -> Markup {
    html! {
        section {
            h2 { "Outbox" }
            @match &overview.topics {
                Err(error) => p role="alert" { "The outbox did not answer: " (error) },
                Ok(topics) if topics.is_empty() => p { "No message waits." },
                Ok(topics) => (table_of_topics(topics)),
            }
            p { a href="outbox" { "Parked keys, and messages that were set aside" } }
        }
    }
}

fn table_of_topics(topics: &[Topic]) -> Markup {
    let rows = html! {
        @for topic in topics { tr {
            td { (topic.name) }
            td.number { (topic.pending) @if topic.is_capped { ", or more" } }
            td { (in_short(topic.oldest)) }
            td.number { (topic.blocked_keys) }
        } }
    };
    let heads = ["Topic", "Waiting", "Oldest", "Parked keys"];
    table("Topics of the outbox", &heads, &rows)
}

fn health(health: &Health) -> Markup {
    html! {
        section {
            h2 { "Health" }
            dl {
                dt { "Store" }
                @match &health.store {
                    Ok(pulse) => {
                        dd { "answers within " (pulse.round_trip.as_millis()) " ms" }
                        dt { "Its clock" }
                        dd { "is " (pulse.clock_ahead_micros / 1_000) " ms ahead of this process" }
                    }
                    Err(error) => dd { span role="alert" { "does not answer: " (error) } },
                }
                dt { "Calls that run in this process" }
                dd { (health.heartbeats.held) }
            }
        }
    }
}

fn protected(operations: &[Operation], changes: &[OperationChange]) -> Markup {
    html! {
        section {
            h2 { "Operations of this program" }
            @if !changes.is_empty() {
                p { "This deploy changed:" }
                ul { @for change in changes { li { (change) } } }
            }
            @if operations.is_empty() {
                p { "None is known yet." }
            } @else {
                (table_of_operations(operations))
            }
        }
    }
}

fn table_of_operations(operations: &[Operation]) -> Markup {
    const OF_HANDLE: &str = "as the handle says";
    let rows = html! {
        @for it in operations { tr {
            td { a href=(with_search("records", &[("operation", it.name)])) { (it.name) } }
            td { code { (it.key.unwrap_or("the arguments")) } }
            td { code { (it.scope.unwrap_or("-")) } }
            td { (it.ttl.map_or(OF_HANDLE.to_owned(), in_short)) }
            td { (it.on_crash.map_or(OF_HANDLE.to_owned(), |it| format!("{it:?}"))) }
        } }
    };
    let heads = ["Operation", "Key", "Scope", "Answers for", "After a crash"];
    table("Operations", &heads, &rows)
}

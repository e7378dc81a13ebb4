//! The overview.

use idempotent_runtime::{
    Operation,
    operate::{Health, OperationChange},
};
use maud::{Markup, html};

use super::{
    chart::chart,
    layout::{ago, in_short, page},
};
use crate::{
    access::Person,
    chart::Minute,
    links::{Depth, with_search},
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
        (health(&overview.health))
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
                    @if overview.is_capped { p { "There are more: only the first 10,000 were counted." } }
                }
            }
        }
    }
}

fn table_of_needy(needy: &[Needy], overview: &Overview) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Records that need a person" {
            table {
                thead { tr {
                    th scope="col" { "State" } th scope="col" { "Operation" }
                    th scope="col" { "Records" } th scope="col" { "Oldest" }
                } }
                tbody {
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
                }
            }
        }
    }
}

fn topics(overview: &Overview) -> Markup {
    html! {
        section {
            h2 { "Outbox" }
            @match &overview.topics {
                Err(error) => p role="alert" { "The outbox did not answer: " (error) },
                Ok(topics) if topics.is_empty() => p { "No message waits." },
                Ok(topics) => div.wide tabindex="0" role="region" aria-label="Topics of the outbox" {
                    table {
                        thead { tr {
                            th scope="col" { "Topic" } th scope="col" { "Waiting" }
                            th scope="col" { "Oldest" } th scope="col" { "Parked keys" }
                        } }
                        tbody {
                            @for topic in topics {
                                tr {
                                    td { (topic.name) }
                                    td.number { (topic.pending) @if topic.is_capped { ", or more" } }
                                    td { (in_short(topic.oldest)) }
                                    td.number { (topic.blocked_keys) }
                                }
                            }
                        }
                    }
                },
            }
            p { a href="outbox" { "Parked keys, and messages that were set aside" } }
        }
    }
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
                    Err(error) => dd role="alert" { "does not answer: " (error) },
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
                div.wide tabindex="0" role="region" aria-label="Operations" {
                    table {
                        thead { tr {
                            th scope="col" { "Operation" } th scope="col" { "Key" } th scope="col" { "Scope" }
                            th scope="col" { "Answers for" } th scope="col" { "After a crash" }
                        } }
                        tbody {
                            @for it in operations {
                                tr {
                                    td { a href=(with_search("records", &[("operation", it.name)])) { (it.name) } }
                                    td { code { (it.key.unwrap_or("the arguments")) } }
                                    td { code { (it.scope.unwrap_or("-")) } }
                                    td { @match it.ttl { Some(ttl) => (in_short(ttl)), None => "as the handle says" } }
                                    td { @match it.on_crash { Some(on_crash) => (format!("{on_crash:?}")), None => "as the handle says" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

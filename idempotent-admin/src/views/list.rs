//! Lists of records.

use idempotent_runtime::operate::{RecordPage, RecordRow};
use maud::{Markup, html};

use super::layout::{page, table, time};
use crate::{
    access::Person,
    links::Depth,
    search::{STATES, Search, name_of},
};

pub(crate) fn list(person: &Person, search: &Search, listed: &RecordPage) -> Markup {
    let content = html! {
        (form(search))
        @if listed.rows.is_empty() { p { "No record is like that, of " (listed.looked) " that were looked at." } }
        @else { (records(listed)) }
        @if listed.damaged > 0 {
            p role="alert" { (listed.damaged) " records cannot be read: other bytes stand there." }
        }
        nav aria-label="Pages of the list" {
            @if !search.after.is_empty() { a href=(search.link("")) { "First page" } }
            @if let Some(next) = listed.next { a rel="next" href=(search.link(&next.to_string())) { "Next page" } }
        }
    };
    page(person, Depth::Top, "Records", &content)
}

/// A search that makes no sense.
pub(crate) fn no_list(person: &Person, search: &Search, why: &str) -> Markup {
    let content = html! {
        (form(search))
        p role="alert" { "This search cannot be made: " (why) }
    };
    page(person, Depth::Top, "Records", &content)
}

/// The fields of a search. Sent again, it begins at the first page.
fn form(search: &Search) -> Markup {
    html! {
        form.search method="get" action="records" {
            label { "State"
                select name="state" {
                    option value="" selected[search.state.is_empty()] { "any" }
                    @for (name, _) in STATES {
                        option value=(name) selected[search.state == name] {
                            (if name == "attention" { "needs a person" } else { name })
                        }
                    }
                }
            }
            (field("operation", "Operation", &search.operation))
            (field("scope", "Scope", &search.scope))
            (field("key", "Key", &search.key))
            (field("older_than", "Older than", &search.older_than))
            button type="submit" { "Search" }
        }
    }
}

fn field(name: &str, label: &str, value: &str) -> Markup {
    html! { label { (label) input type="text" name=(name) value=(value) autocomplete="off"; } }
}

fn records(listed: &RecordPage) -> Markup {
    let rows = html! { @for row in &listed.rows { (line(row, listed)) } };
    let heads = [
        "Record",
        "State",
        "Since",
        "Operation",
        "Scope",
        "Key",
        "Holder",
    ];
    table("Records", &heads, &rows)
}

fn line(row: &RecordRow, listed: &RecordPage) -> Markup {
    let id = row.id.to_hex();
    html! {
        tr {
            td { a href={ "records/" (id) } { code { (id[..12]) } } }
            td { span.state.(name_of(row.state)) { (name_of(row.state)) } @if row.is_stream { " stream" } }
            td { (time(row.finished.unwrap_or(row.created), Some(listed.now))) }
            td { (row.operation) }
            td { (row.scope.as_deref().unwrap_or("-")) }
            td { (row.key.as_deref().unwrap_or("-")) }
            td { (row.holder) }
        }
    }
}

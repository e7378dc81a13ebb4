//! Lists of records.

use idempotent_runtime::operate::{RecordCount, RecordPage, RecordRow};
use maud::{Markup, html};

use super::{
    act::title,
    layout::{page, table, time},
};
use crate::{
    access::Person,
    chosen::Chosen,
    links::Depth,
    record_act::RecordAct,
    search::{MANY, STATES, Search, name_of},
};

/// A page of a list, and how many records there are, where that was counted.
pub(crate) struct Listed {
    pub(crate) page: RecordPage,
    pub(crate) count: Option<RecordCount>,
}

pub(crate) fn list(
    person: &Person,
    search: &Search,
    Listed {
        page: listed,
        count,
    }: &Listed,
) -> Markup {
    let content = html! {
        (form(search))
        @if let Some(count) = count { p role="status" { (counted(*count)) } }
        @if listed.rows.is_empty() { p { "No record is like that, of " (listed.looked) " that were looked at." } }
        @else { (choice(person, listed)) }
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
            label { "Show"
                select name="show" {
                    option value="" selected[search.show != MANY] { "50" }
                    option value=(MANY) selected[search.show == MANY] { (MANY) }
                }
            }
            button type="submit" { "Search" }
        }
    }
}

fn field(name: &str, label: &str, value: &str) -> Markup {
    html! { label { (label) input type="text" name=(name) value=(value) autocomplete="off"; } }
}

fn counted(count: RecordCount) -> String {
    let RecordCount { records, .. } = count;
    match (count.is_capped, records) {
        (true, _) => {
            format!("{records} records among those that were looked at; there may be more.")
        }
        (false, 1) => "1 record.".to_owned(),
        (false, _) => format!("{records} records."),
    }
}

/// The records, and the acts on those that a person chooses. Each page begins without a choice.
fn choice(person: &Person, listed: &RecordPage) -> Markup {
    let acts = RecordAct::IN_BULK.into_iter();
    let acts: Vec<_> = acts.filter(|act| person.may(act.right())).collect();
    html! {
        @if acts.is_empty() { (records(listed, false)) }
        @else {
            form.choice method="post" action="bulk" {
                (records(listed, true))
                p.acts {
                    "With the chosen: "
                    @for act in acts {
                        button type="submit" name="act" value=(act.name()) {
                            (if act == RecordAct::Settle { "Settle as done" } else { title(act) })
                        }
                        " "
                    }
                }
            }
        }
    }
}

fn records(listed: &RecordPage, can_choose: bool) -> Markup {
    let rows = html! { @for row in &listed.rows { (line(row, listed, can_choose)) } };
    let heads = [
        "Choose",
        "Record",
        "State",
        "Since",
        "Operation",
        "Scope",
        "Key",
        "Holder",
    ];
    table("Records", &heads[usize::from(!can_choose)..], &rows)
}

fn line(row: &RecordRow, listed: &RecordPage, can_choose: bool) -> Markup {
    let id = row.id.to_hex();
    html! {
        tr {
            @if can_choose { td { (choose(row)) } }
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

/// A stream has no act for many.
fn choose(row: &RecordRow) -> Markup {
    let chosen = Chosen::new(row.id, row.version).field();
    let label = format!("Choose {}", &row.id.to_hex()[..12]);
    html! {
        @if !row.is_stream { input type="checkbox" name="record" value=(chosen) aria-label=(label); }
    }
}

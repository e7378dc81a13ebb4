//! An act: its form, and how it ended.

use idempotent_runtime::operate::Explanation;
use maud::{Markup, html};

use super::layout::page;
use crate::{access::Person, links::Depth, record_act::RecordAct, search::name_of};

/// The fields of a form, as a person filled them in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) how: String,
    pub(crate) value: String,
    pub(crate) schema: String,
    pub(crate) reason: String,
}

/// The sentence that says what an act does.
fn will(act: RecordAct) -> &'static str {
    match act {
        RecordAct::Settle => {
            "You say how this call ended. Every duplicate gets this outcome, and the call never runs again."
        }
        RecordAct::Step => {
            "You say how this step ended. The call goes on behind it with the next duplicate."
        }
        RecordAct::Number => "You say how the number ended at which this stream stops.",
        RecordAct::Resume => "It is tried again: the next call with its key takes over and runs.",
        RecordAct::Undo => {
            "It failed for good. The next call undoes its steps, and then every duplicate gets this error."
        }
        RecordAct::Invalidate => {
            "Its outcome answers no call any more: the next call with its key runs the body once more."
        }
    }
}

/// The title of an act.
pub(crate) fn title(act: RecordAct) -> &'static str {
    match act {
        RecordAct::Settle => "Settle",
        RecordAct::Resume => "Resume",
        RecordAct::Undo => "Undo",
        RecordAct::Invalidate => "Invalidate",
        RecordAct::Step => "Settle a step",
        RecordAct::Number => "Settle the number",
    }
}

/// The form of an act on a record as it was seen.
pub(crate) fn form(
    person: &Person,
    (act, story): (RecordAct, &Explanation),
    (version, token, step): (&str, &str, Option<&str>),
    (wanted, why): (&Wanted, Option<&str>),
) -> Markup {
    let row = &story.row;
    let content = html! {
        @if let Some(why) = why { p role="alert" { "Nothing was changed: " (why) } }
        p { strong { (will(act)) } }
        dl {
            dt { "Operation" } dd { (row.operation) }
            dt { "Scope" } dd { (row.scope.as_deref().unwrap_or("none")) }
            dt { "Key" } dd { (row.key.as_deref().unwrap_or("not shown")) }
            dt { "State" } dd { (name_of(row.state)) }
            dt { "Person" } dd { (person.name()) }
        }
        form.act method="post" action=(act.name()) {
            input type="hidden" name="version" value=(version);
            input type="hidden" name="token" value=(token);
            @if let Some(step) = step { input type="hidden" name="step" value=(step); }
            @if !act.ways().is_empty() { (ways(act, wanted)) }
            @if act == RecordAct::Undo || !act.ways().is_empty() { (value(act, wanted)) }
            label { "Reason, which the store keeps"
                textarea name="reason" required maxlength="4096" rows="3" { (wanted.reason) }
            }
            p {
                button type="submit" { (title(act)) }
                " " a href={ "../" (row.id.to_hex()) } { "Back to the record" }
            }
        }
    };
    page(person, Depth::Lower, title(act), &content)
}

/// The ways in which it may have ended.
fn ways(act: RecordAct, wanted: &Wanted) -> Markup {
    html! {
        fieldset {
            legend { "How did it end?" }
            @for (name, text) in act.ways() {
                label.way {
                    input type="radio" name="how" value=(name) required checked[wanted.how == *name];
                    " " (text)
                }
            }
        }
    }
}

fn value(act: RecordAct, wanted: &Wanted) -> Markup {
    html! {
        label {
            (if act == RecordAct::Undo { "The error, in JSON" } else { "The value or the error, in JSON" })
            textarea name="value" rows="4" autocomplete="off" spellcheck="false" required[act == RecordAct::Undo] { (wanted.value) }
        }
        label { "Its schema version, if the function says another one than is known here"
            input type="text" name="schema" inputmode="numeric" value=(wanted.schema) autocomplete="off";
        }
    }
}

/// An act that ended, or could not be done.
pub(crate) fn ended(person: &Person, title: &str, id: &str, text: &str, is_done: bool) -> Markup {
    let content = html! {
        @if is_done { p role="status" { (text) } } @else { p role="alert" { (text) } }
        p { a href={ "../" (id) } { "Back to the record" } }
    };
    page(person, Depth::Lower, title, &content)
}

/// The outcome of a record; `None` if it has none that can be read.
pub(crate) fn revealed(person: &Person, id: &str, outcome: Option<&str>) -> Markup {
    let content = html! {
        @match outcome {
            Some(outcome) => {
                div.wide tabindex="0" role="region" aria-label="Outcome" { pre { (outcome) } }
                p { "The observers of this process have your name." }
            }
            None => p { "This record has no outcome." },
        }
        p { a href={ "../" (id) } { "Back to the record" } }
    };
    page(person, Depth::Lower, "Outcome", &content)
}

/// A request that does not come from a form of this page, or a person without the right.
pub(crate) fn not_here(person: &Person, text: &str) -> Markup {
    page(
        person,
        Depth::Lower,
        "Not allowed",
        &html! { p role="alert" { (text) } },
    )
}

//! One record.

use idempotent_runtime::{
    OutcomeKind,
    identity::RecordId,
    operate::{Explanation, Note, OutcomeSummary, RecordRow, State, StepRow},
    record::StepState,
};
use maud::{Markup, html};

use super::{
    act::title,
    layout::{page, table, time},
};
use crate::{
    access::Person,
    links::{Depth, with_search},
    record_act::RecordAct,
    search::name_of,
    trail::Line,
};

/// The page of a record. The token is for the form that reveals its outcome.
pub(crate) fn record(
    person: &Person,
    story: &Explanation,
    (token, timeline): (Option<&str>, Option<Result<Vec<Line>, String>>),
) -> Markup {
    let content = html! {
        section { h2 { "Story" } @for sentence in &story.sentences { p { (with_code(sentence)) } } }
        (acts(person, story))
        (facts(story))
        @if let (Some(token), true) = (token, has_outcome(&story.row)) { (reveal(&story.row, token)) }
        @if !story.steps.is_empty() { (steps(person, story)) }
        @if let Some(timeline) = &timeline { (entries(timeline)) }
    };
    let title = format!("Record {}", &story.row.id.to_hex()[..12]);
    page(person, Depth::Below, &title, &content)
}

/// A sentence, of which the words in backticks are code.
fn with_code(sentence: &str) -> Markup {
    html! {
        @for (place, part) in sentence.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn has_outcome(row: &RecordRow) -> bool {
    let kind = row.outcome.map(|outcome| outcome.kind);
    matches!(kind, Some(OutcomeKind::Value | OutcomeKind::Error))
}

fn reveal(row: &RecordRow, token: &str) -> Markup {
    html! {
        form method="post" action={ (row.id.to_hex()) "/reveal" } {
            input type="hidden" name="version" value=(version(row));
            input type="hidden" name="token" value=(token);
            button type="submit" { "Reveal the outcome" }
        }
    }
}

/// Links to the acts that the person may do, and that may change this record.
fn acts(person: &Person, story: &Explanation) -> Markup {
    let row = &story.row;
    let fits = |act: &RecordAct| match act {
        RecordAct::Number => row.is_stream && row.state.needs_attention(),
        _ if row.is_stream => false,
        RecordAct::Resume => matches!(row.state, State::Parked | State::Running),
        RecordAct::Invalidate => row.state == State::Done,
        RecordAct::Undo => !matches!(row.state, State::Done | State::Released),
        _ => row.state != State::Released,
    };
    let may: Vec<_> = RecordAct::on_record()
        .filter(|act| person.may(act.right()) && fits(act))
        .collect();
    html! {
        @if !may.is_empty() {
            nav.acts aria-label="Acts" {
                @for act in may { a href={ (row.id.to_hex()) "/" (act.name()) } { (title(act)) } }
            }
        }
    }
}

fn facts(story: &Explanation) -> Markup {
    let (row, now) = (&story.row, Some(story.now));
    html! {
        section {
            h2 { "Facts" }
            dl {
                dt { "Id" } dd { code { (row.id.to_hex()) } }
                dt { "Operation" } dd { (row.operation) }
                dt { "Scope" } dd { (row.scope.as_deref().unwrap_or("none")) }
                dt { "Key" } dd { (row.key.as_deref().unwrap_or("not shown")) }
                dt { "State" } dd { (name_of(row.state)) @if row.is_stream { " stream" } }
                dt { "Attempt" } dd { (row.attempt) }
                dt { "Holder" } dd { (row.holder) }
                dt { "Created" } dd { (time(row.created, now)) }
                @if let Some(finished) = row.finished { dt { "Finished" } dd { (time(finished, now)) } }
                dt { "End of the lease" } dd { (time(row.lease_end, now)) }
                (expiry(row, story))
                dt { "Version" } dd { code { (version(row)) } }
                dt { "Outcome" } dd { (outcome(row.outcome)) }
                @if let Some(note) = &row.note { dt { "Note" } dd { (said(note)) } }
            }
        }
    }
}

/// A record that needs a person does not expire.
fn expiry(row: &RecordRow, story: &Explanation) -> Markup {
    html! {
        @if !row.state.needs_attention() {
            dt { "Expires" } dd { (time(row.expires, Some(story.now))) }
        }
    }
}

fn version(row: &RecordRow) -> String {
    format!("{:032x}", u128::from_be_bytes(row.version.to_bytes()))
}

/// The outcome itself is hidden.
fn outcome(outcome: Option<OutcomeSummary>) -> String {
    match outcome {
        None => "none".to_owned(),
        Some(it) => format!("{:?}, {} bytes", it.kind, it.bytes),
    }
}

fn said(note: &Note) -> String {
    let by = note.by.as_deref().unwrap_or("a program");
    format!("{by}: {}", note.text)
}

/// The name of a step, in digits as an id has them.
fn name(step: &StepRow) -> RecordId {
    RecordId::from_bytes(*step.name.as_bytes())
}

fn settle_step(story: &Explanation, step: &StepRow) -> Markup {
    let page = format!("{}/{}", story.row.id.to_hex(), RecordAct::Step.name());
    html! { a href=(with_search(&page, &[("step", &name(step).to_hex())])) { "Settle" } }
}

fn steps(person: &Person, story: &Explanation) -> Markup {
    let steps = &story.steps;
    let may = person.may(RecordAct::Step.right());
    let undoes = matches!(story.row.state, State::Undoing | State::Parked);
    let is_open =
        |step: &StepRow| step.state == StepState::Begun || (undoes && step.is_to_be_undone);
    html! {
        section {
            h2 { "Steps" }
            div.wide tabindex="0" role="region" aria-label="Steps" {
                table {
                    thead { tr {
                        th scope="col" { "Step" } th scope="col" { "Name" } th scope="col" { "State" }
                        th scope="col" { "Outcome" } th scope="col" { "Undo" } th scope="col" { "Note" }
                        @if may { th scope="col" { "Act" } }
                    } }
                    tbody {
                        @for step in steps {
                            tr {
                                td { (step.label) }
                                td { code { (name(step).short()) } }
                                td { (format!("{:?}", step.state).to_lowercase()) }
                                td { (outcome(step.outcome)) }
                                td { (undo(step, undoes)) }
                                td { @if let Some(note) = &step.note { (said(note)) } @else { "-" } }
                                @if may { td { @if is_open(step) { (settle_step(story, step)) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The entries of the audit.
fn entries(timeline: &Result<Vec<Line>, String>) -> Markup {
    html! {
        section {
            h2 { "Audit" }
            @match timeline {
                Err(error) => p role="alert" { "The audit did not answer: " (error) },
                Ok(lines) if lines.is_empty() => p { "The trail has no entry of this record." },
                Ok(lines) => (table_of_entries(lines)),
            }
        }
    }
}

fn table_of_entries(lines: &[Line]) -> Markup {
    let state = |state: &Option<String>| state.clone().unwrap_or_else(|| "-".to_owned());
    let rows = html! {
        @for line in lines { tr {
            td { (time(line.at, None)) }
            td { (line.kind) @if let Some(step) = &line.step { ", step " (step) } }
            td { (state(&line.states.0)) " to " (state(&line.states.1)) }
            td { (line.by) }
            td { (line.user.as_deref().unwrap_or("-")) }
            td { (line.because.as_deref().unwrap_or("-")) }
            td { @match line.batch { Some(batch) => { (batch) }, None => "not yet" } }
        } }
    };
    let heads = [
        "Time",
        "Kind",
        "State",
        "By",
        "User of the database",
        "Why",
        "Sealed in batch",
    ];
    table("Entries of the audit", &heads, &rows)
}

fn undo(step: &StepRow, undoes: bool) -> &'static str {
    match (step.is_to_be_undone, undoes) {
        (false, _) => "-",
        (true, true) => "is to be undone",
        (true, false) => "if the call fails for good",
    }
}

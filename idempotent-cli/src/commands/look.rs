//! `show`, `explain` and `steps`: one record, without a change.

use idempotent_runtime::{
    Idempotency, OutcomeKind, RawOutcome,
    operate::{Explanation, RecordRow, State, StepRow},
};

use serde_json::value::RawValue;

use crate::{
    args::RecordArgs,
    failure::Failure,
    print::{
        Screen, Table, ago, day_and_time, escaped, object_of_outcome, object_of_row,
        object_of_step, outcome_of, state_of,
    },
    record::{Found, find},
    version,
};

/// So much of a value is shown, in bytes.
const MOST_SHOWN: usize = 4_096;

pub(crate) async fn show(
    idem: &Idempotency,
    named: &RecordArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let found = find(idem, named).await?;
    let story = idem.explain(found.id).await?;
    let outcome = found
        .record
        .outcome
        .as_ref()
        .filter(|_| !story.row.is_stream);
    if screen.json {
        let mut object = object_of_row(&story.row);
        object["outcome"] = outcome.map(object_of_outcome).into();
        object["steps"] = story.steps.iter().map(object_of_step).collect();
        // A long number would be another one in a `Value`.
        let value = outcome.and_then(json_of).unwrap_or("null");
        let object = object.to_string();
        let fields = object.strip_suffix('}').unwrap_or(&object);
        screen.json_line(&format!("{fields},\"value\":{value}}}"))?;
        return Ok(());
    }
    card(&story, screen)?;
    if let Some(outcome) = outcome {
        screen.line(&shown(outcome))?;
    }
    Ok(())
}

/// Shows the facts of a record, one a line.
pub(super) fn card(story: &Explanation, screen: &Screen) -> Result<(), Failure> {
    let (row, now) = (&story.row, story.now);
    let time = |time| format!("{} ({})", day_and_time(time), ago(time, now));
    let mut table = Table::new(&["RECORD", ""]);
    let mut fact = |name: &str, value: String| table.row([name.to_owned(), value]);
    fact("id", row.id.to_hex());
    fact("operation", escaped(&row.operation));
    if let Some(scope) = &row.scope {
        fact("scope", scope.clone());
    }
    fact(
        "key",
        row.key.clone().unwrap_or_else(|| "not shown".to_owned()),
    );
    fact("state", state_of(row.state).to_owned());
    fact("attempt", row.attempt.to_string());
    fact("holder", escaped(&row.holder));
    fact("created", time(row.created));
    if let Some(finished) = row.finished {
        fact("finished", time(finished));
    }
    fact("lease end", time(row.lease_end));
    if !row.state.needs_attention() {
        fact("expires", time(row.expires));
    }
    fact("version", version::text(row.version));
    if row.outcome.is_some() {
        fact("outcome", outcome_of(row.outcome));
    }
    if let Some(note) = &row.note {
        let by = note.by.as_deref().unwrap_or("a program");
        fact("note", format!("{}: {}", escaped(by), escaped(&note.text)));
    }
    screen.table(&table)?;
    Ok(())
}

/// The bytes of an outcome as they stand, if they are JSON.
fn json_of(outcome: &RawOutcome) -> Option<&str> {
    let value: &RawValue = serde_json::from_slice(&outcome.bytes).ok()?;
    Some(value.get()).filter(|value| !value.contains(['\n', '\r']))
}

/// The value of an outcome, if it can be read.
pub(super) fn shown(outcome: &RawOutcome) -> String {
    let bytes = outcome.bytes.len();
    match json_of(outcome) {
        _ if bytes == 0 => "no value".to_owned(),
        None => format!("sealed, or no JSON, {bytes} bytes"),
        Some(_) if bytes > MOST_SHOWN => format!("{bytes} bytes of JSON: `--json` shows them"),
        Some(value) => value.to_owned(),
    }
}

pub(crate) async fn explain(
    idem: &Idempotency,
    named: &RecordArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let Found { id, .. } = find(idem, named).await?;
    let story = idem.explain(id).await?;
    if screen.json {
        let mut object = object_of_row(&story.row);
        object["sentences"] = story.sentences.clone().into();
        screen.object(&object)?;
        return Ok(());
    }
    screen.line(&story.to_string())?;
    for command in advice(&story.row) {
        screen.line(&format!("  idempotent {command} --reason TEXT"))?;
    }
    Ok(())
}

/// The commands that can be given about a record, for those who write no Rust.
fn advice(row: &RecordRow) -> Vec<String> {
    let id = &row.id.to_hex()[..12];
    let settle = || format!("settle {id} --value JSON (or --error JSON, or --done)");
    match row.state {
        State::Uncertain if row.is_stream => vec![format!(
            "sequence settle {id} --number N --value JSON (or --done, or --not-done)"
        )],
        State::Parked if row.is_stream => vec![
            format!("resume {id}"),
            format!("sequence settle {id} --number N --value JSON (or --done)"),
            format!("sequence skip {id} --number N"),
        ],
        State::Uncertain => vec![settle(), format!("undo {id} --error JSON")],
        State::Parked => vec![format!("resume {id}"), settle()],
        State::Done
            if row
                .outcome
                .is_some_and(|it| it.kind == OutcomeKind::NotReplayable) =>
        {
            vec![settle()]
        }
        State::Done if !row.is_stream => vec![format!("invalidate {id}")],
        _ => Vec::new(),
    }
}

pub(crate) async fn steps(
    idem: &Idempotency,
    named: &RecordArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let Found { id, .. } = find(idem, named).await?;
    let steps = idem.steps(id).await?;
    if steps.is_empty() {
        return Err(Failure::NotFound("the call has no steps".to_owned()));
    }
    if screen.json {
        let mut objects = steps.iter().map(object_of_step);
        objects.try_for_each(|step| screen.object(&step))?;
        return Ok(());
    }
    let mut table = Table::new(&["STEP", "STATE", "UNDO", "OUTCOME", "NOTE"]);
    for step in &steps {
        table.row(cells(step));
    }
    screen.table(&table)?;
    Ok(())
}

fn cells(step: &StepRow) -> [String; 5] {
    let note = step.note.as_deref().map(|note| {
        let by = note.by.as_deref().unwrap_or("a program");
        format!("{}: {}", escaped(by), escaped(&note.text))
    });
    [
        escaped(&step.label),
        format!("{:?}", step.state).to_lowercase(),
        if step.is_to_be_undone { "yes" } else { "" }.to_owned(),
        outcome_of(step.outcome),
        note.unwrap_or_default(),
    ]
}

/// So many outcomes are looked at.
const FEW: u32 = 5;

/// The newest outcomes of an operation that have a value, so that people see the form of one;
/// of any operation, if none is named.
pub(super) async fn outcomes_of(
    idem: &Idempotency,
    operation: Option<&str>,
) -> Result<Vec<RawOutcome>, Failure> {
    let mut done = idem.records().state(State::Done);
    if let Some(operation) = operation {
        done = done.operation(operation);
    }
    let mut outcomes = Vec::new();
    for row in done.page(FEW).await?.rows.iter().take(FEW as usize) {
        let record = idem.store().load(&row.id).await?.record;
        let outcome = record.and_then(|record| record.outcome.clone());
        let is_value = |it: &RawOutcome| !it.bytes.is_empty() && it.kind != OutcomeKind::Stream;
        outcomes.extend(outcome.filter(is_value));
    }
    Ok(outcomes)
}

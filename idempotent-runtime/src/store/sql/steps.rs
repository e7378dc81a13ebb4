//! The columns of a step, and the way to and from them. A Redis hash has the same values, packed
//! into one field.

use std::{borrow::Cow, sync::Arc};

use super::{
    Damaged, Row, Value,
    answers::corrupt,
    decode::Cells,
    encode::{bytes, note_of, outcome_of, owned},
};
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    protocol::{TAKING_STEPS, takes_steps},
    record::{AttemptId, ListedStep, Record, Step, StepName, StepNames, StepState, Version},
    store::{Snapshot, StepWrite, StoreError, StoreErrorKind},
};

/// The columns that a select lists, in this order: the version first, so that it alone tells
/// whether a step stands. In a table, `record`, the id of the record, stands before them. `life`,
/// the moment at which its life began, stands behind.
pub(crate) const STEP_COLUMNS: [&str; 15] = [
    "version",
    "name",
    "label",
    "state",
    "attempt_id",
    "on_crash",
    "fingerprint",
    "digests",
    "outcome_kind",
    "outcome_schema",
    "outcome",
    "undo_number",
    "note",
    "note_by",
    "note_of",
];

/// The assignments of a write over a step, each to what `to` says: the version first and the life
/// last.
pub(crate) fn step_set(to: impl Fn(&str) -> String) -> String {
    let columns = STEP_COLUMNS.iter().filter(|column| **column != "name");
    let set = columns.chain(&["life"]);
    let set: Vec<_> = set.map(|it| format!("{it} = {}", to(it))).collect();
    set.join(", ")
}

/// The parameters of a write, in the order in which every dialect numbers them. Number 1 is the id
/// of the record, 2 to 16 are the columns, and 17 is the version that was seen, or NULL if none
/// was.
pub(crate) fn step_written<'a>(
    call: &'a RecordId,
    seen: Option<Version>,
    step: &'a Step,
) -> [Value<'a>; 17] {
    let [kind, schema, outcome] = outcome_of(step.outcome.as_ref());
    let [note, note_by, note_of] = note_of(step.note.as_deref(), step.version);
    let fingerprint = step.fingerprint.fingerprint().as_bytes().to_vec();
    [
        bytes(call.as_bytes()),
        owned(step.version.to_bytes()),
        bytes(step.name.as_bytes()),
        Value::Text(Some(&step.label)),
        Value::Number(Some(step.state.code().into())),
        owned(step.attempt_id.to_bytes()),
        Value::Number(Some(step.on_crash.code().into())),
        Value::Bytes(Some(Cow::Owned(fingerprint))),
        Value::Bytes(Some(Cow::Owned(step.fingerprint.digests().to_bytes()))),
        kind,
        schema,
        outcome,
        Value::Number(step.undo.map(u32::into)),
        note,
        note_by,
        note_of,
        Value::Bytes(seen.map(|seen| Cow::Owned(seen.to_bytes().to_vec()))),
    ]
}

/// The states in which a record [takes steps](takes_steps) of its attempt.
pub(crate) fn taking_steps() -> String {
    let states = TAKING_STEPS.map(|state| state.code().to_string());
    states.join(", ")
}

/// How a look reads steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// With what they returned.
    Whole,
    /// Without that.
    Heads,
}

impl Reads {
    /// The columns of the table `step` that a look selects. `none` is no bytes, in the words of the
    /// dialect.
    pub(crate) fn columns(self, none: &str) -> String {
        let columns = STEP_COLUMNS.map(|column| match (self, column) {
            (Self::Heads, "outcome") => none.to_owned(),
            _ => format!("step.{column}"),
        });
        columns.join(", ")
    }
}

/// Lists steps of which only the heads were read.
pub(crate) fn heads(steps: &[Arc<Step>]) -> Vec<ListedStep> {
    steps.iter().map(|step| ListedStep::from(&**step)).collect()
}

/// The parameters of a look: the id of the record, and the first and the last name.
pub(crate) fn steps_sought<'a>(call: &'a RecordId, names: &'a StepNames) -> [Value<'a>; 3] {
    let (first, last) = (names.start().as_bytes(), names.end().as_bytes());
    [bytes(call.as_bytes()), bytes(first), bytes(last)]
}

/// Reads the steps whose [`STEP_COLUMNS`] these rows begin with.
pub(crate) fn steps(rows: &[impl Row], doing: &'static str) -> Result<Vec<Arc<Step>>, StoreError> {
    let read = rows.iter().map(|row| read(row).map(Arc::new));
    read.collect::<Result<_, _>>()
        .map_err(|it| corrupt(it, doing))
}

fn read(row: &impl Row) -> Result<Step, Damaged> {
    let mut cells = Cells::of(row, &STEP_COLUMNS);
    let version = Version::from_bytes(cells.next().array()?);
    Ok(Step {
        version,
        name: StepName::from_bytes(cells.next().array()?),
        label: cells.next().text()?.into(),
        state: cells.next().coded(StepState::from_code)?,
        attempt_id: AttemptId::from_bytes(cells.next().array()?),
        on_crash: cells.next().coded(OnCrash::from_code)?,
        fingerprint: {
            let fingerprint = Fingerprint::from_bytes(cells.next().array()?);
            let digests = cells.next();
            let read = ArgumentDigests::from_bytes(&digests.some_bytes()?);
            Fingerprinted::stored(fingerprint, read.map_err(|flaw| digests.damaged(flaw))?)
        },
        outcome: cells.outcome()?,
        undo: {
            let undo = cells.next();
            let number = undo.number()?;
            number.map(|_| undo.fits(u32::try_from)).transpose()?
        },
        note: cells.note(version)?,
    })
}

/// The reason why a step was not written; `None` if nothing is in the way any more.
pub(crate) fn step_refused(
    next: &Step,
    snapshot: Snapshot,
    stands: Option<&Arc<Step>>,
) -> Option<StepWrite> {
    let takes = |record: &Arc<Record>| takes_steps(record, next.attempt_id);
    if !snapshot.record.as_ref().is_some_and(takes) {
        return Some(StepWrite::Lost(snapshot));
    }
    stands.map(|step| StepWrite::Stands(Arc::clone(step)))
}

/// The step is not written, although nothing is in its way.
pub(crate) fn step_is_dropped(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Denied, doing)
        .with_source("nothing is written where nothing stands: a trigger or a rule drops it")
}

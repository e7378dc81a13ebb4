//! The columns of a step, and the way to and from them. A Redis hash has the same values, packed
//! into one field.

use std::{borrow::Cow, sync::Arc};

use super::{
    Damaged, Row, Value,
    answers::corrupt,
    decode::Cells,
    encode::{bytes, outcome_of, owned},
};
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    identity::RecordId,
    lease::takes_steps,
    policy::OnCrash,
    record::{AttemptId, Record, Step, StepName, StepState, Version},
    store::{Snapshot, StepWrite, StoreError, StoreErrorKind},
};

/// What a select lists, in this order: the version first, so that it alone tells whether a step
/// stands. In a table `record` stands before them and `life` behind: the id of the record, and the
/// moment at which its life began.
pub(crate) const STEP_COLUMNS: [&str; 11] = [
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
];

/// The assignments of a write over a step, each to what `to` says: the version first and the life
/// last.
pub(crate) fn step_set(to: impl Fn(&str) -> String) -> String {
    let columns = STEP_COLUMNS.iter().filter(|column| **column != "name");
    let set = columns.chain(&["life"]);
    let set: Vec<_> = set.map(|it| format!("{it} = {}", to(it))).collect();
    set.join(", ")
}

/// The parameters of a write, in the order in which every dialect numbers them: 1 is the id of the
/// record, 2 to 12 are the columns, and 13 is the version that was seen, or NULL where nothing was.
pub(crate) fn step_written<'a>(
    call: &'a RecordId,
    seen: Option<Version>,
    step: &'a Step,
) -> [Value<'a>; 13] {
    let [kind, schema, outcome] = outcome_of(step.outcome.as_ref());
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
        Value::Bytes(seen.map(|seen| Cow::Owned(seen.to_bytes().to_vec()))),
    ]
}

/// The parameters of a look: the ids of the record and of the step.
pub(crate) fn step_sought<'a>(call: &'a RecordId, name: &'a StepName) -> [Value<'a>; 2] {
    [bytes(call.as_bytes()), bytes(name.as_bytes())]
}

/// Reads the step whose [`STEP_COLUMNS`] a row begins with; `None` where there is no row, or none
/// stands.
pub(crate) fn step(
    row: Option<&impl Row>,
    doing: &'static str,
) -> Result<Option<Arc<Step>>, StoreError> {
    let read = row
        .map_or(Ok(None), read)
        .map_err(|it| corrupt(it, doing))?;
    Ok(read.map(Arc::new))
}

fn read(row: &impl Row) -> Result<Option<Step>, Damaged> {
    let mut cells = Cells::of(row, &STEP_COLUMNS);
    let version = cells.next();
    if version.bytes()?.is_none() {
        return Ok(None);
    }
    Ok(Some(Step {
        version: Version::from_bytes(version.array()?),
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
    }))
}

/// Why a step was not written; `None` where nothing is in the way any more.
pub(crate) fn step_refused(
    next: &Step,
    snapshot: Snapshot,
    stands: Option<Arc<Step>>,
) -> Option<StepWrite> {
    let takes = |record: &Arc<Record>| takes_steps(record, next.attempt_id);
    if !snapshot.record.as_ref().is_some_and(takes) {
        return Some(StepWrite::Lost(snapshot));
    }
    stands.map(StepWrite::Stands)
}

/// A step that nothing is in the way of is not written either.
pub(crate) fn step_is_dropped(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Denied, doing)
        .with_source("nothing is written where nothing stands: a trigger or a rule drops it")
}

//! Steps in the hash of their record: one field each, packed, so that one script sees both.

use std::{borrow::Cow, sync::Arc};

use redis::Value;

use super::{
    Inner,
    rows::{Cells, place},
    scripts::Text,
};
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    framing::{Hex, read_framed, write_framed},
    identity::RecordId,
    policy::OnCrash,
    record::{
        AttemptId, ListedStep, Note, OutcomeKind, RawOutcome, Step, StepName, StepNames, StepState,
        Version,
    },
    store::{StepWrite, StoreError, StoreErrorKind, sql},
};

impl Inner {
    pub(super) async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let script = &self.scripts.load_steps;
        self.look_at_steps(script, call, names).await
    }

    pub(super) async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
        let script = &self.scripts.list_steps;
        let heads = self.look_at_steps(script, call, &StepName::ALL).await?;
        Ok(heads.iter().map(|step| ListedStep::from(&**step)).collect())
    }

    async fn look_at_steps(
        &self,
        script: &Text,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        const DOING: &str = "loading steps";
        let arguments = [field(names.start()), field(names.end())];
        let answer = self.run(script, call, &arguments, DOING).await?;
        let Value::Array(cells) = answer else {
            return Err(corrupt(DOING));
        };
        let steps = cells.chunks(3).map(|it| match it {
            [Value::BulkString(field), stands @ ..] => {
                let name = name_of(field).ok_or_else(|| corrupt(DOING))?;
                unpacked(stands, name, DOING)
            }
            _ => Err(corrupt(DOING)),
        });
        steps.collect()
    }

    pub(super) async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        const DOING: &str = "writing a step";
        let arguments = [
            field(&next.name),
            seen.map_or_else(Vec::new, |seen| seen.to_bytes().to_vec())
                .into(),
            next.attempt_id.to_bytes().to_vec().into(),
            packed(next).into(),
            packed_note(next).into(),
        ];
        let script = &self.scripts.write_step;
        let answer = self.run(script, call, &arguments, DOING).await?;
        match &answer {
            Value::Array(cells) => match &cells[..] {
                [Value::Int(1), ..] => return Ok(StepWrite::Written),
                [Value::Int(2), stands @ ..] => {
                    return unpacked(stands, next.name, DOING).map(StepWrite::Stands);
                }
                _ => {}
            },
            _ => return Err(corrupt(DOING).after_a_write()),
        }
        let cells = Cells::of(answer, DOING)?.with_id(call);
        sql::snapshot(&cells, place::NOW, place::RECORD, DOING).map(StepWrite::Lost)
    }
}

fn field<'a>(name: &StepName) -> Cow<'a, [u8]> {
    format!("step:{}", Hex(name.as_bytes())).into_bytes().into()
}

fn name_of(field: &[u8]) -> Option<StepName> {
    let hex = field.strip_prefix(b"step:")?;
    let mut name = [0; 32];
    let pairs = hex.chunks_exact(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    for (byte, read) in name.iter_mut().zip(pairs) {
        *byte = read?;
    }
    (hex.len() == 64).then_some(StepName::from_bytes(name))
}

fn corrupt(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, doing)
        .with_source("a field of a step does not hold what this crate writes there")
}

/// Stands where a step has no number among those with an undo.
const NO_UNDO: u32 = u32::MAX;

/// The version comes first: the script compares it.
fn packed(step: &Step) -> Vec<u8> {
    let mut packed = step.version.to_bytes().to_vec();
    packed.extend(step.attempt_id.to_bytes());
    packed.extend([step.state.code(), step.on_crash.code()]);
    packed.extend(step.fingerprint.fingerprint().as_bytes());
    write_framed(&mut packed, step.label.as_bytes());
    write_framed(&mut packed, &step.fingerprint.digests().to_bytes());
    packed.extend(step.undo.unwrap_or(NO_UNDO).to_be_bytes());
    if let Some(outcome) = &step.outcome {
        packed.push(outcome.kind.code());
        packed.extend(outcome.schema.to_be_bytes());
        packed.extend_from_slice(&outcome.bytes);
    }
    packed
}

/// The version that the note is about comes first: it counts only beside that.
fn packed_note(step: &Step) -> Vec<u8> {
    let Some(note) = &step.note else {
        return Vec::new();
    };
    let mut packed = step.version.to_bytes().to_vec();
    packed.push(note.by.is_some().into());
    write_framed(
        &mut packed,
        note.by.as_deref().unwrap_or_default().as_bytes(),
    );
    packed.extend(note.text.as_bytes());
    packed
}

/// Reads what stands under the name of a step, and its note.
fn unpacked(
    stands: &[Value],
    name: StepName,
    doing: &'static str,
) -> Result<Arc<Step>, StoreError> {
    let [Value::BulkString(step), Value::BulkString(note)] = stands else {
        return Err(corrupt(doing));
    };
    let read = read(step, name).and_then(|step| {
        let note = read_note(note, step.version)?;
        Some(Step { note, ..step })
    });
    read.map(Arc::new).ok_or_else(|| corrupt(doing))
}

/// The note about `version`: no note if it is about another one, `None` if it cannot be read.
fn read_note(mut packed: &[u8], version: Version) -> Option<Option<Arc<Note>>> {
    let rest = &mut packed;
    if taken(rest) != Some(version.to_bytes()) {
        return Some(None);
    }
    let [has_person] = taken(rest)?;
    let by = std::str::from_utf8(read_framed(rest)?).ok()?;
    let note = Note {
        by: (has_person != 0).then(|| by.into()),
        text: std::str::from_utf8(rest).ok()?.into(),
    };
    Some(Some(Arc::new(note)))
}

fn read(mut packed: &[u8], name: StepName) -> Option<Step> {
    let rest = &mut packed;
    let version = Version::from_bytes(taken(rest)?);
    let attempt_id = AttemptId::from_bytes(taken(rest)?);
    let [state, on_crash] = taken(rest)?;
    let fingerprint = Fingerprint::from_bytes(taken(rest)?);
    let label = std::str::from_utf8(read_framed(rest)?).ok()?;
    let digests = ArgumentDigests::from_bytes(read_framed(rest)?).ok()?;
    let undo = Some(u32::from_be_bytes(taken(rest)?)).filter(|undo| *undo != NO_UNDO);
    let outcome = match **rest {
        [] => None,
        [kind, ..] => {
            let [_, schema @ ..] = taken::<5>(rest)?;
            Some(RawOutcome {
                kind: OutcomeKind::from_code(kind)?,
                schema: u32::from_be_bytes(schema),
                bytes: rest.to_vec().into(),
            })
        }
    };
    Some(Step {
        name,
        label: label.into(),
        version,
        state: StepState::from_code(state)?,
        attempt_id,
        on_crash: OnCrash::from_code(on_crash)?,
        fingerprint: Fingerprinted::stored(fingerprint, digests),
        outcome,
        undo,
        note: None,
    })
}

/// Takes bytes off the front; `None` where there are too few.
fn taken<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

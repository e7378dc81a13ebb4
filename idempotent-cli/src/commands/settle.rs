//! `settle` and `undo`: a person says how a call ended.

use std::collections::BTreeSet;

use idempotent_runtime::{
    Idempotency, OutcomeKind, RawOutcome, Settle, operate::State, record::Record,
};
use serde_json::Value;

use super::{
    act::{Agreed, Asked, ask, done},
    look::{outcomes_of, shown},
    said::Said,
};
use crate::{
    args::{RecordArgs, SettleArgs, SignArgs, UndoArgs},
    failure::Failure,
    print::{Screen, aside},
    record::find,
};

pub(crate) async fn settle(
    idem: &Idempotency,
    args: &SettleArgs,
    is_given: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    let said = [
        (&args.value, OutcomeKind::Value),
        (&args.error, OutcomeKind::Error),
    ];
    let said = said
        .into_iter()
        .find_map(|(text, kind)| Some((text.as_deref()?, kind)));
    let Some((text, kind)) = said else {
        return settle_as_done(idem, args, screen).await;
    };
    let value = Said::read(text, is_given)?;
    let schema = form(idem, (&args.record, args.version), &args.sign, screen).await?;
    let will = match kind {
        OutcomeKind::Error => {
            format!("It failed for good. Every duplicate will get this error: {value}")
        }
        _ => format!("It happened. Every duplicate will get this value: {value}"),
    };
    let stands = |it: &Record| it.state == State::Done && value.is_that_of(it, kind, schema);
    let asked = ask(idem, (&args.record, &args.sign), (&will, stands), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let settle = signed(idem, &agreed, &args.sign).await?;
    let settle = settle.version(schema);
    match kind {
        OutcomeKind::Error => settle.with_error(&value).await?,
        _ => settle.with_value(&value).await?,
    }
    done(&agreed, "every duplicate gets this outcome", screen);
    Ok(())
}

async fn settle_as_done(
    idem: &Idempotency,
    args: &SettleArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let will = "It happened, and its value is not known: every duplicate will be refused.";
    let stands = |it: &Record| {
        let kind = it.outcome.as_ref().map(|outcome| outcome.kind);
        it.state == State::Done && kind == Some(OutcomeKind::NotReplayable)
    };
    let asked = ask(idem, (&args.record, &args.sign), (will, stands), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    signed(idem, &agreed, &args.sign).await?.as_done().await?;
    done(&agreed, "every duplicate is refused", screen);
    Ok(())
}

pub(crate) async fn undo(
    idem: &Idempotency,
    args: &UndoArgs,
    is_given: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    let error = Said::read(&args.error, is_given)?;
    let schema = form(idem, (&args.record, args.version), &args.sign, screen).await?;
    let will = format!(
        "It failed for good. The next call undoes its steps, and then every duplicate gets this error: {error}"
    );
    let stands = |it: &Record| {
        let is_undone = matches!(it.state, State::Undoing | State::Done);
        is_undone && error.is_that_of(it, OutcomeKind::Error, schema)
    };
    let asked = ask(idem, (&args.record, &args.sign), (&will, stands), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let settle = signed(idem, &agreed, &args.sign).await?;
    settle.version(schema).undo(&error).await?;
    done(&agreed, "the next call undoes the steps", screen);
    Ok(())
}

async fn signed<'a>(
    idem: &'a Idempotency,
    agreed: &Agreed,
    sign: &SignArgs,
) -> Result<Settle<'a>, Failure> {
    let row = &agreed.story.row;
    let settle = idem.settle_id(row.id).await?.at_version(row.version);
    let settle = settle.by(agreed.by.as_str());
    Ok(settle.because(sign.signature.reason.as_str()))
}

/// The schema version of the value, by the newest outcomes of the operation. One is shown.
async fn form(
    idem: &Idempotency,
    (record, version): (&RecordArgs, Option<u32>),
    sign: &SignArgs,
    screen: &Screen,
) -> Result<u32, Failure> {
    let found = find(idem, record).await?;
    let operation = &found.record.subject.operation;
    let newest = outcomes_of(idem, Some(operation)).await?;
    newest.iter().try_for_each(is_json)?;
    if newest.is_empty() {
        are_json(idem).await?;
    }
    if let Some(shows) = newest.first().filter(|_| !screen.json) {
        let shown = shown(shows);
        aside(&format!("The newest outcome of `{operation}`: {shown}"));
    }
    let schemas: BTreeSet<_> = newest.iter().map(|it| it.schema).collect();
    match (version, schemas.first()) {
        (Some(version), _) => Ok(version),
        (None, Some(schema)) if schemas.len() == 1 => Ok(*schema),
        (None, _) if sign.signature.yes => Err(Failure::Usage(
            "the newest outcomes of this operation do not show one version: say `--version N`, which is 0 unless the function says `version`".to_owned(),
        )),
        (None, _) => Ok(newest.first().map_or(0, |it| it.schema)),
    }
}

/// Refuses to write JSON into a store whose outcomes are something else: one codec writes all of
/// them.
pub(super) async fn are_json(idem: &Idempotency) -> Result<(), Failure> {
    outcomes_of(idem, None).await?.iter().try_for_each(is_json)
}

/// Refuses to write JSON where outcomes are something else.
fn is_json(newest: &RawOutcome) -> Result<(), Failure> {
    match serde_json::from_slice::<Value>(&newest.bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Refused(
            "the outcomes in this store are sealed, or no JSON: a value in JSON could not be read. \
             Settle it in a program that has the handle, by `idempotent_cli::run(idem)`"
                .to_owned(),
        )),
    }
}

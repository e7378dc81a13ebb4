//! `settle` and `undo`: a person says how a call ended.

use std::collections::BTreeSet;

use idempotent_runtime::{Idempotency, OutcomeKind, RawOutcome, Settle};
use serde_json::Value;

use super::{
    act::{Agreed, Asked, ask, done},
    look::{outcomes_of, shown},
};
use crate::{
    args::{SettleArgs, SignArgs, UndoArgs},
    failure::Failure,
    print::{Screen, aside},
    record::find,
};

pub(crate) async fn settle(
    idem: &Idempotency,
    args: &SettleArgs,
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
    let value = json(text)?;
    let schema = form(idem, args, screen).await?;
    let will = match kind {
        OutcomeKind::Error => {
            format!("It failed for good. Every duplicate will get this error: {value}")
        }
        _ => format!("It happened. Every duplicate will get this value: {value}"),
    };
    let asked = ask(idem, (&args.record, &args.sign), &will, screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let settle = signed(idem, &agreed, &args.sign).await?;
    let settle = settle.version(schema);
    match kind {
        OutcomeKind::Error => settle.with_error(&value).await?,
        _ => settle.with_value(&value).await?,
    }
    done(&agreed, "every duplicate gets this outcome", screen)
}

async fn settle_as_done(
    idem: &Idempotency,
    args: &SettleArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let will = "It happened, and its value is not known: every duplicate will be refused.";
    let asked = ask(idem, (&args.record, &args.sign), will, screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    signed(idem, &agreed, &args.sign).await?.as_done().await?;
    done(&agreed, "every duplicate is refused", screen)
}

pub(crate) async fn undo(
    idem: &Idempotency,
    args: &UndoArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let error = json(&args.error)?;
    let will = format!(
        "It failed for good. The next call undoes its steps, and then every duplicate gets this error: {error}"
    );
    let asked = ask(idem, (&args.record, &args.sign), &will, screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let settle = signed(idem, &agreed, &args.sign).await?;
    let settle = settle.version(args.version.unwrap_or_default());
    settle.undo(&error).await?;
    done(&agreed, "the next call undoes the steps", screen)
}

async fn signed<'a>(
    idem: &'a Idempotency,
    agreed: &Agreed,
    sign: &SignArgs,
) -> Result<Settle<'a>, Failure> {
    let row = &agreed.story.row;
    let settle = idem.settle_id(row.id).await?.at_version(row.version);
    Ok(settle
        .by(agreed.by.as_str())
        .because(sign.sign.reason.as_str()))
}

pub(super) fn json(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::Usage(format!(
            "the value is no JSON ({error}): a text has quotes of its own, such as '\"receipt-99\"'"
        ))
    })
}

/// The schema version of the value, by the newest outcomes of the operation. One is shown.
async fn form(idem: &Idempotency, args: &SettleArgs, screen: &Screen) -> Result<u32, Failure> {
    let found = find(idem, &args.record).await?;
    let row = idem.explain(found.id).await?.row;
    let newest = outcomes_of(idem, Some(&row.operation)).await?;
    newest.iter().try_for_each(is_json)?;
    if newest.is_empty() {
        // One codec writes all outcomes of a store.
        outcomes_of(idem, None)
            .await?
            .iter()
            .try_for_each(is_json)?;
    }
    if let Some(shows) = newest.first().filter(|_| !screen.json) {
        let shown = shown(shows);
        aside(&format!(
            "The newest outcome of `{}`: {shown}",
            row.operation
        ));
    }
    let schemas: BTreeSet<_> = newest.iter().map(|it| it.schema).collect();
    match (args.version, schemas.first()) {
        (Some(version), _) => Ok(version),
        (None, Some(schema)) if schemas.len() == 1 => Ok(*schema),
        (None, _) if args.sign.sign.yes => Err(Failure::Usage(
            "the newest outcomes of this operation do not show one version: say `--version N`, which is 0 unless the function says `version`".to_owned(),
        )),
        (None, _) => Ok(newest.first().map_or(0, |it| it.schema)),
    }
}

/// Refuses to write JSON where outcomes are something else.
fn is_json(newest: &RawOutcome) -> Result<(), Failure> {
    match serde_json::from_slice::<Value>(&newest.bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Refused(
            "the outcomes in this store are sealed, or no JSON: a value in JSON could not be read. \
             Settle it in a program that has the handle, by `idempotent_cli::run(idem)`".to_owned(),
        )),
    }
}

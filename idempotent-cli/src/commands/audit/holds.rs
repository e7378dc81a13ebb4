//! `audit hold`, `audit release` and `audit holds`.

use idempotent_audit::{Audit, Hold};
use serde_json::json;

use super::time;
use crate::{
    args::{HoldArgs, ReleaseArgs, Signature},
    commands::act::{confirm, who},
    failure::Failure,
    print::{Screen, Table, aside, day_and_time, escaped},
};

pub(super) async fn hold(audit: &Audit, args: &HoldArgs, screen: &Screen) -> Result<(), Failure> {
    let (hold, by) = (held(args)?, who(&args.sign)?);
    ask(
        &args.sign,
        &format!("No pruning touches the entries of {}.", shown(&hold)),
    )?;
    let act = audit.hold(hold).by(by).because(&*args.sign.reason);
    act.await?;
    screen.done("no pruning touches these entries", &json!({ "held": true }));
    Ok(())
}

pub(super) async fn release(
    audit: &Audit,
    args: &ReleaseArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let by = who(&args.sign)?;
    let holds = audit.holds().await?;
    let Some(held) = holds.iter().find(|held| held.number == args.number) else {
        return Err(Failure::NotFound("no such hold stands".to_owned()));
    };
    let shown = shown(&held.hold);
    ask(
        &args.sign,
        &format!("The next pruning may take the entries of {shown}."),
    )?;
    let act = audit.release(args.number).by(by);
    act.because(&*args.sign.reason).await?;
    screen.done("the next pruning may take them", &json!({ "held": false }));
    Ok(())
}

pub(super) async fn list(audit: &Audit, screen: &Screen) -> Result<(), Failure> {
    let holds = audit.holds().await?;
    if holds.is_empty() {
        return Err(Failure::NotFound("nothing is held".to_owned()));
    }
    let mut table = Table::new(&["NUMBER", "HELD", "SINCE", "BY", "USER", "REASON"]);
    for held in &holds {
        let signed = &held.signed;
        if screen.json {
            screen.object(&json!({
                "number": held.number,
                "held": shown(&held.hold),
                "since": signed.at.to_string(),
                "by": signed.by,
                "db_user": signed.db_user,
                "reason": signed.because,
            }))?;
        }
        let text = |it: &Option<String>| escaped(it.as_deref().unwrap_or("-"));
        table.row([
            held.number.to_string(),
            escaped(&shown(&held.hold)),
            day_and_time(signed.at),
            text(&signed.by),
            text(&signed.db_user),
            escaped(&signed.because),
        ]);
    }
    if !screen.json {
        screen.table(&table)?;
    }
    Ok(())
}

fn ask(sign: &Signature, will: &str) -> Result<(), Failure> {
    if sign.yes {
        return Ok(());
    }
    aside(will);
    confirm()
}

fn held(args: &HoldArgs) -> Result<Hold, Failure> {
    if let Some(id) = &args.record {
        let id = id.to_ascii_lowercase().parse();
        return Ok(Hold::Record(
            id.map_err(|error| Failure::Usage(format!("{error}")))?,
        ));
    }
    if let Some(operation) = &args.operation {
        return Ok(Hold::Operation(operation.clone()));
    }
    let (Some(from), Some(to)) = (&args.written_from, &args.written_to) else {
        return Err(Failure::Usage(
            "name a record, an operation or a time".to_owned(),
        ));
    };
    Ok(Hold::Times(time(from)?, time(to)?))
}

fn shown(hold: &Hold) -> String {
    match hold {
        Hold::Record(id) => format!("the record {}", id.to_hex()),
        Hold::Operation(operation) => format!("the operation {operation}"),
        Hold::Times(from, to) => format!("{from} to {to}"),
        _ => "entries that this build does not know".to_owned(),
    }
}

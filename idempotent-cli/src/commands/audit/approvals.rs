//! `audit propose`, `audit approve` and `audit proposals`.

use idempotent_audit::{Audit, Proposed};
use idempotent_runtime::Idempotency;
use serde_json::json;

use crate::{
    args::{ApproveArgs, ProposeArgs},
    commands::{
        act::{confirm, unshown, who},
        look::card,
    },
    failure::Failure,
    print::{Screen, Table, day_and_time, escaped},
    record::find,
};

pub(super) async fn propose(
    idem: &Idempotency,
    audit: &Audit,
    args: &ProposeArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let by = who(&args.sign)?;
    let proposal = args.proposal.trim().parse();
    let proposal: idempotent_audit::Proposal =
        proposal.map_err(|error| Failure::Usage(format!("{error}")))?;
    let found = find(idem, &args.record).await?;
    let story = idem.explain(found.id).await?;
    if !proposal.is_of(story.row.version) {
        return Err(Failure::Refused(
            "the record has moved since: try the act again, and propose what is refused then"
                .to_owned(),
        ));
    }
    if !screen.json {
        card(&story, screen).map_err(unshown)?;
    }
    if !args.sign.yes {
        confirm()?;
    }
    let act = audit.propose(found.id, proposal.clone()).by(by);
    act.because(&*args.sign.reason).await?;
    let proposals = audit.proposals().await?;
    let own = proposals.iter().rev().find(|it| it.proposal == proposal);
    let number = own.map_or(0, |it| it.number);
    let what =
        format!("another person may say `idempotent audit approve {number}` within 24 hours");
    screen.done(&what, &json!({ "proposed": number }));
    Ok(())
}

pub(super) async fn approve(
    idem: &Idempotency,
    audit: &Audit,
    args: &ApproveArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let by = who(&args.sign)?;
    let proposals = audit.proposals().await?;
    let Some(proposed) = proposals.iter().find(|it| it.number == args.number) else {
        return Err(Failure::NotFound("no such proposal stands".to_owned()));
    };
    let story = idem.explain(proposed.record).await?;
    if !proposed.proposal.is_of(story.row.version) {
        return Err(Failure::Refused(
            "the record has moved since, so the proposal has ended".to_owned(),
        ));
    }
    if !screen.json {
        let said = format!(
            "{} proposes: {}",
            person(proposed),
            escaped(&proposed.signed.because)
        );
        let shown = card(&story, screen).and_then(|()| {
            let wanted = format!("The end that is wanted: {}", proposed.proposal);
            let mut lines = ["", &said, &wanted].into_iter();
            lines.try_for_each(|line| Ok(screen.line(line)?))
        });
        shown.map_err(unshown)?;
    }
    if !args.sign.yes {
        confirm()?;
    }
    let approve = audit.approve(args.number, &by).await?;
    approve.because(&*args.sign.reason).await?;
    screen.done(
        "any of you can act now",
        &json!({ "approved": args.number }),
    );
    Ok(())
}

pub(super) async fn list(audit: &Audit, screen: &Screen) -> Result<(), Failure> {
    let proposals = audit.proposals().await?;
    if proposals.is_empty() {
        return Err(Failure::NotFound("no proposal stands".to_owned()));
    }
    let mut table = Table::new(&["NUMBER", "RECORD", "BY", "REASON", "APPROVED", "UNTIL"]);
    for it in &proposals {
        if screen.json {
            screen.object(&json!({
                "number": it.number,
                "id": it.record.to_hex(),
                "proposal": it.proposal.to_string(),
                "by": it.signed.by,
                "db_user": it.signed.db_user,
                "reason": it.signed.because,
                "approvals": it.approved.len(),
                "until": it.until.to_string(),
            }))?;
        }
        table.row([
            it.number.to_string(),
            it.record.short(),
            person(it),
            escaped(&it.signed.because),
            it.approved.len().to_string(),
            day_and_time(it.until),
        ]);
    }
    if !screen.json {
        screen.table(&table)?;
    }
    Ok(())
}

/// The person who proposes: the user of the database is proven, and the name is claimed.
fn person(proposed: &Proposed) -> String {
    let signed = &proposed.signed;
    let by = signed.by.as_deref().unwrap_or("a person without a name");
    match &signed.db_user {
        Some(user) => escaped(&format!("{by}, as the user {user}")),
        None => escaped(by),
    }
}

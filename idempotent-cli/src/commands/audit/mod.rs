//! `audit`: the trail of the records is sealed, verified, exported and pruned.

mod approvals;
mod holds;

use std::{fs::File, io::BufWriter, path::Path, sync::Arc};

use idempotent_audit::{Anchor, Audit, AuditBuilder, Report, Verify};
use idempotent_runtime::Time;
use indicatif::ProgressBar;
use serde_json::json;

use super::act::confirm;
use crate::{
    args::{AuditCommand, ExportArgs, PartArgs, PruneArgs, VerifyArgs},
    failure::Failure,
    open::{Opened, Place},
    print::{Screen, aside, progress},
};

pub(crate) async fn run(
    opened: &Opened,
    command: &AuditCommand,
    screen: &Screen,
) -> Result<(), Failure> {
    let audit = built(opened)?.connect().await?;
    match command {
        AuditCommand::Verify(args) => verify(&audit, args, screen).await,
        AuditCommand::Export(args) => export(&audit, args, screen).await,
        AuditCommand::Anchor => anchor(&audit, screen).await,
        AuditCommand::Seal => seal(&audit, screen).await,
        AuditCommand::Hold(args) => holds::hold(&audit, args, screen).await,
        AuditCommand::Release(args) => holds::release(&audit, args, screen).await,
        AuditCommand::Holds => holds::list(&audit, screen).await,
        AuditCommand::Prune(args) => prune(&audit, args, screen).await,
        AuditCommand::Propose(args) => approvals::propose(&opened.idem, &audit, args, screen).await,
        AuditCommand::Approve(args) => approvals::approve(&opened.idem, &audit, args, screen).await,
        AuditCommand::Proposals => approvals::list(&audit, screen).await,
    }
}

/// The audit of the store that is open.
pub(super) fn built(opened: &Opened) -> Result<AuditBuilder, Failure> {
    let audit = match &opened.place {
        Place::Sqlite(_, pool) => Audit::sqlite(pool.clone()),
        Place::Postgres(_, pool) => Audit::postgres(pool.clone()),
        Place::MySql(_, pool) => Audit::mysql(pool.clone()),
        Place::Redis(_) => return Err(Failure::Usage("Redis has no audit".to_owned())),
        Place::Given => {
            return Err(Failure::Usage(
                "an audit is reached by its URL: use the program `idempotent`".to_owned(),
            ));
        }
    };
    Ok(match &opened.prefix {
        Some(prefix) => audit.table_prefix(prefix),
        None => audit,
    })
}

/// A time as a person says it: a day, or a moment.
fn time(said: &str) -> Result<Time, Failure> {
    let moment = match said.len() {
        10 => format!("{said}T00:00:00Z"),
        _ => said.to_owned(),
    };
    let moment: jiff::Timestamp = moment.parse().map_err(|error| {
        Failure::Usage(format!(
            "`{said}` is no time such as `2026-11-30` or `2026-11-30T07:39:33Z`: {error}"
        ))
    })?;
    Ok(Time::from_micros(moment.as_microsecond()))
}

/// The part of the trail that is asked for, and how far it was read.
fn part<'a>(
    audit: &'a Audit,
    args: &PartArgs,
    progress: &ProgressBar,
) -> Result<Verify<'a>, Failure> {
    let shown = progress.clone();
    let tell = move |batches| shown.set_message(format!("{batches} batches were read"));
    let mut part = audit.verify().on_progress(tell);
    if let Some(from) = args.from {
        part = part.from_batch(from);
    }
    if let Some(to) = args.to {
        part = part.to_batch(to);
    }
    if let Some(from) = &args.sealed_from {
        part = part.sealed_from(time(from)?);
    }
    if let Some(to) = &args.sealed_to {
        part = part.sealed_to(time(to)?);
    }
    Ok(part)
}

async fn verify(audit: &Audit, args: &VerifyArgs, screen: &Screen) -> Result<(), Failure> {
    let progress = progress();
    let mut part = part(audit, &args.part, &progress)?;
    if let Some(file) = &args.anchors {
        part = part.anchors(anchors(file)?);
    }
    let verified = part.run().await;
    progress.finish_and_clear();
    let report = verified?;
    show(&report, args.anchors.is_some(), screen)?;
    match &report.divergence {
        None => Ok(()),
        Some(found) => Err(Failure::Failed(format!("the trail does not hold: {found}"))),
    }
}

fn anchors(file: &Path) -> Result<Vec<Anchor>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", file.display())))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let anchors: Vec<Anchor> = lines
        .map(|line| {
            let anchor = line.trim().parse();
            anchor.map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
        })
        .collect::<Result<_, _>>()?;
    match anchors.is_empty() {
        true => Err(Failure::Usage(format!("{} has no anchor", file.display()))),
        false => Ok(anchors),
    }
}

fn show(report: &Report, has_anchors: bool, screen: &Screen) -> Result<(), Failure> {
    let Report {
        batches,
        entries,
        pruned,
        anchored,
        changeable_by,
        divergence,
        ..
    } = report;
    if screen.json {
        screen.object(&json!({
            "batches": batches,
            "entries": entries,
            "pruned": pruned,
            "anchored": anchored,
            "changeable_by": changeable_by,
            "divergence": divergence.as_ref().map(ToString::to_string),
        }))?;
        return Ok(());
    }
    let gone = match pruned {
        0 => String::new(),
        _ => format!(", {pruned} of them pruned"),
    };
    screen.line(&format!(
        "{entries} entries in {batches} batches hold{gone}."
    ))?;
    if has_anchors {
        screen.line(&format!("Anchors cover the batches up to {anchored}."))?;
    }
    if let Some(user) = changeable_by {
        aside(&format!(
            "The application can change this trail, as {user}. Keep anchors where it cannot change them."
        ));
    }
    Ok(())
}

async fn export(audit: &Audit, args: &ExportArgs, screen: &Screen) -> Result<(), Failure> {
    let progress = progress();
    let part = part(audit, &args.part, &progress)?;
    let new = |file: &Path| {
        File::create_new(file).map_err(|error| {
            Failure::Failed(format!("{} cannot be written: {error}", file.display()))
        })
    };
    let mut beside = args.file.clone().into_os_string();
    beside.push(".manifest");
    let beside = Path::new(&beside);
    let (lines, manifest) = (new(&args.file)?, new(beside)?);
    let mut lines = BufWriter::new(lines);
    let exported = part.export(&mut lines).await;
    progress.finish_and_clear();
    let exported = exported?;
    let written = lines
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    written?.sync_all()?;
    std::io::Write::write_all(&mut &manifest, exported.to_json().as_bytes())?;
    manifest.sync_all()?;
    let (entries, batches) = (exported.entries, exported.batches);
    match screen.json {
        true => screen.object(&json!({ "entries": entries, "batches": batches }))?,
        false => screen.line(&format!(
            "{entries} entries in {batches} batches were written."
        ))?,
    }
    Ok(())
}

async fn anchor(audit: &Audit, screen: &Screen) -> Result<(), Failure> {
    let anchor = audit.anchor().await?;
    let anchor = anchor.ok_or_else(|| Failure::NotFound("nothing was sealed yet".to_owned()))?;
    match screen.json {
        true => screen.object(&json!({ "anchor": anchor.to_string() }))?,
        false => screen.line(&anchor.to_string())?,
    }
    Ok(())
}

async fn seal(audit: &Audit, screen: &Screen) -> Result<(), Failure> {
    let sealed = audit.seal().await?;
    match screen.json {
        true => screen.object(&json!({ "sealed": sealed }))?,
        false => screen.line(&format!("{sealed} entries were sealed."))?,
    }
    Ok(())
}

async fn prune(audit: &Audit, args: &PruneArgs, screen: &Screen) -> Result<(), Failure> {
    if !args.yes {
        let keep = &args.keep;
        aside(&format!(
            "Entries that were sealed more than {keep} ago lose their fields for good."
        ));
        confirm()?;
    }
    let progress = progress().with_message("pruning");
    let pruned = audit.prune().keep(args.keep.as_str()).run().await;
    progress.finish_and_clear();
    let pruned = pruned?;
    let (entries, batches) = (pruned.entries, pruned.batches);
    match screen.json {
        true => screen.object(&json!({ "entries": entries, "batches": batches }))?,
        false => screen.line(&format!(
            "{entries} entries lost their fields, and {batches} batches are gone."
        ))?,
    }
    Ok(())
}

/// The finding of `doctor` about the trail; `None` if there is none.
pub(super) async fn looked(opened: &Opened) -> Option<Result<Option<String>, Failure>> {
    let prefix = opened.prefix.as_deref().unwrap_or("idempotent_");
    let builder = built(opened).ok()?;
    match builder.connect().await {
        Err(idempotent_audit::AuditError::Broken { object, .. })
            if object.ends_with(&format!("{prefix}audit")) =>
        {
            None
        }
        Err(error) => Some(Err(error.into())),
        Ok(audit) => Some(Arc::new(audit).changeable_by().await.map_err(Failure::from)),
    }
}

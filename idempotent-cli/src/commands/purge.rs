//! `purge`: records that have expired.

use indicatif::ProgressBar;

use crate::{
    failure::Failure,
    open::{Opened, Place},
    print::{Screen, progress},
};

/// How many records one statement deletes.
const BATCH: u32 = 1_000;

pub(crate) async fn purge(opened: &Opened, screen: &Screen) -> Result<(), Failure> {
    let progress = progress();
    let mut deleted = 0;
    let purged = tokio::select! {
        // The signal first: from then on it is heard.
        biased;
        _ = tokio::signal::ctrl_c() => None,
        purged = delete(opened, &mut deleted, &progress) => Some(purged),
    };
    progress.finish_and_clear();
    match purged {
        Some(purged) => purged?,
        None => {
            return Err(Failure::Failed(format!(
                "stopped: {deleted} records or some more are deleted, and the rest is for the next purge"
            )));
        }
    }
    match screen.json {
        true => screen.object(&serde_json::json!({ "deleted": deleted }))?,
        false => screen.line(&format!("{deleted} records were deleted."))?,
    }
    Ok(())
}

async fn delete(opened: &Opened, deleted: &mut u64, progress: &ProgressBar) -> Result<(), Failure> {
    let idem = &opened.idem;
    let keep = match (&opened.place, opened.audit_retention) {
        (Place::Given, _) => {
            *deleted = idem.purge().await?;
            return Ok(());
        }
        (_, Some(keep)) => keep,
        (_, None) => {
            return Err(Failure::Usage(
                "say `--audit-retention` as the application does, and `0s` if it does not: what it keeps for an audit would be deleted".to_owned(),
            ));
        }
    };
    loop {
        let batch = idem.store().purge(BATCH, keep).await?;
        *deleted += batch;
        progress.set_message(format!("{deleted} records are deleted"));
        if batch < u64::from(BATCH) {
            return Ok(());
        }
    }
}

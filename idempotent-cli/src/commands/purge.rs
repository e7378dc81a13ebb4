//! `purge`: records that have expired.

use std::time::Duration;

use idempotent_runtime::Idempotency;
use indicatif::ProgressBar;

use crate::{failure::Failure, print::Screen};

pub(crate) async fn purge(idem: &Idempotency, screen: &Screen) -> Result<(), Failure> {
    // It draws itself on a terminal alone.
    let progress = ProgressBar::new_spinner().with_message("deleting records that have expired");
    progress.enable_steady_tick(Duration::from_millis(200));
    let purged = tokio::select! {
        purged = idem.purge() => purged,
        _ = tokio::signal::ctrl_c() => {
            progress.finish_and_clear();
            return Err(Failure::Failed(
                "stopped: what was deleted by now stays deleted, and the rest is for the next purge".to_owned(),
            ));
        }
    };
    progress.finish_and_clear();
    let deleted = purged?;
    match screen.json {
        true => screen.object(&serde_json::json!({ "deleted": deleted }))?,
        false => screen.line(&format!("{deleted} records were deleted."))?,
    }
    Ok(())
}

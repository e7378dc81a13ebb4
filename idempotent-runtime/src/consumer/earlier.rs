//! Looks at what stands of a message before its handler may run.

use super::{
    disposition::{DeadLetterReason, Disposition, Judge},
    settings::Settings,
};
use crate::{
    error::Error,
    identity::RecordId,
    key::Key,
    record::{OutcomeKind, State},
};

/// How the record of a message stands.
enum Standing {
    Done,
    Running,
    Nothing,
}

/// Tells what is to be done with a message whose handler is not to run; nothing where it may. Its
/// keys are those of the redrives before it, and then its own. `beyond` says that it was delivered
/// too often.
pub(super) async fn earlier(
    settings: &Settings,
    judge: &Judge<'_>,
    keys: &[Key],
    beyond: bool,
) -> Option<Disposition> {
    let looked_at = match (beyond, keys) {
        (true, keys) => keys,
        (false, [before @ .., _own]) => before,
        (false, []) => keys,
    };
    for key in looked_at {
        match standing(settings, key).await {
            Ok(Standing::Done) => return Some(Disposition::Ack { replayed: true }),
            Ok(Standing::Running) => return Some(judge.retry(None)),
            Ok(Standing::Nothing) => {}
            Err(error) => return Some(judge.retry(Some(error.into()))),
        }
    }
    beyond.then_some(Disposition::DeadLetter {
        reason: DeadLetterReason::Exhausted,
        error: None,
    })
}

async fn standing(settings: &Settings, key: &Key) -> Result<Standing, Error> {
    let scope = settings.scope.as_ref().map(Key::framed);
    let id = RecordId::new(&settings.operation, scope, key.framed());
    let snapshot = settings.handle.store().load(&id).await?;
    let now = snapshot.now;
    let Some(record) = snapshot.record.filter(|record| !record.is_expired(now)) else {
        return Ok(Standing::Nothing);
    };
    Ok(match (record.state, &record.outcome) {
        (State::Running, _) if !record.lease_is_over(now) => Standing::Running,
        (State::Done, Some(outcome)) if outcome.kind != OutcomeKind::Error => Standing::Done,
        _ => Standing::Nothing,
    })
}

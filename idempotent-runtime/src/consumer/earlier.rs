//! Looks at what stands of a message before its handler may run.

use super::{
    disposition::{Disposition, Judge},
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

/// Tells what is to be done with a message where one of the redrives before it, known by these keys,
/// runs or had its effect.
pub(super) async fn earlier(
    settings: &Settings,
    judge: &Judge<'_>,
    keys: &[Key],
) -> Option<Disposition> {
    for key in keys {
        match standing(settings, key).await {
            Ok(Standing::Done) => return Some(Disposition::Ack { replayed: true }),
            Ok(Standing::Running) => return Some(judge.retry(None)),
            Ok(Standing::Nothing) => {}
            Err(error) => return Some(judge.retry(Some(error.into()))),
        }
    }
    None
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

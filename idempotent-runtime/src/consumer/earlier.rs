//! Looks at what stands of a message before its handler may run.

use std::sync::Arc;

use super::{
    disposition::{DeadLetterReason, Disposition, Judge},
    settings::Settings,
};
use crate::{
    error::Error,
    identity::RecordId,
    key::Key,
    policy::OnCrash,
    record::{OutcomeKind, State, Subject},
};

/// How the record of a message stands.
enum EarlierRecord {
    Done {
        same_payload: bool,
    },
    Running,
    /// It is unknown whether its effect stands.
    Uncertain,
    /// Steps of it stand, and an operator is to decide whether they are undone.
    HalfDone,
    Nothing,
}

/// Tells what is to be done with a message where one of the redrives before it, known by these
/// keys, runs or had its effect.
pub(super) async fn earlier(
    judge: &Judge<'_>,
    keys: &[Key],
    subject: Option<Arc<Subject>>,
) -> Option<Disposition> {
    for key in keys {
        let dead = |reason| {
            let error = None;
            Some(Disposition::DeadLetter { reason, error })
        };
        match standing(judge.settings, key, subject.as_deref()).await {
            Ok(EarlierRecord::Done { same_payload: true }) => {
                return Some(Disposition::Ack { replayed: true });
            }
            Ok(EarlierRecord::Done { .. }) => return dead(DeadLetterReason::KeyReused),
            Ok(EarlierRecord::Uncertain) => return dead(DeadLetterReason::Uncertain),
            Ok(EarlierRecord::HalfDone) => return dead(DeadLetterReason::Parked),
            Ok(EarlierRecord::Running) => return Some(judge.retry(None)),
            Ok(EarlierRecord::Nothing) => {}
            Err(error) => return Some(judge.retry(Some(error.into()))),
        }
    }
    None
}

async fn standing(
    settings: &Settings,
    key: &Key,
    subject: Option<&Subject>,
) -> Result<EarlierRecord, Error> {
    let scope = settings.scope.as_ref().map(Key::framed);
    let id = RecordId::new(&settings.operation, scope, key.framed());
    let snapshot = settings.handle.store().load(&id).await?;
    let now = snapshot.now;
    let Some(record) = snapshot.record.filter(|record| !record.is_expired(now)) else {
        return Ok(EarlierRecord::Nothing);
    };
    let on_crash = settings.on_crash().max(record.on_crash);
    Ok(match (record.state, &record.outcome) {
        (State::Running | State::Undoing, _) if !record.lease_is_over(now) => {
            EarlierRecord::Running
        }
        (State::Running, _) if on_crash != OnCrash::Rerun => EarlierRecord::Uncertain,
        (State::Undoing, _) | (State::Parked, Some(_)) => EarlierRecord::HalfDone,
        (State::Running | State::Parked, _) if record.has_open_undos() => EarlierRecord::HalfDone,
        (State::Done, Some(outcome)) if outcome.kind != OutcomeKind::Error => EarlierRecord::Done {
            same_payload: subject.is_none_or(|it| it.fingerprint == record.subject.fingerprint),
        },
        (State::Uncertain, _) => EarlierRecord::Uncertain,
        _ => EarlierRecord::Nothing,
    })
}

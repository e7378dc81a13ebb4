//! Reads recorded outcomes back.

use std::sync::Arc;

use super::{Typed, record::OutcomePlace};
use crate::{
    error::Error,
    outcome::{Keep, OnError, Stored, Unread},
    record::{OutcomeKind, RawOutcome, Record},
    request::Request,
};

/// Gives the first caller what every later one gets, where its reference, which is recorded, can be
/// read back. If it cannot, the caller has its own value, and a replay may find what this load did
/// not.
pub(super) async fn load<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    reference: RawOutcome,
    own: &mut Result<T, E>,
) where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    match decode(&OutcomePlace::of(request), typed, reference).await {
        Ok(loaded) => *own = loaded,
        Err(why) => {
            let error = match &why {
                Unread::Undecodable(error) => error.to_string(),
                // The application's words may quote the value.
                Unread::NotLoaded(_) => "`load` failed".to_owned(),
            };
            tracing::warn!(operation = &*request.operation, %error, "a value cannot be read back through its reference");
        }
    }
}

pub(crate) async fn decode<T, E, P, K>(
    place: &OutcomePlace<'_>,
    typed: &Typed<P, K>,
    outcome: RawOutcome,
) -> Result<Result<T, E>, Unread>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let kind = outcome.kind;
    let stored = Stored::new(outcome, place.coder.clone());
    match kind {
        OutcomeKind::Error => {
            let error = typed.on_error.decode(&stored);
            error.map(Err).map_err(Unread::Undecodable)
        }
        _ => typed.keep.clone().read(stored, place.schema).await.map(Ok),
    }
}

pub(super) async fn read<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    record: &Record,
) -> Result<Result<T, E>, Error>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let (place, outcome) = (OutcomePlace::of(request), record.outcome.as_ref());
    replay(&place, &request.operation, typed, outcome).await
}

/// Reads an outcome back. Its call or step has this name in messages about it.
pub(crate) async fn replay<T, E, P, K>(
    place: &OutcomePlace<'_>,
    name: &Arc<str>,
    typed: &Typed<P, K>,
    outcome: Option<&RawOutcome>,
) -> Result<Result<T, E>, Error>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let operation = || Arc::clone(name);
    let kept = outcome.filter(|outcome| outcome.kind != OutcomeKind::NotReplayable);
    let Some(outcome) = kept else {
        return Err(Error::NotReplayable {
            operation: operation(),
        });
    };
    let read = decode(place, typed, outcome.clone()).await;
    read.map_err(|why| match why {
        Unread::Undecodable(error) => Error::Unreadable {
            operation: operation(),
            schema: outcome.schema,
            source: error.into(),
        },
        Unread::NotLoaded(error) => Error::NotLoaded {
            operation: operation(),
            source: error.into(),
        },
    })
}

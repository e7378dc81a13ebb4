//! Reads recorded outcomes back.

use std::sync::Arc;

use super::Typed;
use crate::{
    error::Error,
    outcome::{Keep, OnError, Stored, Unread},
    record::{OutcomeKind, RawOutcome, Record},
    request::Request,
};

/// Gives the first caller what every later one gets, where its reference, which is recorded, can be read back. Where it cannot, a
/// replay may find what this load did not, and the caller has its own value.
pub(super) async fn load<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    reference: RawOutcome,
    own: &mut Result<T, E>,
) where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    match decode(request, typed, reference).await {
        Ok(loaded) => *own = loaded,
        Err(why) => {
            let error = match &why {
                Unread::Undecodable(error) => error.to_string(),
                // What the application says may quote the value.
                Unread::NotLoaded(_) => "`load` failed".to_owned(),
            };
            tracing::warn!(operation = &*request.operation, %error, "a value cannot be read back through its reference");
        }
    }
}

pub(super) async fn decode<T, E, P, K>(
    request: &Request,
    typed: &Typed<P, K>,
    outcome: RawOutcome,
) -> Result<Result<T, E>, Unread>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let kind = outcome.kind;
    let stored = Stored::new(outcome, request.handle.coder().clone());
    match kind {
        OutcomeKind::Error => typed
            .on_error
            .decode(&stored)
            .map(Err)
            .map_err(Unread::Undecodable),
        _ => typed
            .keep
            .clone()
            .read(stored, request.version)
            .await
            .map(Ok),
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
    let operation = || Arc::clone(&request.operation);
    match &record.outcome {
        Some(outcome) if outcome.kind != OutcomeKind::NotReplayable => {
            decode(request, typed, outcome.clone())
                .await
                .map_err(|why| match why {
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
        _ => Err(Error::NotReplayable {
            operation: operation(),
        }),
    }
}

//! Decides how a body's result ends the call, and what its caller gets.

use std::{
    future::{Future, poll_fn},
    pin::pin,
};

use super::{Typed, read::decode};
use crate::{
    attempt::{Attempt, Stage},
    error::{BoxError, take_mark},
    lease::Ending,
    outcome::{Encoder, Keep, OnError, Stored, Unread, as_own},
    policy::{OnCrash, Verdict},
    record::{OutcomeKind, RawOutcome},
    request::Request,
    run::active_call::ActiveCall,
};

/// What the value is to be read back from once it is recorded.
pub(super) fn reference<K: Keep<T>, T>(ending: &Ending) -> Option<RawOutcome> {
    match ending {
        Ending::Done(outcome) if K::LOADS && outcome.kind == OutcomeKind::Value => {
            Some(outcome.clone())
        }
        _ => None,
    }
}

/// Decides how the body's result ends the holding, and what its own caller gets: exactly what a
/// replay would give, wherever there can be one.
pub(super) async fn leave<T, E, P, K>(
    call: &ActiveCall,
    typed: &Typed<P, K>,
    attempt: &Attempt,
    own: &mut Result<T, E>,
) -> Ending
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let request = &call.request;
    if attempt.stage() == Stage::Unknown {
        return Ending::Uncertain;
    }
    if attempt.fencing_token().is_none() {
        // It runs unprotected, and nothing is stored.
        return Ending::Release;
    }
    // The body has returned. Whatever panics in the application's code from here on, it must not look as if it had not.
    if let Err(error) = own {
        call.know(Ending::Uncertain);
        match typed.on_error.verdict(error, request.on_error) {
            Verdict::Replay => {}
            Verdict::Release => return Ending::Release,
            Verdict::Uncertain => return Ending::Uncertain,
        }
    }
    call.know(Ending::Done(RawOutcome::not_replayable()));
    let encoder = Encoder(request.handle.coder());
    let _of_other_encoders = take_mark();
    let (encoded, otherwise) = match own {
        Ok(value) => (
            typed.keep.encode(value, &encoder).map(RawOutcome::value),
            "the value cannot be encoded: let serde store it, or write `outcome = reference(save, load)`",
        ),
        Err(error) => (
            typed
                .on_error
                .encode(error, &encoder)
                .map(RawOutcome::error),
            "the `Err` cannot be encoded: let serde store it, or write `on_error = ErrorVerdict::verdict`, and `#[verdict(release)]` or `#[verdict(uncertain)]` on its variant",
        ),
    };
    let outcome = match fit_to_keep(request, encoded, otherwise) {
        Ok(outcome) => outcome,
        Err(ending) => return ending,
    };
    if K::LOADS && outcome.kind == OutcomeKind::Value {
        // The reference is what counts, and loading may take a while: it is recorded first.
        let stored = Stored::new(outcome.clone(), request.handle.coder().clone());
        return match K::reads(&stored) {
            Ok(_) => Ending::Done(outcome),
            Err(error) => not_replayable(request, &error),
        };
    }
    let mut reading = pin!(decode(request, typed, outcome.clone()));
    match poll_fn(|cx| as_own(|| reading.as_mut().poll(cx))).await {
        Ok(replayed) if is_copy::<_, _, P, K>(own, &replayed) => {
            *own = replayed;
            Ending::Done(outcome)
        }
        Ok(_) => not_replayable(
            request,
            &"it comes back as another value, as `Some(None)` and `Some(())` do in JSON: return another type, or give the handle another `codec`",
        ),
        Err(Unread::NotLoaded(error) | Unread::Undecodable(error)) => {
            not_replayable(request, &error)
        }
    }
}

fn is_copy<T, E, P: OnError<E>, K: Keep<T>>(own: &Result<T, E>, copy: &Result<T, E>) -> bool {
    match (own, copy) {
        (Ok(value), Ok(copy)) => K::is_copy(value, copy),
        (Err(error), Err(copy)) => P::is_copy(error, copy),
        _ => false,
    }
}

/// The outcome as it is to be kept, or how the holding ends where it cannot be kept.
fn fit_to_keep(
    request: &Request,
    encoded: Result<RawOutcome, BoxError>,
    cannot_be_encoded: &str,
) -> Result<RawOutcome, Ending> {
    // The mark counts also where encoding went well: a type of the application's may put other words in the refusal's place.
    if take_mark() {
        return Err(match request.on_crash {
            OnCrash::Rerun => Ending::Release,
            _ => Ending::Uncertain,
        });
    }
    match encoded {
        Ok(outcome) if outcome.bytes.len() <= request.handle.defaults().max_outcome => {
            Ok(outcome.with_schema(request.version))
        }
        Ok(outcome) => Err(not_replayable(
            request,
            &format_args!("{} bytes", outcome.bytes.len()),
        )),
        // What a `Serialize` says may quote the value.
        Err(_) => Err(not_replayable(request, &cannot_be_encoded)),
    }
}

fn not_replayable(request: &Request, why: &dyn std::fmt::Display) -> Ending {
    tracing::warn!(
        operation = &*request.operation,
        id = %request.id.short(),
        %why,
        "an outcome cannot be stored or read back: duplicates will be told that it happened"
    );
    Ending::Done(RawOutcome::not_replayable())
}

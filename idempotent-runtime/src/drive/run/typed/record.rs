//! Decides how a body's result ends the call, and what its caller gets.

use std::{
    future::{Future, poll_fn},
    pin::pin,
};

use super::{Typed, read::decode};
use crate::{
    attempt::{Attempt, Stage},
    codec::Coder,
    error::{BoxError, take_mark},
    identity::RecordId,
    outcome::{Encoder, Keep, OnError, Stored, Unread, as_own},
    policy::{OnCrash, Verdict},
    protocol::Ending,
    record::{OutcomeKind, RawOutcome},
    request::Request,
    run::active_call::ActiveCall,
};

/// The reference that the value is to be read back from once it is recorded.
pub(super) fn reference<K: Keep<T>, T>(ending: &Ending) -> Option<RawOutcome> {
    match ending {
        Ending::Done(outcome) if K::LOADS && outcome.kind == OutcomeKind::Value => {
            Some(outcome.clone())
        }
        _ => None,
    }
}

/// Decides how the body's result ends the holding, and what its own caller gets: exactly what a
/// replay would give, if there can be one.
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
    // The body has returned. If the application's code panics from here on, it must not look as if
    // it had not.
    if let Err(error) = own {
        call.know(Ending::Uncertain);
        match typed.on_error.verdict(error, request.on_error) {
            Verdict::Replay if attempt.is_refused() => {
                return unrecorded(request, &typed.on_error);
            }
            Verdict::Replay => attempt.fail(),
            Verdict::Release => return Ending::Release,
            Verdict::Uncertain => return Ending::Uncertain,
        }
    }
    if own.is_ok() || !call.keeps_undos() {
        call.know(Ending::Done(RawOutcome::not_replayable()));
    }
    let place = OutcomePlace {
        // The rows of an `Err` are undone.
        forgets_errors: call.held.is_none(),
        ..OutcomePlace::of(request)
    };
    match keep(&place, typed, own).await {
        Some(outcome) => Ending::Done(outcome),
        None => unrecorded(request, &typed.on_error),
    }
}

/// The ending of a call whose error is no outcome.
fn unrecorded<E, P: OnError<E>>(request: &Request, on_error: &P) -> Ending {
    let (verdict, ending) = match request.on_crash {
        OnCrash::Rerun => (Verdict::Release, Ending::Release),
        _ => (Verdict::Uncertain, Ending::Uncertain),
    };
    on_error.carried_out(verdict);
    ending
}

/// Makes the outcome that is stored of a body's result, and puts in the result's place exactly what
/// a replay would give. `None` where it is an error of ours, which is no outcome, and where an
/// error cannot be kept that leaves nothing.
pub(crate) async fn keep<T, E, P, K>(
    place: &OutcomePlace<'_>,
    typed: &Typed<P, K>,
    own: &mut Result<T, E>,
) -> Option<RawOutcome>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let encoder = Encoder(place.coder);
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
    let outcome = match place.fit(encoded, otherwise)? {
        Ok(outcome) => outcome,
        Err(why) => return place.not_replayable(own.is_err(), &why),
    };
    if K::LOADS && outcome.kind == OutcomeKind::Value {
        // The reference is what counts, and loading may take a while: it is recorded first.
        let stored = Stored::new(outcome.clone(), place.coder.clone());
        return match K::reads(&stored) {
            Ok(_) => Some(outcome),
            Err(error) => place.not_replayable(own.is_err(), &error),
        };
    }
    let mut reading = pin!(decode(place, typed, outcome.clone()));
    match poll_fn(|cx| as_own(|| reading.as_mut().poll(cx))).await {
        Ok(replayed) if is_copy::<_, _, P, K>(own, &replayed) => {
            *own = replayed;
            Some(outcome)
        }
        Ok(_) => place.not_replayable(
            own.is_err(),
            &"it comes back as another value, as `Some(None)` and `Some(())` do in JSON: return another type, or give the handle another `codec`",
        ),
        Err(Unread::NotLoaded(error) | Unread::Undecodable(error)) => {
            place.not_replayable(own.is_err(), &error)
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

/// The place where an outcome is kept, and the words for it.
pub(crate) struct OutcomePlace<'a> {
    pub(crate) operation: &'a str,
    pub(crate) id: &'a RecordId,
    pub(crate) coder: &'a Coder,
    /// The schema version.
    pub(crate) schema: u32,
    /// How many bytes it may have.
    pub(crate) longest: usize,
    /// Whether an error leaves nothing behind, so that one which cannot be kept is forgotten.
    pub(crate) forgets_errors: bool,
}

impl<'a> OutcomePlace<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        Self {
            operation: &request.operation,
            id: &request.id,
            coder: request.handle.coder(),
            schema: request.version,
            longest: request.handle.defaults().max_outcome,
            forgets_errors: false,
        }
    }

    /// The outcome as it is to be kept, or why it cannot be. `None` where it is an error of ours.
    /// The mark of that counts also where encoding went well, because a type of the application's
    /// may put other words in the refusal's place.
    fn fit(
        &self,
        encoded: Result<RawOutcome, BoxError>,
        cannot_be_encoded: &str,
    ) -> Option<Result<RawOutcome, String>> {
        if take_mark() {
            return None;
        }
        Some(match encoded {
            Ok(outcome) if outcome.bytes.len() <= self.longest => {
                Ok(outcome.with_schema(self.schema))
            }
            Ok(outcome) => Err(format!("{} bytes", outcome.bytes.len())),
            // The words of a `Serialize` may quote the value.
            Err(_) => Err(cannot_be_encoded.to_owned()),
        })
    }

    /// The mark of an outcome that cannot be kept; `None` where nothing is left of it.
    fn not_replayable(&self, is_error: bool, why: &dyn std::fmt::Display) -> Option<RawOutcome> {
        let (operation, id) = (self.operation, self.id.to_hex());
        if is_error && self.forgets_errors {
            tracing::warn!(
                operation, id, %why,
                "an error cannot be stored or read back: its rows are undone, and nothing is recorded"
            );
            return None;
        }
        tracing::warn!(
            operation, id, %why,
            "an outcome cannot be stored or read back: duplicates will be told that it happened"
        );
        Some(RawOutcome::not_replayable())
    }
}

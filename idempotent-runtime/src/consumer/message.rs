//! One message, from its id to its disposition.

use std::{future::Future, marker::PhantomData, sync::Arc};

use serde::{Serialize, Serializer};

use super::{
    disposition::{DeadLetterReason, Decided, Disposition, Judge},
    earlier::earlier,
    failure::{Failure, VerdictRecorder},
    hold::{Hold, KeepAlive},
    settings::Settings,
};
use crate::{
    attempt::Attempt,
    drive::{DescribedCall, run},
    duration::IntoDuration,
    error::{BoxError, Error},
    identity::RecordId,
    key::{Key, KeyError},
    observe::CallReport,
    outcome::{Classified, LeftUncertain, OnError, Recorded, Released},
    policy::Verdict,
    record::Subject,
    request::{Call, Fingerprintable, Request},
    run::{ActiveCall, Typed},
};

/// A message of which the id is known. Say next what it holds.
#[derive(Debug)]
#[must_use = "a message is not processed until its handler is run"]
pub struct MessageCall {
    settings: Arc<Settings>,
    id: Result<Key, KeyError>,
    redrive: u32,
}

/// A message that can be processed.
///
/// Its parameters are what becomes of an `Err` of the handler, and whether the broker's count is
/// known.
#[derive(Debug)]
#[must_use = "a message is not processed until its handler is run"]
pub struct Delivery<'a, P = Released, N = Unnumbered> {
    pub(super) it: Described<'a>,
    on_error: P,
    numbered: PhantomData<N>,
}

/// A delivery but for what becomes of an `Err`.
#[derive(Debug)]
pub(super) struct Described<'a> {
    pub(super) settings: Arc<Settings>,
    call: Call,
    /// The call, once it is prepared.
    request: Option<Result<Request, Error>>,
    pub(super) delivery: u32,
    keep_alive: Option<KeepAlive<'a>>,
    /// The id, if it can be one.
    message: Option<Key>,
    /// The keys of the earlier redrives, whose effect it must not repeat.
    redriven: Vec<Key>,
}

/// The broker's count is not known.
#[derive(Clone, Copy, Debug)]
pub struct Unnumbered;

/// The broker's count is known.
#[derive(Clone, Copy, Debug)]
pub struct Numbered;

fn call_of(settings: &Settings, key: Result<Key, KeyError>) -> Call {
    let (handle, operation) = (&settings.handle, &settings.operation);
    let identity = (settings.scope.clone().map(Ok), key);
    Call::reserved(handle, operation, identity, settings.policy)
}

/// Bytes that are hashed as they are.
struct Raw<'a>(&'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl MessageCall {
    pub(super) fn new(settings: Arc<Settings>, id: Result<Key, KeyError>) -> Self {
        let redrive = 0;
        Self {
            settings,
            id,
            redrive,
        }
    }

    /// Says that this is the n-th time that the message was put back from the dead letters. It is a
    /// record of its own. The handler does not run if an earlier one has had its effect with this
    /// payload, runs, is uncertain, or has steps that are not undone. One whose consumer vanished
    /// counts as its `on_crash` makes of it: under `uncertain` it is uncertain. Put the message
    /// back when its dead letter is acknowledged: an earlier delivery that comes later has its own
    /// effect.
    pub fn redrive(mut self, n: u32) -> Self {
        self.redrive = n;
        self
    }

    /// Says what the message holds. A message with the same id and another payload is a dead
    /// letter.
    ///
    /// Give the decoded value where the producer may encode it anew: other bytes are another
    /// payload.
    pub fn payload<'a, T: Fingerprintable + ?Sized>(self, payload: &T) -> Delivery<'a> {
        let mut delivery = self.without_payload();
        delivery.it.call.whole("payload", payload);
        delivery
    }

    /// Says which bytes the message holds, to be compared as they are.
    pub fn payload_bytes<'a>(self, payload: &[u8]) -> Delivery<'a> {
        self.payload(&Raw(payload))
    }

    /// Says that the id alone tells messages apart: any later message with it is a duplicate.
    pub fn without_payload<'a>(self) -> Delivery<'a> {
        let Self {
            settings,
            id,
            redrive,
        } = self;
        let key = |n: u32| match (n, &id) {
            (0, id) => id.clone(),
            (n, Ok(id)) => Key::from_part(&("redrive", id.framed(), n)),
            (_, Err(error)) => Err(*error),
        };
        let it = Described {
            call: call_of(&settings, key(redrive)),
            redriven: (0..redrive).filter_map(|n| key(n).ok()).collect(),
            message: id.ok(),
            settings,
            request: None,
            delivery: 1,
            keep_alive: None,
        };
        it.with(Released)
    }
}

impl<'a> Described<'a> {
    fn with<P, N>(self, on_error: P) -> Delivery<'a, P, N> {
        Delivery {
            it: self,
            on_error,
            numbered: PhantomData,
        }
    }
}

impl<'a, P, N> Delivery<'a, P, N> {
    /// Sets the broker's count: 1 the first time. It sets how long a retry waits, and after how
    /// many deliveries a message whose handler fails is a dead letter.
    pub fn delivery(mut self, delivery: u32) -> Delivery<'a, P, Numbered> {
        self.it.delivery = delivery.max(1);
        self.it.with(self.on_error)
    }

    /// Says which W3C `traceparent` came with the message, such as that of an
    /// [envelope](crate::outbox::Envelope::traceparent). The span of the call links to it, if the
    /// handle was built with `opentelemetry()`.
    pub fn trace_parent(mut self, trace_parent: &str) -> Self {
        self.it.call.sent_by(trace_parent);
        self
    }

    /// Keeps the broker's hold on the message: `extend` is called at a third of its `visibility`,
    /// beside the handler and in the same task.
    ///
    /// If no call succeeds for the whole time, another consumer may have the message. Then
    /// [`Attempt::lost`] tells the handler, the lease is kept until it ends, and the disposition is
    /// [`Disposition::Retry`]: the next delivery finds the outcome.
    pub fn keep_alive<F, B>(mut self, visibility: impl IntoDuration, extend: F) -> Self
    where
        F: Fn() -> B + Send + Sync + 'a,
        B: Future<Output = Result<(), BoxError>> + Send + 'a,
    {
        match visibility.into_duration() {
            Ok(visibility) if !visibility.is_zero() => {
                let extend = Box::new(move || Box::pin(extend()) as _);
                self.it.keep_alive = Some(KeepAlive { visibility, extend });
            }
            Ok(_) => self.it.call.refuse(Error::InvalidPolicy(
                "the broker holds a message for no time at all: give `keep_alive` the time that it does",
            )),
            Err(error) => self.it.call.refuse(error),
        }
        self
    }

    /// An `Err` of the handler is recorded as the outcome: the message is a dead letter at once.
    pub fn record_errors(self) -> Delivery<'a, Recorded, N> {
        self.it.with(Recorded)
    }

    /// An `Err` of the handler says that it is unknown what happened: the message is a dead letter
    /// at once.
    pub fn uncertain_errors(self) -> Delivery<'a, LeftUncertain, N> {
        self.it.with(LeftUncertain)
    }

    /// A function from `&E` to [`Verdict`](crate::Verdict) or [`Unrecorded`](crate::Unrecorded)
    /// decides, error by error.
    pub fn classify_errors<F>(self, classify: F) -> Delivery<'a, Classified<F>, N> {
        self.it.with(Classified(classify))
    }

    /// Runs the handler, unless the message was processed before, and tells what to do with the
    /// message. An `Err` of the handler is released unless something else was said: the message
    /// comes again.
    ///
    /// # Panics
    ///
    /// If the handler does. The message is not settled then, and comes again.
    ///
    /// # Cancel safety
    ///
    /// As [`CallBuilder::run`](crate::CallBuilder::run): the handler stops, `on_crash` applies, and
    /// the message comes again.
    pub async fn run<T, E, F, B>(self, handler: F) -> Disposition
    where
        E: Into<BoxError>,
        P: OnError<E>,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = Result<T, E>>,
    {
        let hold = Hold::default();
        let handled = |attempt: Attempt| {
            hold.begins(&attempt);
            let handled = handler(attempt);
            async move { handled.await.map(drop).map_err(Failure::Handler) }
        };
        self.dispose(&hold, async |described, on_error| {
            run(described, Typed::whole(on_error), handled).await
        })
        .await
    }

    /// Prepares the call: nothing more is said of it.
    pub(super) fn prepared(mut self) -> Self {
        let nothing = call_of(&self.it.settings, Err(KeyError::Missing));
        let call = std::mem::replace(&mut self.it.call, nothing);
        self.it.request = Some(call.prepare());
        self
    }

    /// The record by which it is known, once it is prepared, and the subject of that.
    pub(super) fn identity(&self) -> Option<(RecordId, Arc<Subject>)> {
        let request = self.it.request.as_ref()?.as_ref().ok()?;
        request.subject().map(|subject| (request.id, subject))
    }

    /// Makes a dead letter of it before its call is made.
    pub(super) fn refused(&self, reason: DeadLetterReason, error: BoxError) -> Disposition {
        let (record, subject) = self.identity().unzip();
        let decided = Decided {
            disposition: Disposition::DeadLetter {
                reason,
                error: Some(error),
            },
            settings: Arc::clone(&self.it.settings),
            message: self.it.message.clone(),
            record,
            subject,
        };
        decided.tell()
    }

    /// Makes the call, and tells what its end means for the message.
    pub(super) async fn dispose<E, C>(self, hold: &Hold, call: C) -> Disposition
    where
        E: Into<BoxError>,
        P: OnError<E>,
        C: AsyncFnOnce(DescribedCall, &VerdictRecorder<P>) -> (Result<(), Failure<E>>, CallReport),
    {
        self.decide(hold, call).await.told().await
    }

    /// The same, before anyone is told.
    pub(super) async fn decide<E, C>(self, hold: &Hold, call: C) -> Decided
    where
        E: Into<BoxError>,
        P: OnError<E>,
        C: AsyncFnOnce(DescribedCall, &VerdictRecorder<P>) -> (Result<(), Failure<E>>, CallReport),
    {
        let (settings, recorder) = (self.it.settings, VerdictRecorder::new(self.on_error));
        let message = self.it.message;
        let decided = |disposition, about: Option<(RecordId, Option<Arc<Subject>>)>| {
            let (record, subject) = about.unzip();
            Decided {
                disposition,
                settings: Arc::clone(&settings),
                message,
                record,
                subject: subject.flatten(),
            }
        };
        let mut judge = Judge {
            settings: &settings,
            delivery: self.it.delivery,
            verdict: Verdict::Release,
        };
        let request = match self.it.request.unwrap_or_else(|| self.it.call.prepare()) {
            Ok(request) => request,
            Err(error) => {
                let refused = Err::<(), Failure<BoxError>>(Failure::Refused(error));
                let disposition = judge.judge(refused, &CallReport::Refused);
                return decided(disposition, None);
            }
        };
        let id = request.id;
        let subject = request.subject();
        if let Some(disposition) = earlier(&judge, &self.it.redriven, subject.clone()).await {
            return decided(disposition, Some((id, subject)));
        }
        let ended = call(Ok(ActiveCall::new(request)), &recorder);
        let timer = settings.handle.timer();
        let (result, report) = match &self.it.keep_alive {
            Some(keep_alive) => keep_alive.beside(timer, hold, ended).await,
            None => ended.await,
        };
        judge.verdict = recorder.noted();
        let disposition = match hold.is_lost() {
            true => judge.retry(None),
            false => judge.judge(result, &report),
        };
        if hold.keeps_undos() {
            return decided(judge.park(disposition, &id).await, Some((id, subject)));
        }
        decided(disposition, Some((id, subject)))
    }
}

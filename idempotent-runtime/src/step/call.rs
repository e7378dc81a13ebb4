//! The step as an application writes it.

use std::{future::IntoFuture, marker::PhantomData, pin::Pin};

use super::{
    MayUndo, NoUndo, StepContext, StepLabel, Undo, Undoable,
    described::Described,
    permit::{self, Begun, Permit},
};
use crate::{
    attempt::{Asking, INSIDE},
    error::Error,
    observe::StepOutcome,
    outcome::{Classified, FromRefusal, Keep, OnError, Reference, Released, Upgraded, Whole},
    policy::{OnCrash, Reconciled, Verdict},
    record::{OutcomeKind, RawOutcome},
    request::Fingerprintable,
    run::typed::{
        Typed,
        read::{decode, replay},
        record::keep,
    },
};

/// Makes a step of a body: its value is recorded, and an attempt that takes over goes on with it
/// instead of running the step again.
///
/// A step is found by its name, never by its position, so that steps may run side by side, in loops
/// and in other tasks ([`Attempt::enter`](crate::Attempt::enter)). Each has a name of its own
/// within its call. The body returns a `Result` whose error has `From<`[`Error`](crate::Error)`>`,
/// and a value with serde's traits.
///
/// A step is at least once: one that was running when its holder vanished runs again. Hand
/// [`key`](StepContext::key) downstream, which is the same on every attempt, or set
/// [`at_most_once`](StepCall::at_most_once).
///
/// Awaited like this, it is `Send` where its body is. [`StepCall::run`] gives a future for bodies
/// that are not, and for `FuturesUnordered`.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, StepContext, step};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let idem = Idempotency::memory();
/// let call = idem.call("trips.book").key("trip-7");
/// let seat = call.run(async |_| {
///     let body = async |s: StepContext| Ok::<_, Error>(format!("seat 12A by {}", s.key()));
///     let flight = step("flight", body).await?;
///     step("mail", async |_| Ok::<_, Error>(())).arguments(&flight).await?;
///     Ok::<_, Error>(flight)
/// });
/// assert!(seat.await?.starts_with("seat 12A by "));
/// # Ok(()) }
/// ```
pub fn step<'a, N, F, Fut>(name: N, body: F) -> StepCall<'a, F>
where
    N: StepLabel,
    F: FnOnce(StepContext) -> Fut + 'a,
    Fut: Future,
{
    StepCall {
        described: Described::new(name.label(), &name),
        body,
        typed: Typed::whole(Released),
        undo: NoUndo,
        lives: PhantomData,
    }
}

/// A step that runs.
type StepFuture<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A step that is being described; [`step`] makes one.
#[derive(Debug)]
#[must_use = "a step does nothing until it is awaited"]
pub struct StepCall<'a, F, P = Released, K = Whole, U = NoUndo> {
    described: Described,
    body: F,
    typed: Typed<P, K>,
    undo: U,
    lives: PhantomData<&'a ()>,
}

impl<'a, F, P, K, U> StepCall<'a, F, P, K, U> {
    /// Sets the arguments that must be equal in a rerun:
    /// [`Error::StepChanged`](crate::Error::StepChanged) where they are not.
    pub fn arguments<T: Fingerprintable + ?Sized>(mut self, arguments: &T) -> Self {
        self.described.arguments.whole_as("arguments", arguments);
        self
    }

    /// Adds an argument that must be equal in a rerun, by name, so that
    /// [`Error::StepChanged`](crate::Error::StepChanged) can name it.
    pub fn argument<T: Fingerprintable + ?Sized>(mut self, name: &'static str, value: &T) -> Self {
        self.described.arguments.argument(name, value);
        self
    }

    /// Sets the schema version of the value.
    pub fn version(mut self, version: u32) -> Self {
        self.described.version = version;
        self
    }

    /// Reads what older versions of the program stored.
    pub fn upgrade<R>(self, upgrade: R) -> StepCall<'a, F, P, Upgraded<R>, U> {
        self.with(|typed| typed.with_keep(Upgraded(upgrade)))
    }

    /// Stores only what `save` makes of the value, and reads the value back with `load`.
    pub fn reference<S, L>(self, save: S, load: L) -> StepCall<'a, F, P, Reference<S, L>, U> {
        self.with(|typed| typed.with_keep(Reference(save, load)))
    }

    /// A function from `&E` to [`Verdict`] or [`Unrecorded`](crate::Unrecorded) decides what
    /// becomes of an `Err`, such as `ErrorVerdict::verdict`. A recorded one is given again without
    /// running, an uncertain one makes the call uncertain. If this is not set, no `Err` is
    /// recorded, and the step runs again in the next attempt.
    pub fn on_error<C>(self, classify: C) -> StepCall<'a, F, Classified<C>, K, U> {
        self.with(|typed| typed.with_on_error(Classified(classify)))
    }

    /// Runs the body at most once. One more write says first that it has begun. If it has begun and
    /// no outcome is recorded, the next attempt makes the call *uncertain*
    /// ([`Error::Uncertain`](crate::Error::Uncertain)). That is so if its holder vanished, its
    /// future was dropped, or its `Err` is not recorded. This attempt does so too, if it calls the
    /// step again whose future was dropped.
    ///
    /// A call without a record refuses such a step, except where the handle is switched off. Redis
    /// needs `accept_at_most_once_until_failover()`.
    pub fn at_most_once(mut self) -> Self {
        self.described.on_crash = OnCrash::Uncertain;
        self
    }

    /// Asks what became of the step if it has begun and no outcome is recorded, instead of running
    /// it again. One more write says first that it has begun.
    ///
    /// [`Reconciled::Unknown`] makes the call *uncertain*.
    pub fn reconcile<A, Q, Fut, T, E>(
        self,
        ask: A,
    ) -> StepCall<'a, impl FnOnce(StepContext) -> StepFuture<'a, T, E>, P, K, U>
    where
        F: FnOnce(StepContext) -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, E>> + Send + 'a,
        A: FnOnce(StepContext) -> Q + Send + 'a,
        Q: Future<Output = Reconciled<T, E>> + Send + 'a,
        T: Send + 'a,
        E: FromRefusal + Send + 'a,
    {
        let Self {
            mut described,
            body,
            typed,
            undo,
            lives,
        } = self;
        described.on_crash = OnCrash::Reconcile;
        let body = move |context: StepContext| -> StepFuture<'a, T, E> {
            Box::pin(async move {
                if context.asks {
                    match ask(context.clone()).await {
                        Reconciled::Happened(value) => return Ok(value),
                        Reconciled::Failed(error) => return Err(error),
                        Reconciled::Unknown => {
                            return Err(E::from_refusal(context.attempt.doubt()));
                        }
                        Reconciled::RunAgain => {}
                    }
                }
                body(context).await
            })
        };
        StepCall {
            described,
            body,
            typed,
            undo,
            lives,
        }
    }

    /// Undoes the step where the call fails for good: its body returns an `Err` that is recorded.
    ///
    /// Undos run one at a time, that of the latest step first. An undo owns what it needs, because
    /// it outlives the body. It runs if the step has a value, or if it is unknown whether the step
    /// happened: its holder vanished, or no [`on_error`](Self::on_error) says of its `Err` that
    /// nothing happened. [`Undo`] tells it which. One more write says that the step has begun
    /// before its body runs, and the first such step of a call costs another one.
    ///
    /// An undo that fails, or does not end within
    /// [`undo_timeout`](crate::Builder::undo_timeout), is tried three times. Then the call is
    /// *parked*, and its callers get [`Error::NotUndone`](crate::Error::NotUndone). The guide's
    /// page [Sagas](crate::guide::sagas) says what an undo cannot do.
    pub fn undo<T, E, Fut, G, Q, X>(self, undo: G) -> StepCall<'a, F, P, K, Undoable<T, G>>
    where
        F: FnOnce(StepContext) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        G: Fn(Undo<T>) -> Q,
        Q: Future<Output = Result<(), X>>,
    {
        StepCall {
            described: self.described,
            body: self.body,
            typed: self.typed,
            undo: Undoable(undo, PhantomData),
            lives: self.lives,
        }
    }

    fn with<Q, L>(
        self,
        change: impl FnOnce(Typed<P, K>) -> Typed<Q, L>,
    ) -> StepCall<'a, F, Q, L, U> {
        StepCall {
            described: self.described,
            body: self.body,
            typed: change(self.typed),
            undo: self.undo,
            lives: self.lives,
        }
    }

    /// Runs the step, or answers with what is recorded of it.
    ///
    /// It costs one round trip to the store after the body, one more before it with
    /// [`at_most_once`](Self::at_most_once) or [`reconcile`](Self::reconcile), and one more look in
    /// an attempt that takes over.
    ///
    /// # Errors
    ///
    /// The body's own, recorded or not, or one of ours:
    /// [`Error::MisplacedStep`](crate::Error::MisplacedStep) and
    /// [`Error::StepInTransaction`](crate::Error::StepInTransaction) where a step cannot stand,
    /// [`Error::DuplicateStep`](crate::Error::DuplicateStep) where its name is taken,
    /// [`Error::StepChanged`](crate::Error::StepChanged) where its arguments differ from those of
    /// an earlier attempt, [`Error::LeaseLost`](crate::Error::LeaseLost) where the attempt may not
    /// go on, [`Error::Uncertain`](crate::Error::Uncertain) where it is unknown whether it
    /// happened, [`Error::Unreadable`](crate::Error::Unreadable),
    /// [`Error::NotLoaded`](crate::Error::NotLoaded) and
    /// [`Error::NotReplayable`](crate::Error::NotReplayable) where its value cannot be given again,
    /// and [`Error::Store`](crate::Error::Store).
    ///
    /// The body runs before none of them except `LeaseLost` and `Store`: the step may have happened
    /// then, and the result of the body is not recorded.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its body was polled, it changes nothing. Dropped later, its body stops, and
    /// it is unknown how far it came: it may run again in this attempt and in the next, except with
    /// [`at_most_once`](Self::at_most_once).
    pub async fn run<T, E, Fut>(self) -> Result<T, E>
    where
        F: FnOnce(StepContext) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: FromRefusal,
        P: OnError<E>,
        K: Keep<T> + Clone,
        U: MayUndo<T, K>,
    {
        let typed = self.typed;
        let mut described = self.described;
        described.undo = self.undo.any(&typed.keep, described.version);
        let asking = described.asking();
        // Boxed, so that the future of every step does not hold room for it.
        let ended = match Box::pin(permit::begin(described)).await {
            Ok(Begun::Run(permit)) => finish(permit, typed, self.body, &asking).await,
            Ok(Begun::Unprotected(context)) => {
                let (within, body) = (context.within(), self.body);
                let own = within.enter(async move { body(context).await }).await;
                asking.note(own.is_err() && within.is_refused());
                Ok(own)
            }
            Ok(Begun::Recorded(permit, step)) => {
                asking.note(false);
                permit.tell(StepOutcome::Replayed);
                read(&permit, &typed, step.outcome.as_ref()).await
            }
            Err(error) => Err(error),
        };
        match ended {
            Ok(own) => own,
            Err(error) => Err(asking.refuse(error)),
        }
    }
}

/// Runs the body and records what it returned. An error of ours is the refusal of the step.
async fn finish<T, E, P, K, F, Fut>(
    mut permit: Permit,
    typed: Typed<P, K>,
    body: F,
    asking: &Asking,
) -> Result<Result<T, E>, Error>
where
    F: FnOnce(StepContext) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: FromRefusal,
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    let (attempt, context) = (permit.attempt.clone(), permit.context());
    let within = context.within();
    let own = within.enter(async move { body(context).await });
    let mut own = INSIDE.scope(attempt, own).await;
    let is_refused = own.is_err() && within.is_refused();
    asking.note(is_refused);
    if let Err(error) = &own {
        let verdict = typed.on_error.verdict(error, Verdict::Release);
        if is_refused || verdict != Verdict::Replay {
            permit.has_no_outcome();
        }
        match verdict {
            Verdict::Replay if is_refused => return Ok(own),
            Verdict::Replay => {}
            Verdict::Release if P::RELEASES => {
                permit.tell(StepOutcome::Released);
                return Ok(own);
            }
            Verdict::Release => {
                return Box::pin(permit.record_release()).await.map(|()| own);
            }
            Verdict::Uncertain => {
                return Box::pin(permit.record_doubt()).await.map(|()| own);
            }
        }
    }
    let Some(outcome) = keep(&permit.place(), &typed, &mut own).await else {
        permit.has_no_outcome();
        return Ok(own);
    };
    let leads_elsewhere = K::LOADS && outcome.kind == OutcomeKind::Value;
    let reference = leads_elsewhere.then(|| outcome.clone());
    match Box::pin(permit.record(outcome)).await {
        Ok(None) => {}
        Ok(Some(stands)) => return read(&permit, &typed, stands.outcome.as_ref()).await,
        Err(error) => return Err(error),
    }
    match reference {
        // If it cannot be read back now, a replay may find what this load did not.
        Some(reference) => match decode(&permit.place(), &typed, reference).await {
            Ok(loaded) => Ok(loaded),
            Err(_) => Ok(own),
        },
        None => Ok(own),
    }
}

async fn read<T, E, P, K>(
    permit: &Permit,
    typed: &Typed<P, K>,
    outcome: Option<&RawOutcome>,
) -> Result<Result<T, E>, Error>
where
    P: OnError<E>,
    K: Keep<T> + Clone,
{
    replay(&permit.place(), &permit.described(), typed, outcome).await
}

impl<'a, T, E, Fut, F, P, K, U> IntoFuture for StepCall<'a, F, P, K, U>
where
    F: FnOnce(StepContext) -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    T: Send + 'a,
    E: FromRefusal + Send + 'a,
    P: OnError<E> + Send + Sync + 'a,
    K: Keep<T, Reading: Send> + Clone + Send + Sync + 'a,
    U: MayUndo<T, K> + Send + 'a,
{
    type Output = Result<T, E>;
    type IntoFuture = StepFuture<'a, T, E>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

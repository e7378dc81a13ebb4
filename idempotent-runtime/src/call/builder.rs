//! The method form, which applications and the layers for HTTP and queues write.

use std::{future::Future, sync::Arc};

use crate::{
    attempt::Attempt,
    drive::run,
    duration::IntoDuration,
    error::Error,
    handle::Idempotency,
    key::KeyPart,
    observe::CallReport,
    outcome::{
        Classified, FromRefusal, Keep, LeftUncertain, OnError, Outcome, Recorded, Reference,
        Released, Replayed, Upgraded, Whole,
    },
    policy::{InFlight, OnCrash, OnExpired, OnMissingKey, OnOutage, Reconciled},
    request::{Call, Fingerprintable},
    run::{Typed, run_detached},
    value::setters,
};

/// A call in the method form: it has one method for each argument of the attribute.
///
/// The body returns a `Result` whose error has `From<`[`Error`]`>`, because a duplicate may get no
/// answer. Value and error have serde's traits, except for an error that is not recorded
/// ([`release_errors`](Self::release_errors), [`uncertain_errors`](Self::uncertain_errors), or
/// [`Unrecorded`](crate::Unrecorded) from a classifier) and a value of which only a
/// [`reference`](Self::reference) is recorded.
///
/// Its parameters are what becomes of an `Err`, and how much of a value is kept. Left out, they are
/// those of [`Idempotency::call`](crate::Idempotency::call), so that a function can give a call
/// back; the others stand in [`call`](crate::call):
///
/// ```
/// use idempotent_runtime::{CallBuilder, Idempotency, call::Released};
///
/// fn charge_of(idem: &Idempotency, order: u64) -> CallBuilder {
///     idem.call("payments.charge").key(&order).ttl("7d")
/// }
///
/// fn reservation_of(idem: &Idempotency, order: u64) -> CallBuilder<Released> {
///     idem.call("stock.reserve").key(&order).release_errors()
/// }
/// ```
#[derive(Debug)]
#[must_use = "a call does nothing until it is run"]
pub struct CallBuilder<P = Recorded, K = Whole> {
    pub(super) call: Call,
    pub(super) typed: Typed<P, K>,
}

impl CallBuilder<Recorded, Whole> {
    pub(crate) fn new(handle: &Idempotency, name: Arc<str>) -> Self {
        let mut call = Call::named(name);
        call.handle(handle);
        let typed = Typed::whole(Recorded);
        Self { call, typed }
    }
}

impl<P, K> CallBuilder<P, K> {
    /// Sets the key. Without one, the fingerprint of the arguments is the key; without arguments
    /// either, the call is refused with
    /// [`Error::InvalidPolicy`].
    pub fn key<T: KeyPart + ?Sized>(mut self, key: &T) -> Self {
        self.call.key(key);
        self
    }

    /// Sets the scope: tenant, user, consumer. It is a part of the identity.
    pub fn scope<T: KeyPart + ?Sized>(mut self, scope: &T) -> Self {
        self.call.scope(scope);
        self
    }

    /// Sets what must be equal in a retry.
    pub fn arguments<T: Fingerprintable + ?Sized>(mut self, arguments: &T) -> Self {
        self.call.whole("arguments", arguments);
        self
    }

    /// Adds an argument that must be equal in a retry, by name, so that [`Error::KeyReused`] can
    /// name it.
    pub fn argument<T: Fingerprintable + ?Sized>(mut self, name: &'static str, value: &T) -> Self {
        self.call.argument(name, value);
        self
    }

    setters! {
        /// Sets how long the outcome answers duplicates: `"24h"`, or a `Duration`.
        ttl(it, ttl: impl IntoDuration) { it.call.duration(ttl, |policy| &mut policy.ttl) }

        /// Sets how long the holder may be silent: `"30s"`, or a `Duration`. The shortest is 100
        /// milliseconds, except by a manual clock.
        lease(it, lease: impl IntoDuration) { it.call.duration(lease, |policy| &mut policy.lease) }

        /// Sets what a duplicate does while the first call runs.
        in_flight(it, in_flight: InFlight) { it.call.in_flight(in_flight) }

        /// Sets what becomes of a record whose holder vanished: `Rerun` or `Uncertain`. For
        /// `Reconcile`, give
        /// [`reconcile`](Self::reconcile) the function to ask.
        on_crash(it, on_crash: OnCrash) {
            if on_crash == OnCrash::Reconcile {
                it.call.refuse(Error::InvalidPolicy(
                    "`reconcile` needs a function to ask: use `reconcile(…)`",
                ));
            }
            it.call.policy().on_crash = Some(on_crash);
        }

        /// Sets what becomes of a call whose key, or a part of it, is `None`.
        on_missing_key(it, on_missing_key: OnMissingKey) {
            it.call.policy().on_missing_key = Some(on_missing_key);
        }

        /// Sets what becomes of the call when the store cannot be reached at the claim.
        on_outage(it, on_outage: OnOutage) { it.call.policy().on_outage = Some(on_outage) }

        /// Sets what becomes of the call where its outcome has expired, while its record is
        /// [kept](crate::handle::Builder::audit_retention), without which nothing can be refused.
        /// Every handle that purges the store must keep it for as long.
        on_expired(it, on_expired: OnExpired) { it.call.policy().on_expired = on_expired }

        /// Sets the schema version of the outcome.
        version(it, version: u32) { it.call.policy().version = version }

        /// Sets the operation's name in an older build, under which it is also looked up.
        also_accept_name(it, name: &str) { it.call.also_accept_name(name) }
    }

    /// Sets the key in an older build, under which the call is also looked up.
    pub fn also_accept_key<T: KeyPart + ?Sized>(mut self, key: &T) -> Self {
        self.call.also_accept_key(key);
        self
    }

    /// Runs this one call without touching the store. A warning says so.
    pub fn unprotected(mut self) -> Self {
        self.call.opt_out();
        self
    }

    /// An `Err` is the outcome, whatever the handle's default is. In a transaction of the
    /// application's it has to be said: see [`run_in`](Self::run_in).
    pub fn record_errors(self) -> CallBuilder<Replayed, K> {
        self.with(|typed| typed.with_on_error(Replayed))
    }

    /// An `Err` says that nothing happened: the record is released, and a retry runs again.
    pub fn release_errors(self) -> CallBuilder<Released, K> {
        self.with(|typed| typed.with_on_error(Released))
    }

    /// An `Err` says that it is unknown what happened: the record becomes *uncertain*.
    pub fn uncertain_errors(self) -> CallBuilder<LeftUncertain, K> {
        self.with(|typed| typed.with_on_error(LeftUncertain))
    }

    /// A function from `&E` to [`Verdict`](crate::Verdict) or [`Unrecorded`](crate::Unrecorded)
    /// decides, error by error.
    pub fn classify_errors<F>(self, classify: F) -> CallBuilder<Classified<F>, K> {
        self.with(|typed| typed.with_on_error(Classified(classify)))
    }

    /// Reads what older versions of the program stored.
    ///
    /// # Examples
    ///
    /// The closure's argument needs its type, [`Stored`](crate::Stored): the compiler looks inside
    /// the closure before it knows.
    ///
    /// ```
    /// use idempotent_runtime::{Error, Idempotency, Stored};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let idem = Idempotency::memory();
    /// // An older build stored a number of cents.
    /// idem.call("prices.quote").key("k").run(|_| async { Ok::<u64, Error>(1_250) }).await?;
    ///
    /// let price = idem
    ///     .call("prices.quote")
    ///     .key("k")
    ///     .version(1)
    ///     .upgrade(|stored: Stored| Ok(format!("{} cents", stored.decode::<u64>()?)))
    ///     .run(|_| async { Ok::<_, Error>("1250 cents".to_owned()) })
    ///     .await?;
    /// assert_eq!(price, "1250 cents");
    /// # Ok(()) }
    /// ```
    pub fn upgrade<F>(self, upgrade: F) -> CallBuilder<P, Upgraded<F>> {
        self.with(|typed| typed.with_keep(Upgraded(upgrade)))
    }

    /// Stores only what `save` makes of the value, and reads the value back with `load`.
    pub fn reference<S, L>(self, save: S, load: L) -> CallBuilder<P, Reference<S, L>> {
        self.with(|typed| typed.with_keep(Reference(save, load)))
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// The body's own, recorded or not, or one of ours when there is no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, it changes nothing. Dropped after the body was polled, the body
    /// stops, and `on_crash` applies as soon as that is written: in the background, usually within
    /// milliseconds. Until then a duplicate waits, or, with [`InFlight::Reject`], still sees it
    /// running. See [`run_detached`](Self::run_detached).
    pub async fn run<R, F, B>(self, body: F) -> R
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = R>,
    {
        self.run_detailed(body).await.0
    }

    /// Runs the call and tells how the result came about.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_detailed<R, F, B>(self, body: F) -> (R, CallReport)
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = R>,
    {
        run(self.call.describe(), self.typed, body).await
    }

    /// Runs the body in a task of its own: once the key is claimed, this future may be dropped, and
    /// the call runs on and is recorded.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, once the key is claimed: nothing has run, and the key is free
    /// again.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the key is claimed, it leaves nothing behind. Dropped later, it changes
    /// nothing: the call runs on and is recorded. If the runtime itself shuts down, the body stops
    /// as under [`run`](Self::run); a caller that waits on a thread of its own, as in
    /// `Handle::block_on`, is told [`Error::Stopped`].
    pub async fn run_detached<R, F, B>(self, body: F) -> R
    where
        R: Outcome + Send + 'static,
        R::Value: Send,
        R::Error: FromRefusal + Send,
        P: OnError<R::Error> + Send + Sync + 'static,
        K: Keep<R::Value, Reading: Send> + Clone + Send + Sync + 'static,
        F: FnOnce(Attempt) -> B + Send + 'static,
        B: Future<Output = R> + Send + 'static,
    {
        run_detached(self.call.describe(), self.typed, body).await.0
    }

    /// Runs the call, and asks `ask` what became of an attempt that vanished before the body may
    /// run again.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and what `ask` answers as [`Reconciled::Failed`].
    /// [`Error::Uncertain`] where it answers
    /// [`Reconciled::Unknown`].
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, it changes nothing. Dropped while `ask` or the body runs, either
    /// stops, and the record becomes *uncertain* as soon as that is written; the next call asks
    /// again.
    pub async fn reconcile<R, A, Q, F, B>(mut self, ask: A, body: F) -> R
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        A: FnOnce(Attempt) -> Q,
        Q: Future<Output = Reconciled<R::Value, R::Error>>,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = R>,
    {
        self.call.policy().on_crash = Some(OnCrash::Reconcile);
        self.run(|attempt| async move {
            let asked = attempt.clone();
            match run::reconcile::<R, _, _>(|| ask(asked)).await {
                Some(answer) => answer,
                None => body(attempt).await,
            }
        })
        .await
    }

    fn with<Q, L>(self, change: impl FnOnce(Typed<P, K>) -> Typed<Q, L>) -> CallBuilder<Q, L> {
        let (call, typed) = (self.call, change(self.typed));
        CallBuilder { call, typed }
    }
}

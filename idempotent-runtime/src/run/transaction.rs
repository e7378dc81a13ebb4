//! A call as a part of a transaction of the application's: its record commits and rolls back with the rows of the body.
//!
//! Nobody else sees what is written before the commit. So nothing beats, nothing is given up and nothing is tried again here:
//! whoever comes meanwhile waits in the database, and where the transaction ends without a commit, there was no call.

use std::{any::Any, pin::pin, sync::Arc};

use crate::{
    attempt::{Attempt, Stage, is_held},
    error::Error,
    lease::{Ending, Holding, Meaning, first},
    observe::{How, Step},
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::OnCrash,
    record::Version,
    request::{Protection, Request},
    run::{
        admit::{Admission, Admitting, Next},
        ending::step,
        typed::{Typed, reference},
        underway::{Instead, Underway, executed, within},
    },
    store::{SqlConnection, StoreError, StoreErrorKind, Swap, check_open},
};

/// A claim that stands in a transaction.
pub(crate) struct Claimed {
    attempt: Attempt,
    holding: Holding,
    version: Version,
}

/// Runs a call as a part of a transaction.
pub(crate) async fn run_in<C, R, P, K, F>(
    mut request: Box<Request>,
    typed: Typed<P, K>,
    connection: &mut C,
    body: F,
) -> (R, How)
where
    C: SqlConnection,
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    F: AsyncFnOnce(&mut C) -> R,
{
    let prepared = request.in_transaction(connection);
    let mut call = Underway::new(request);
    let admitted = match prepared {
        Ok(()) => call.admit_in(connection.connection()).await,
        Err(error) => Err(Instead::Refused(error)),
    };
    let (attempt, claimed) = match admitted {
        Ok(admitted) => admitted,
        Err(instead) => return typed.instead(&mut call, instead).await,
    };
    let own = {
        let body = pin!(Some(call.make(&attempt, |_| body(&mut *connection))));
        call.run(&attempt, body).await
    };
    let claimed = claimed.as_ref();
    typed
        .answer_in(&mut call, own, &attempt, claimed, connection.connection())
        .await
}

impl Request {
    /// Makes it one that a transaction can hold.
    fn in_transaction(&mut self, connection: &impl SqlConnection) -> Result<(), Error> {
        if let Protection::Record(claim) = &mut self.protection {
            check_open(connection)?;
            // A crash takes the record along. What another way of calling left behind is for its own policy.
            claim.on_crash = OnCrash::Rerun;
            self.on_crash = OnCrash::Rerun;
        }
        Ok(())
    }
}

impl Admitting<'_> {
    async fn admit_in(&mut self, connection: &mut (dyn Any + Send)) -> Result<Claimed, Admission> {
        let (request, claim) = (self.request, self.claim);
        let (store, timer) = (request.handle.store(), request.handle.timer());
        let failed = |error: StoreError| Admission::Refused(error.into());
        if let Some(old) = request.old_id {
            let loaded = store.load_in(connection, &old).await;
            self.identify_by(old, &loaded.map_err(failed)?);
        }
        let operation = || Arc::clone(&request.operation);
        if is_held(&self.id) {
            let operation = operation();
            return Err(Admission::Refused(Error::Recursive { operation }));
        }
        let mut draft = first(claim, Version::random());
        let (mut seen, mut meaning) = (None, Meaning::Fresh);
        loop {
            // Whoever commits a body that stopped half-way commits half of its rows: nobody may run it again by himself.
            draft.on_crash = OnCrash::Uncertain;
            let sent = timer.now();
            let swapped = store.swap_in(connection, &self.id, seen, &draft).await;
            let snapshot = match swapped.map_err(failed)? {
                Swap::Refused(snapshot) => snapshot,
                Swap::Applied(stamp) => {
                    let step = match meaning {
                        Meaning::Takeover => Step::TakenOver,
                        _ => Step::Claimed,
                    };
                    let (id, number, token) = (self.id, draft.attempt, Some(stamp.token));
                    let observers = request.handle.observers();
                    observers.transition(&request.operation, &id, number, step);
                    return Ok(Claimed {
                        attempt: Attempt::new(id, operation(), number, token, Stage::Body),
                        holding: Holding::new(claim, number, draft.on_crash, meaning),
                        version: stamp.version,
                    });
                }
            };
            let refusal = match self.decide(&snapshot, sent) {
                Next::Write(next) => match next.2 {
                    Meaning::Fresh | Meaning::Takeover | Meaning::Reconcile => {
                        (seen, draft, meaning) = *next;
                        continue;
                    }
                    // That is for a call outside to write: here it would only be rolled back.
                    Meaning::Park => Error::Parked {
                        operation: operation(),
                        attempts: next.1.attempt,
                    },
                    Meaning::LeaveUncertain => Error::Uncertain {
                        operation: operation(),
                    },
                },
                Next::Done(admission) => return Err(admission),
                // Not with a transaction open, whose locks may be what the other one waits for.
                Next::Wait(record, left) => self.in_progress(&record, snapshot.now, left),
            };
            return Err(Admission::Refused(refusal));
        }
    }
}

impl Underway {
    /// Claims inside a transaction: the attempt that is to run the body, with its claim where it has one, or what answers instead.
    async fn admit_in(
        &mut self,
        connection: &mut (dyn Any + Send),
    ) -> Result<(Attempt, Option<Claimed>), Instead> {
        let admitted = match &self.request.protection {
            Protection::Record(claim) => {
                let mut admitting = Admitting::new(&self.request, claim);
                within(self.span(), pin!(admitting.admit_in(connection))).await
            }
            Protection::None(why) => Err(Admission::Unprotected(*why)),
        };
        match admitted {
            Ok(claimed) => Ok((claimed.attempt.clone(), Some(claimed))),
            Err(admission) => self.admitted(admission).map(|attempt| (attempt, None)),
        }
    }

    /// Writes how the body ended, to stand from the commit on.
    async fn end_in(
        &mut self,
        connection: &mut (dyn Any + Send),
        claimed: &Claimed,
        ending: &Ending,
    ) -> Result<(), Error> {
        let Claimed {
            attempt,
            holding,
            version,
        } = claimed;
        let draft = holding.end(ending, Version::random());
        let request = &self.request;
        let swapping =
            request
                .handle
                .store()
                .swap_in(connection, attempt.id(), Some(*version), &draft);
        match within(self.span(), pin!(swapping)).await? {
            Swap::Applied(_) => {}
            Swap::Refused(_) => {
                let source =
                    "the body has rolled the transaction back to where the call had not begun";
                let error = StoreError::new(StoreErrorKind::Other, "writing a record");
                return Err(error.with_source(source).into());
            }
        }
        let (operation, step) = (attempt.operation(), step(ending, draft.state));
        request
            .handle
            .observers()
            .transition(operation, attempt.id(), attempt.number(), step);
        self.executed(attempt, executed(holding.meaning(), attempt.stage()), true);
        Ok(())
    }
}

impl<P, K> Typed<P, K> {
    /// What the caller gets whose body returned `own`; an error of ours where nothing of it can be recorded.
    async fn answer_in<R>(
        &self,
        call: &mut Underway,
        own: R,
        attempt: &Attempt,
        claimed: Option<&Claimed>,
        connection: &mut (dyn Any + Send),
    ) -> (R, How)
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
    {
        let mut own = own.into_result();
        let ending = self.leave(call, attempt, &mut own).await;
        let Some(claimed) = claimed else {
            return self.own(call, attempt, own, None).await;
        };
        let reference = reference::<K, _>(&ending);
        match call.end_in(connection, claimed, &ending).await {
            Ok(()) => self.own(call, attempt, own, reference).await,
            // What failed in the body is why nothing more can be written there.
            Err(_) if own.is_err() => (R::from_result(own), call.answered(None)),
            Err(error) => self.instead(call, Instead::Refused(error)).await,
        }
    }
}

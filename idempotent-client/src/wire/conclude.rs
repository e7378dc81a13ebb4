//! The end of a call: the answer to the caller, and the entry in the journal.

use reqwest::Response;
use reqwest_middleware::Result;

use crate::error::{CallSummary, ClientError};
use crate::journal::Ending;
use crate::journal::finish::{self, Meaning};
use crate::key::ClientKey;
use crate::outcome::{ClientOutcome, Origin};
use crate::policy::decide::{StopReason, Stopped};
use crate::wire::answer::Read;
use crate::wire::attempts::Attempted;
use crate::wire::failure::was_not_sent;
use crate::wire::send::{KeyedCall, Sending};

impl Sending<'_> {
    /// Hands over the result of the last attempt, and tells the journal what that means.
    pub(crate) async fn hand_on(
        mut self,
        attempted: Attempted,
        meaning: Meaning,
    ) -> Result<Response> {
        match attempted {
            Attempted::Answered(mut read) => {
                let keyed = self.keyed.take();
                let mut unrecorded = false;
                if let Some(keyed) = &keyed {
                    unrecorded = !self.tell(keyed, &read, meaning).await;
                    if unrecorded && meaning == Meaning::NotDone {
                        return Err(self.taken_up(keyed, Attempted::Answered(read)).into());
                    }
                }
                let key = keyed.map(|keyed| keyed.key().clone());
                let mut outcome = self.outcome(key, &read);
                outcome.unrecorded = unrecorded;
                read.response.extensions_mut().insert(outcome);
                Ok(read.response)
            }
            Attempted::Failed(error) => {
                if let Some(keyed) = self.keyed.take()
                    && !self.may_have_happened
                    && was_not_sent(&error)
                    && !finish::nothing_happened(&self, &keyed).await
                {
                    return Err(self.taken_up(&keyed, Attempted::Failed(error)).into());
                }
                self.watched.fails_inside();
                Err(error)
            }
            Attempted::TimedOut => Err(ClientError::TimedOut.into()),
        }
    }

    /// Tells the journal what the last attempt means, and answers whether it knows that by the
    /// deadline.
    async fn tell(&self, keyed: &KeyedCall, read: &Read, meaning: Meaning) -> bool {
        match meaning {
            Meaning::Outcome => finish::answered(self, keyed, read).await,
            Meaning::NotDone if !self.may_have_happened => {
                finish::nothing_happened(self, keyed).await
            }
            // The call can be resumed with its key.
            Meaning::NotDone | Meaning::Open => true,
        }
    }

    /// The error of a call that did nothing here, and that may still be sent from the journal.
    fn taken_up(&self, keyed: &KeyedCall, attempted: Attempted) -> ClientError {
        let call = self.ended(keyed, attempted);
        ClientError::Unknown {
            why: StopReason::Journal,
            call,
        }
    }

    fn outcome(&self, key: Option<ClientKey>, read: &Read) -> ClientOutcome {
        ClientOutcome {
            key,
            attempts: self.attempts,
            replayed: read.is_replayed(),
            origin: Origin::Server,
            key_status: read.key_status(),
            unrecorded: false,
        }
    }

    /// Ends a call that has no outcome.
    pub(crate) async fn stop(mut self, stopped: Stopped, attempted: Attempted) -> Result<Response> {
        let Some(keyed) = self.keyed.take() else {
            return self.hand_on(attempted, Meaning::Open).await;
        };
        let (mut may_be_told, mut recorded) = (true, true);
        match stopped {
            Stopped::KeyReused => recorded = finish::ended(&self, &keyed, Ending::Burned).await,
            Stopped::ResultGone => recorded = finish::ended(&self, &keyed, Ending::Gone).await,
            Stopped::Unsupported => {
                // A bare 501 may be about one route only, or about something else.
                if let Attempted::Answered(read) = &attempted
                    && read.problem().kind.is_some()
                {
                    self.inner.note_ignored_key(self.origin);
                }
                if !self.may_have_happened {
                    may_be_told = finish::nothing_happened(&self, &keyed).await;
                }
            }
            // A caller that is told that it did not happen may do something else meanwhile, so it
            // must not be sent later.
            Stopped::Exhausted(_) => {
                may_be_told = finish::nothing_happened(&self, &keyed).await;
            }
            // Left open, it would count as a call that may have happened. It would not be sent
            // again, or not be reported as a call that did nothing.
            Stopped::RetryLater(_)
                if !self.may_have_happened && (self.is_unprotected() || !keyed.journaled) =>
            {
                recorded = finish::nothing_happened(&self, &keyed).await;
            }
            // It can be resumed with its key.
            Stopped::Unknown(_) | Stopped::RetryLater(_) => {}
        }
        if !may_be_told {
            return Err(self.taken_up(&keyed, attempted).into());
        }
        let mut call = self.ended(&keyed, attempted);
        call.unrecorded = !recorded;
        Err(match stopped {
            Stopped::KeyReused => ClientError::KeyReused { call },
            Stopped::Unknown(why) => ClientError::Unknown { why, call },
            Stopped::Exhausted(why) => ClientError::Exhausted { why, call },
            Stopped::RetryLater(after) => ClientError::RetryLater { after, call },
            Stopped::ResultGone => ClientError::ResultGone { call },
            Stopped::Unsupported => ClientError::Unsupported { call },
        }
        .into())
    }

    pub(crate) fn ended(&self, keyed: &KeyedCall, attempted: Attempted) -> Box<CallSummary> {
        let mut ended = CallSummary::unsent(keyed.key().clone());
        ended.attempts = self.attempts;
        match attempted {
            Attempted::Answered(read) => {
                ended.operation_ref = read.problem().operation_ref;
                ended.answer = Some(read.into_answer());
            }
            Attempted::Failed(error) => ended.failure = Some(error),
            Attempted::TimedOut => {}
        }
        ended
    }
}

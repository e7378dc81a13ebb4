//! The attempts of a call, one after the other, until one of them tells how it ended or it cannot
//! be known.

use std::{error::Error as StdError, sync::atomic::Ordering, time::Duration};

use http::{Extensions, Method, StatusCode};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Next, Result};

use crate::error::ClientError;
use crate::headers::is_replayed;
use crate::journal::finish::{self, Meaning};
use crate::observe::AttemptResult;
use crate::outcome::KeyStatus;
use crate::policy::decide::{self, Observed, Progress, Protection};
use crate::policy::profile::Support;
use crate::policy::redirect::{self, TooMany};
use crate::wire::answer::{LedHere, Read};
use crate::wire::body::Changed;
use crate::wire::deadline::before;
use crate::wire::failure;
use crate::wire::outer_retry;
use crate::wire::send::{KeyedCall, Sending};

/// The result of an attempt.
#[derive(Debug)]
pub(crate) enum Attempted {
    Answered(Read),
    Failed(Error),
    /// The time to wait was over.
    TimedOut,
}

impl Sending<'_> {
    pub(crate) async fn attempt_until_known(
        mut self,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        if let Some(stopped) = decide::too_late(self.deadline, &self.progress()) {
            return self.stop(stopped, Attempted::TimedOut).await;
        }
        loop {
            self.attempts += 1;
            let sent = self.watched.sends();
            let request = self.request.next();
            let attempted = self.bounded(request, extensions, next.clone()).await;
            let attempted = self.goes_on_after(attempted, sent)?;
            let observed = self.observe(&attempted);
            let decided = self.decide(&observed);
            self.watched
                .attempted(sent, (&observed).into(), decided.pause());
            match decided {
                decide::Next::Return => {
                    let meaning = finish::meaning(&attempted);
                    if meaning == Meaning::Outcome {
                        self.forget_mark(extensions);
                    }
                    return self.hand_on(attempted, meaning).await;
                }
                decide::Next::GiveUp(happened) => {
                    return self.hand_on(attempted, happened.into()).await;
                }
                decide::Next::Stop(stopped) => return self.stop(stopped, attempted).await,
                decide::Next::RetryAfter(pause) => {
                    if observed.is_running() {
                        self.waits += 1;
                    } else {
                        self.inner.withdraw(self.origin);
                    }
                    self.inner.timer.sleep(pause).await;
                    if let Some(stopped) = decide::too_old(self.profile, &self.progress()) {
                        return self.stop(stopped, attempted).await;
                    }
                }
            }
        }
    }

    /// The attempt, unless it has left the origin or changed its body: then the call ends.
    fn goes_on_after(&mut self, attempted: Attempted, sent: Duration) -> Result<Attempted> {
        let has_changed = matches!(
            &attempted,
            Attempted::Failed(error) if failure::causes(error).any(<dyn StdError>::is::<Changed>)
        );
        let has_left = self.left_origin(&attempted);
        match self.keyed.take_if(|_| has_left || has_changed) {
            Some(keyed) => {
                self.watched.attempted(sent, AttemptResult::Failed, None);
                let call = self.ended(&keyed, attempted);
                Err(match has_left {
                    true => ClientError::LeftOrigin { call },
                    false => ClientError::BodyChanged { call },
                }
                .into())
            }
            None => Ok(attempted),
        }
    }

    /// Decides what follows an attempt, and remembers what it says of the call.
    fn decide(&mut self, observed: &Observed) -> decide::Next {
        self.may_have_happened |= self.led_on.load(Ordering::Relaxed);
        let progress = self.progress();
        let limits = &self.inner.settings.limits;
        let limits = limits.clone().deadline(self.deadline);
        let jitter = rand::random();
        let next = decide::decide(self.profile, &limits, &progress, observed, jitter);
        self.may_have_happened |= observed.may_have_happened(self.profile, &progress);
        if let Observed::Answer(answer) = observed {
            self.was_early |= answer.status == StatusCode::TOO_EARLY;
        }
        next
    }

    fn forget_mark(&self, extensions: &mut Extensions) {
        if let Some(keyed) = &self.keyed {
            outer_retry::forget(extensions, keyed.key());
        }
    }

    /// One attempt, for as long as the deadline leaves.
    async fn bounded(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Attempted {
        let left = self.deadline.saturating_sub(self.elapsed());
        let limits = &self.inner.settings.limits;
        let left = limits.attempt_timeout.map_or(left, |most| most.min(left));
        let end = self.inner.timer.now().saturating_add(left);
        let attempt = self.attempt(request, extensions, next);
        let attempted = before(&*self.inner.timer, end, attempt).await;
        attempted.unwrap_or(Attempted::TimedOut)
    }

    async fn attempt(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Attempted {
        match self.follow(request, extensions, next).await {
            Ok(response) if self.keyed.is_some() || response.status().as_u16() >= 400 => {
                match Read::whole(response).await {
                    Ok(mut read) => {
                        read.hide(&self.profile.header);
                        Attempted::Answered(read)
                    }
                    Err(error) => Attempted::Failed(error.into()),
                }
            }
            Ok(response) => Attempted::Answered(Read {
                response,
                body: None,
            }),
            Err(error) => Attempted::Failed(error),
        }
    }

    /// Sends a request, and the one that the server asks for in its place, without the key.
    async fn follow(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let mut asked = self.request.head();
        let mut response = next.clone().run(request, extensions).await?;
        let mut hops = 0;
        let mut by_replay = false;
        while let Some(other) = redirect::see_other(&asked, &response, &self.profile.header) {
            self.led_on.store(true, Ordering::Relaxed);
            hops += 1;
            if hops > redirect::MOST {
                return Err(Error::middleware(TooMany));
            }
            asked = other.try_clone().expect("it has no body");
            by_replay |= is_replayed(response.headers());
            response = next.clone().run(other, extensions).await?;
        }
        if hops > 0 {
            response.extensions_mut().insert(LedHere { by_replay });
        }
        Ok(response)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.inner.timer.now().saturating_sub(self.begun)
    }

    fn progress(&self) -> Progress {
        Progress {
            attempts: self.attempts,
            waits: self.waits,
            elapsed: self.elapsed(),
            key_age: self.key_age(),
            keyed: self.keyed.is_some(),
            protection: self.protection(),
            deletes: self.request.request().method() == Method::DELETE,
            may_have_happened: self.may_have_happened,
            led_on: self.led_on.load(Ordering::Relaxed),
            was_early: self.was_early,
            repeatable: self.request.is_repeatable(),
            budget_left: self.inner.has_budget(self.origin),
        }
    }

    /// By the timer, which no change of the time of day disturbs, or by the clock, which goes on
    /// while the machine sleeps: the server's time goes on, too.
    fn key_age(&self) -> Duration {
        self.keyed.as_ref().map_or(Duration::ZERO, |keyed| {
            let passed = self.inner.timer.now().saturating_sub(keyed.given);
            let by_timer = keyed.age.saturating_add(passed);
            by_timer.max(self.inner.clock.now().since(keyed.created))
        })
    }

    /// The server's own word counts for more than the profile.
    pub(crate) fn protection(&self) -> Protection {
        let has_key = self.protection.is_key();
        if has_key && self.inner.ignores_keys(self.origin) {
            Protection::of(self.request.request().method()).with_key(Support::Undeclared)
        } else {
            self.protection
        }
    }

    /// Sent again, the call might be done again.
    pub(crate) fn is_unprotected(&self) -> bool {
        !self.protection().repeats()
    }

    fn observe(&self, attempted: &Attempted) -> Observed {
        match attempted {
            Attempted::Answered(read) => {
                if self.keyed.is_some() && read.key_status() == KeyStatus::Ignored {
                    self.inner.note_ignored_key(self.origin);
                }
                Observed::Answer(read.answered(self.profile, &*self.inner.clock))
            }
            Attempted::Failed(error) => {
                failure::observed(error, self.keyed.as_ref().map(KeyedCall::key))
            }
            Attempted::TimedOut => Observed::Lost,
        }
    }

    /// The client beneath followed a redirect of its own, and took the key along.
    fn left_origin(&self, attempted: &Attempted) -> bool {
        let Attempted::Answered(read) = attempted else {
            return false;
        };
        let asked = self.request.request().url();
        let answered = read.response.url();
        // A response that another middleware made up comes from nowhere.
        let made_up = answered.host_str() == Some("no.url.provided.local");
        self.keyed.is_some() && !made_up && !redirect::same_origin(asked, answered)
    }
}

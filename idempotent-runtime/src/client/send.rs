//! One call, from its key to its outcome.

use std::{error::Error as StdError, io, sync::Arc, time::Duration};

use http::{Extensions, HeaderName, HeaderValue, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Next, Result};

use super::{
    answer::{Read, ReplayLedHere, is_replayed},
    begin::{Begun, begin},
    body::{Changed, Repeatable},
    call::{Call, Keyed, Source},
    decide::{self, Observed, Progress, Protection, Stopped},
    error::{ClientError, Ended},
    finish,
    journal::{Ending, EntryId},
    key::{InvalidKey, Key},
    keys::{Inner, Live},
    outcome::{KeyStatus, Origin, Outcome},
    profile::{Profile, Support},
    redirect::{self, TooMany},
};

/// A call on its way.
#[derive(Debug)]
pub(super) struct Sending<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) profile: &'a Profile,
    pub(super) origin: String,
    pub(super) call: Call,
    pub(super) request: Repeatable,
    pub(super) keyed: Option<KeyedCall>,
    protection: Protection,
    pub(super) deadline: Duration,
    begun: Duration,
    attempts: u32,
    was_early: bool,
    may_have_happened: bool,
}

/// What a call has that has a key.
#[derive(Debug)]
pub(super) struct KeyedCall {
    pub(super) live: Live,
    /// How old the key was when the call began.
    pub(super) age: Duration,
    /// The call stands in the journal.
    pub(super) journaled: bool,
    /// The caller can name the key again, so that it is worth remembering how the call ended.
    pub(super) named: bool,
}

impl KeyedCall {
    pub(super) fn key(&self) -> &Key {
        &self.live.id.key
    }
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Attempted {
    Answered(Read),
    Failed(Error),
    /// Nobody waited any longer.
    TimedOut,
}

/// The key that an earlier pass of the same call through this middleware was given, by another one outside that retries.
#[derive(Clone, Debug)]
struct Stash {
    digest: [u8; 32],
    key: Key,
    since: Duration,
}

pub(super) async fn send(
    inner: &Arc<Inner>,
    request: Request,
    extensions: &mut Extensions,
    next: Next<'_>,
) -> Result<Response> {
    let call = extensions.get::<Call>().cloned().unwrap_or_default();
    let origin = request.url().origin().ascii_serialization();
    let profile = inner.settings.profile(&origin);
    let written = written_key(&request, &profile.header)?;
    let wants_key = wants_key(&call, request.method(), written.as_ref());
    let limit = if wants_key {
        inner.settings.longest_frozen
    } else {
        0
    };
    let request = Repeatable::new(request, call.factory.as_ref(), limit).await?;
    let mut sending = Sending {
        inner,
        profile,
        protection: Protection::of(request.request().method()),
        deadline: call.deadline.unwrap_or(inner.settings.limits.deadline),
        begun: inner.timer.now(),
        origin,
        call,
        request,
        keyed: None,
        attempts: 0,
        was_early: false,
        may_have_happened: false,
    };
    if wants_key && let Some(stored) = sending.give_key(written, extensions).await? {
        return Ok(stored);
    }
    sending.inner.deposit(&sending.origin);
    sending.attempt_until_known(extensions, next).await
}

/// The key that the caller wrote into the header.
fn written_key(request: &Request, name: &HeaderName) -> Result<Option<Key>> {
    let mut lines = request.headers().get_all(name).iter();
    let first = lines.next().map(Key::from_header);
    match lines.count() {
        0 => Ok(first.transpose().map_err(ClientError::from)?),
        more => Err(ClientError::from(InvalidKey::Doubled(more + 1)).into()),
    }
}

fn wants_key(call: &Call, method: &Method, written: Option<&Key>) -> bool {
    let reads = matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    );
    let repeats = matches!(*method, Method::PUT | Method::DELETE);
    let named = written.is_some() || !matches!(call.source, Source::Random);
    match call.keyed {
        _ if reads => false,
        Keyed::Never => written.is_some(),
        Keyed::Always => true,
        Keyed::ByMethod => named || !repeats,
    }
}

impl Protection {
    /// What the method promises by itself.
    fn of(method: &Method) -> Self {
        if method.is_idempotent() {
            Protection::Method
        } else {
            Protection::None
        }
    }
}

impl Sending<'_> {
    /// Gives the call its key, writes it down, and hands back the response where the journal has it already.
    async fn give_key(
        &mut self,
        written: Option<Key>,
        extensions: &mut Extensions,
    ) -> Result<Option<Response>> {
        let now = self.inner.timer.now();
        let named = written.is_some() || !matches!(self.call.source, Source::Random);
        let stash = extensions.get::<Stash>();
        let stash = stash.filter(|stash| Some(stash.digest) == self.request.digest);
        let (key, since) = match (written, &self.call.source) {
            (Some(key), _) => {
                let headers = self.request.request_mut().headers_mut();
                headers.get_mut(&self.profile.header).map(sensitive);
                (key, now)
            }
            (None, Source::Given(key)) => (key.clone(), now),
            (None, Source::Intent(intent)) => {
                let namespace = &self.inner.settings.namespace;
                let key = Key::derived(namespace, &intent.operation, &intent.id);
                (key, now)
            }
            (None, Source::Random) => {
                stash.map_or_else(|| (Key::random(), now), |s| (s.key.clone(), s.since))
            }
        };
        let headers = self.request.request_mut().headers_mut();
        if !headers.contains_key(&self.profile.header) {
            let header = key.to_header(self.profile.style);
            headers.insert(&self.profile.header, header.map_err(ClientError::from)?);
        }
        if let Some(digest) = self.request.digest {
            extensions.insert(Stash {
                digest,
                key: key.clone(),
                since,
            });
        }
        let id = EntryId {
            origin: self.origin.clone(),
            key,
        };
        let Some(live) = self.inner.enter(id.clone()) else {
            let call = Ended::unsent(id.key);
            return Err(ClientError::InFlight { call }.into());
        };
        self.protection = self.profile.support().into();
        let mut keyed = KeyedCall {
            live,
            age: now.saturating_sub(since),
            journaled: named || self.inner.journals_all,
            named,
        };
        let begun = begin(self, &mut keyed).await?;
        self.keyed = Some(keyed);
        Ok(match begun {
            Begun::New => None,
            Begun::Again => {
                self.may_have_happened = true;
                None
            }
            Begun::Over(response) => Some(response),
        })
    }

    async fn attempt_until_known(
        mut self,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        loop {
            self.attempts += 1;
            let request = self.request.next();
            let attempted = self.bounded(request, extensions, next.clone()).await;
            if self.left_origin(&attempted)
                && let Some(keyed) = self.keyed.take()
            {
                let call = self.ended(&keyed, attempted);
                return Err(ClientError::LeftOrigin { call }.into());
            }
            if let Attempted::Failed(error) = &attempted
                && causes(error).any(<dyn StdError>::is::<Changed>)
                && let Some(keyed) = self.keyed.take()
            {
                let call = self.ended(&keyed, attempted);
                return Err(ClientError::BodyChanged { call }.into());
            }
            let observed = self.observe(&attempted);
            let progress = self.progress();
            let limits = &self.inner.settings.limits;
            let limits = limits.clone().deadline(self.deadline);
            let jitter = rand::random();
            let step = decide::decide(self.profile, &limits, &progress, &observed, jitter);
            let perhaps = observed.may_have_happened(self.profile, &progress);
            self.may_have_happened |= perhaps;
            if let Observed::Answer(answer) = &observed {
                self.was_early |= answer.status == http::StatusCode::TOO_EARLY;
            }
            match step {
                decide::Next::Return => {
                    // A retry out there would repeat the call; what comes after its outcome is another call.
                    if let Attempted::Answered(read) = &attempted
                        && finish::is_outcome(read)
                    {
                        extensions.remove::<Stash>();
                    }
                    return self.hand_on(attempted).await;
                }
                decide::Next::Stop(stopped) => return self.stop(stopped, attempted).await,
                decide::Next::RetryAfter(pause) => {
                    tracing::debug!(
                        attempt = self.attempts,
                        ?pause,
                        "sending the call again, with the same key"
                    );
                    self.inner.withdraw(&self.origin);
                    self.inner.timer.sleep(pause).await;
                }
            }
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
        let mut attempt = std::pin::pin!(self.attempt(request, extensions, next));
        let mut timeout = self.inner.timer.sleep(left);
        std::future::poll_fn(|context| {
            if let std::task::Poll::Ready(attempted) = attempt.as_mut().poll(context) {
                return std::task::Poll::Ready(attempted);
            }
            timeout.as_mut().poll(context).map(|()| Attempted::TimedOut)
        })
        .await
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
                    Ok(read) => Attempted::Answered(read),
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

    /// Sends a request, and what the server asks for in its place, without the key.
    async fn follow(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let mut asked = self.request.head();
        let mut response = next.clone().run(request, extensions).await?;
        let mut hops = 0;
        let mut replayed = false;
        while let Some(other) = redirect::see_other(&asked, &response, &self.profile.header) {
            hops += 1;
            if hops > redirect::MOST {
                return Err(Error::middleware(TooMany));
            }
            asked = other.try_clone().expect("it has no body");
            replayed |= is_replayed(response.headers());
            response = next.clone().run(other, extensions).await?;
        }
        if replayed {
            response.extensions_mut().insert(ReplayLedHere);
        }
        Ok(response)
    }

    fn elapsed(&self) -> Duration {
        self.inner.timer.now().saturating_sub(self.begun)
    }

    fn progress(&self) -> Progress {
        let ignored = self.keyed.is_some() && self.inner.ignores_keys(&self.origin);
        Progress {
            attempts: self.attempts,
            elapsed: self.elapsed(),
            key_age: self.keyed.as_ref().map_or(Duration::ZERO, |keyed| {
                keyed.age.saturating_add(self.elapsed())
            }),
            protection: if ignored {
                Support::Undeclared.into()
            } else {
                self.protection
            },
            may_have_happened: self.may_have_happened,
            was_early: self.was_early,
            repeatable: self.request.is_repeatable(),
            budget_left: self.inner.has_budget(&self.origin),
        }
    }

    fn observe(&self, attempted: &Attempted) -> Observed {
        match attempted {
            Attempted::Answered(read) => {
                if self.keyed.is_some() && read.ignores_key() {
                    self.inner.note_ignored_key(&self.origin);
                }
                Observed::Answer(read.answered(self.profile, &*self.inner.clock))
            }
            Attempted::Failed(error) => failed(error),
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

    /// Hands over what the last attempt showed: it is the outcome.
    async fn hand_on(mut self, attempted: Attempted) -> Result<Response> {
        match attempted {
            Attempted::Answered(mut read) => {
                if let Some(keyed) = self.keyed.take() {
                    finish::answered(self.inner, &keyed, &read, self.may_have_happened).await;
                    let outcome = self.outcome(Some(keyed.key().clone()), &read);
                    read.response.extensions_mut().insert(outcome);
                } else {
                    let outcome = self.outcome(None, &read);
                    read.response.extensions_mut().insert(outcome);
                }
                Ok(read.response)
            }
            Attempted::Failed(error) => {
                if let Some(keyed) = self.keyed.take()
                    && !self.may_have_happened
                    && transport(&error)
                        .is_some_and(|error| error.is_builder() || error.is_connect())
                {
                    finish::nothing_happened(self.inner, &keyed).await;
                }
                Err(error)
            }
            Attempted::TimedOut => Err(ClientError::TimedOut.into()),
        }
    }

    fn outcome(&self, key: Option<Key>, read: &Read) -> Outcome {
        Outcome {
            key,
            attempts: self.attempts,
            replayed: read.is_replayed(),
            origin: Origin::Server,
            key_status: if read.ignores_key() {
                KeyStatus::Ignored
            } else {
                KeyStatus::Unsaid
            },
        }
    }

    /// Ends a call that has no outcome.
    async fn stop(mut self, stopped: Stopped, attempted: Attempted) -> Result<Response> {
        let Some(keyed) = self.keyed.take() else {
            return self.hand_on(attempted).await;
        };
        match stopped {
            Stopped::KeyReused => finish::ended(self.inner, &keyed, Ending::Burned).await,
            Stopped::ResultGone => finish::ended(self.inner, &keyed, Ending::Gone).await,
            Stopped::Unsupported => {
                // A bare 501 may be about one route only, or about something else.
                if let Attempted::Answered(read) = &attempted
                    && read.problem().slug.is_some()
                {
                    self.inner.note_ignored_key(&self.origin);
                }
                if !self.may_have_happened {
                    finish::nothing_happened(self.inner, &keyed).await;
                }
            }
            // It can be resumed with its key.
            Stopped::Unknown(_) | Stopped::Exhausted(_) | Stopped::RetryLater(_) => {}
        }
        let call = self.ended(&keyed, attempted);
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

    fn ended(&self, keyed: &KeyedCall, attempted: Attempted) -> Box<Ended> {
        let mut ended = Ended::unsent(keyed.key().clone());
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

/// What a failure says about whether anything was sent.
fn failed(error: &Error) -> Observed {
    let Some(transport) = transport(error) else {
        // Another middleware refused, for a reason of its own.
        return Observed::Hopeless;
    };
    if transport.is_builder() || transport.is_redirect() {
        Observed::Hopeless
    } else if !transport.is_connect() {
        Observed::Lost
    } else if causes(error).any(is_bad_certificate) {
        Observed::Hopeless
    } else if matches!(error, Error::Middleware(_)) {
        // Who wrapped the failure may have tried several times, and this is only the last.
        Observed::Lost
    } else {
        Observed::NotSent
    }
}

/// Encryption reports what the other side showed as invalid data, and a broken connection as something else.
fn is_bad_certificate(cause: &(dyn StdError + 'static)) -> bool {
    let cause = cause.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::InvalidData)
}

fn transport(error: &Error) -> Option<&reqwest::Error> {
    match error {
        Error::Reqwest(error) => Some(error),
        Error::Middleware(error) => error.chain().find_map(|cause| {
            cause
                .downcast_ref()
                .or_else(|| cause.downcast_ref().and_then(transport))
        }),
    }
}

fn causes(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = match error {
        Error::Reqwest(error) => error,
        Error::Middleware(error) => error.as_ref(),
    };
    std::iter::successors(Some(first), |cause: &&(dyn StdError + 'static)| {
        (*cause).source()
    })
}

fn sensitive(value: &mut HeaderValue) {
    value.set_sensitive(true);
}

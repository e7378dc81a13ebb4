//! One call, from its key to its outcome.

use std::{
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use http::{Extensions, HeaderName, HeaderValue, Method};
use reqwest::{Request, Response, Url};
use reqwest_middleware::{Error, Next, Result};

use crate::call::{ClientCall, Intent, Keyed, Source};
use crate::error::{CallSummary, ClientError};
use crate::in_flight::Live;
use crate::journal::EntryId;
use crate::journal::begin::{Begun, begin};
use crate::journal::caller::caller;
use crate::journal::resume::Resumed;
use crate::key::{ClientKey, InvalidClientKey};
use crate::keys::Inner;
use crate::observe::Watched;
use crate::policy::decide::{Protection, StopReason};
use crate::policy::profile::{Profile, Support};
use crate::wire::body::Repeatable;
use crate::wire::deadline::before;
use crate::wire::outer_retry;
use idempotent_runtime::{__client::within, Time};

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) watched: &'a Watched,
    pub(crate) profile: &'a Profile,
    pub(crate) origin: &'a str,
    pub(crate) call: ClientCall,
    pub(crate) request: Repeatable,
    pub(crate) keyed: Option<KeyedCall>,
    pub(crate) protection: Protection,
    pub(crate) deadline: Duration,
    pub(crate) begun: Duration,
    pub(crate) attempts: u32,
    /// How many of them were answered that the call is running.
    pub(crate) waits: u32,
    /// The call that was listed in the journal, and is sent only if it still stands there.
    pub(crate) resumed: Option<Resumed>,
    pub(crate) was_early: bool,
    pub(crate) may_have_happened: bool,
    /// The server seems to have done what it was asked, and told where to read of it. A failure
    /// there comes afterwards.
    pub(crate) led_on: AtomicBool,
}

/// The facts about a call with a key.
#[derive(Debug)]
pub(crate) struct KeyedCall {
    pub(crate) live: Arc<Live>,
    /// How old the key was when the call was given it.
    pub(crate) age: Duration,
    /// When that was, by the timer.
    pub(crate) given: Duration,
    /// The moment from which the key exists, by the clock of the wall, which goes on while a
    /// machine sleeps.
    pub(crate) created: Time,
    /// A digest of the caller.
    pub(crate) caller: [u8; 32],
    /// A number that tells this begin of the call from every other one, in this process and in
    /// those that share its journal.
    pub(crate) begun: [u8; 16],
    /// The call stands in the journal.
    pub(crate) journaled: bool,
    /// The caller can name the key again, so that it is worth remembering how the call ended.
    pub(crate) named: bool,
    /// The caller wrote the key on the request.
    pub(crate) written: bool,
    /// An earlier pass of the same call sent it: a retry outside asks again.
    pub(crate) was_sent: bool,
}

impl KeyedCall {
    pub(crate) fn key(&self) -> &ClientKey {
        &self.live.id.key
    }
}

pub(crate) async fn send(
    inner: &Arc<Inner>,
    request: Request,
    extensions: &mut Extensions,
    next: Next<'_>,
) -> Result<Response> {
    let watched = Watched::new(&inner.observers, &inner.timer, &request);
    let sent = {
        let sending = pin!(send_watched(inner, &watched, request, extensions, next));
        within(watched.span(), sending).await
    };
    watched.ends(&sent);
    sent
}

async fn send_watched(
    inner: &Arc<Inner>,
    watched: &Watched,
    mut request: Request,
    extensions: &mut Extensions,
    next: Next<'_>,
) -> Result<Response> {
    let begun = watched.begun();
    let call = extensions.get::<ClientCall>().cloned().unwrap_or_default();
    let origin = watched.server();
    let profile = inner.settings.profile(origin);
    let resumed = Resumed::settle(extensions, request.headers_mut());
    let written = written_key(&request, &profile.header)?;
    let wants_key = wants_key(&call, request.method(), written.as_ref());
    let limit = if wants_key {
        take_out_user(request.url_mut());
        inner.settings.max_buffered
    } else {
        0
    };
    let deadline = call.deadline.unwrap_or(inner.settings.limits.deadline);
    let read = Repeatable::new(request, profile, call.factory.as_ref(), limit);
    let read = before(&*inner.timer, begun.saturating_add(deadline), read).await;
    let request = read.ok_or(ClientError::BodyTimedOut)??;
    let mut sending = Sending {
        inner,
        watched,
        profile,
        protection: Protection::of(request.request().method()),
        deadline,
        begun,
        origin,
        call,
        request,
        keyed: None,
        attempts: 0,
        waits: 0,
        resumed,
        was_early: false,
        may_have_happened: false,
        led_on: AtomicBool::new(false),
    };
    if wants_key && let Some(stored) = sending.give_key(written, extensions).await? {
        return Ok(stored);
    }
    inner.deposit(origin);
    sending.attempt_until_known(extensions, next).await
}

/// Takes the user and the password out of an address. Clients make a header of them when they make
/// a request of an address. They make none for a request that comes with such an address. The user
/// does not belong where they would show it then, to a proxy or in the authority of HTTP/2. No
/// journal is to keep it, either.
fn take_out_user(url: &mut Url) {
    // An address without a host has no user, either.
    let _has_none = url.set_username("").and_then(|()| url.set_password(None));
}

/// The key that the caller wrote into the header.
fn written_key(request: &Request, name: &HeaderName) -> Result<Option<ClientKey>> {
    let mut lines = request.headers().get_all(name).iter();
    let first = lines.next().map(ClientKey::from_header);
    match lines.count() {
        0 => Ok(first.transpose().map_err(ClientError::from)?),
        more => Err(ClientError::from(InvalidClientKey::Doubled(more + 1)).into()),
    }
}

fn wants_key(call: &ClientCall, method: &Method, written: Option<&ClientKey>) -> bool {
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
    /// The promise of the method by itself.
    pub(crate) fn of(method: &Method) -> Self {
        if method.is_idempotent() {
            Protection::Method
        } else {
            Protection::None
        }
    }

    /// The protection with a key, by whether the server is known to honour it.
    pub(crate) fn with_key(self, support: Support) -> Self {
        match (support, self) {
            (Support::Declared, _) => Protection::Key,
            (Support::Undeclared, Protection::Method) => Protection::Method,
            (Support::Undeclared, _) => Protection::KeyOnTrial,
        }
    }
}

impl Sending<'_> {
    /// Gives the call its key, writes it down, and hands back the response if the journal has it
    /// already.
    async fn give_key(
        &mut self,
        written: Option<ClientKey>,
        extensions: &mut Extensions,
    ) -> Result<Option<Response>> {
        let now = self.inner.timer.now();
        let is_written = written.is_some();
        let named = is_written || !matches!(self.call.source, Source::Random);
        let digest = self.request.without_headers;
        let default = &self.inner.settings.account;
        let account = self.call.account.as_ref().unwrap_or(default).to_string();
        let (key, since) = self.choose_key(written, &account, extensions, now)?;
        let headers = self.request.request_mut().headers_mut();
        if !headers.contains_key(&self.profile.header) {
            let header = key.to_header(self.profile.style);
            headers.insert(&self.profile.header, header.map_err(ClientError::from)?);
        }
        let was_sent = outer_retry::was_sent(extensions, digest, &key);
        outer_retry::put(extensions, digest, &key, since);
        let id = EntryId {
            origin: self.origin.to_owned(),
            account,
            key,
        };
        let caller = caller(&id, self.request.request().headers(), self.profile);
        let live = self.inner.enter(id.clone());
        let live = live.ok_or_else(|| ClientError::InFlight {
            call: CallSummary::unsent(id.key),
        })?;
        self.protection = self.protection.with_key(self.profile.support());
        let mut keyed = KeyedCall {
            live: Arc::new(live),
            caller,
            begun: rand::random(),
            age: now.saturating_sub(since),
            given: now,
            created: self.inner.clock.now(),
            journaled: named || self.inner.journals_all,
            named,
            written: is_written,
            was_sent,
        };
        let begun = match begin(self, &mut keyed).await {
            Err(error) if was_sent => return Err(of_a_later_pass(error)),
            begun => begun?,
        };
        outer_retry::note_sent(extensions, keyed.key());
        self.keyed = Some(keyed);
        Ok(self.goes_on(begun))
    }

    /// The response, if the call is over.
    fn goes_on(&mut self, begun: Begun) -> Option<Response> {
        match begun {
            Begun::New => None,
            Begun::Again { written } => {
                self.may_have_happened = true;
                if let Some(written) = written {
                    self.keep_spelling(written);
                }
                None
            }
            Begun::Over(response) => Some(response),
        }
    }

    /// The key of the call, and the moment from which that key exists.
    fn choose_key(
        &mut self,
        written: Option<ClientKey>,
        account: &str,
        extensions: &Extensions,
        now: Duration,
    ) -> Result<(ClientKey, Duration)> {
        Ok(match (written, &self.call.source) {
            (Some(key), _) => {
                let headers = self.request.request_mut().headers_mut();
                headers.get_mut(&self.profile.header).map(sensitive);
                (key, now)
            }
            (None, Source::Given(key)) => (key.clone(), now),
            (None, Source::Intent(intent)) => {
                let namespace = &self.inner.settings.namespace;
                let Intent { operation, id, .. } = intent;
                (ClientKey::derived(namespace, account, operation, id), now)
            }
            (None, Source::Random) => outer_retry::find(extensions, self.request.without_headers)
                .map_err(|key| ClientError::AnotherCallOpen {
                    call: CallSummary::unsent(key),
                })?
                .unwrap_or_else(|| (ClientKey::random(), now)),
        })
    }

    /// Sends the key as it was written before: written in another way, it is another key to a
    /// server that takes keys as they stand.
    fn keep_spelling(&mut self, mut written: HeaderValue) {
        sensitive(&mut written);
        let headers = self.request.request_mut().headers_mut();
        headers.insert(&self.profile.header, written);
    }
}

/// A retry outside hands on the last error, and an earlier pass may have sent the call.
fn of_a_later_pass(error: Error) -> Error {
    let Some(ClientError::Journal { key, .. }) = ClientError::from_error(&error) else {
        return error;
    };
    let mut call = CallSummary::unsent(key.clone());
    call.failure = Some(error);
    let why = StopReason::Journal;
    ClientError::Unknown { why, call }.into()
}

fn sensitive(value: &mut HeaderValue) {
    value.set_sensitive(true);
}

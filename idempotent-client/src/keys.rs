//! The middleware: what all its calls share.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use http::Extensions;
use reqwest::{Client, Request, Response, Url};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};

use crate::journal::resume::PendingCall;
use crate::journal::unjournaled::Undecided;
use crate::journal::{ClientJournal, CorruptEntry, EntryId, MemoryJournal};
use crate::observe::{ClientObserver, Observers};
use crate::policy::limits::{Budget, Limits};
use crate::policy::profile::{Profile, Support};
use crate::policy::redirect;
use crate::policy::refused_stream;
use crate::wire::{send, twice};
use idempotent_runtime::{
    __client::setters,
    StoreError,
    clock::{Clock, SystemClock, Timer, TokioTimer},
};

/// Gives calls a key before their first attempt, and sends them again with the same key and the
/// same bytes until their outcome is known or cannot be known. Clones are the same middleware.
///
/// It retries by itself: put middlewares that sign or authorise inside it, with `with` after it,
/// and they run at every attempt.
///
/// # Cancel safety
///
/// A call that is dropped sends nothing more. With a journal, or with an intent or a key of yours,
/// a call that may have happened stays there, with its key. A call with a random key and without a
/// journal loses its key: making it again is a new call, which may do it twice. Bound such a call
/// by a deadline, which ends in an error that holds the key, and not by dropping it.
///
/// # Examples
///
/// ```
/// use idempotent_client::{IdempotencyKeys, Profile};
///
/// # fn main() -> Result<(), reqwest::Error> {
/// let client = IdempotencyKeys::builder(Profile::ietf()).client(reqwest::Client::builder())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct IdempotencyKeys {
    pub(crate) inner: Arc<Inner>,
}

/// Sets up [`IdempotencyKeys`].
#[derive(Debug)]
#[must_use]
pub struct KeysBuilder {
    settings: Settings,
    journal: Option<Arc<dyn ClientJournal>>,
    observers: Observers,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

#[derive(Debug)]
pub(crate) struct Settings {
    profile: Profile,
    servers: HashMap<String, Profile>,
    pub(crate) limits: Limits,
    pub(crate) namespace: Arc<str>,
    /// Empty where the application named none.
    pub(crate) account: Arc<str>,
    /// The longest body that is read into memory before it is sent.
    pub(crate) max_buffered: usize,
    /// The longest body that the journal keeps.
    pub(crate) max_journaled: usize,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) journal: Arc<dyn ClientJournal>,
    /// The journal is the application's, and keeps every call that has a key.
    pub(crate) journals_all: bool,
    pub(crate) observers: Observers,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) undecided: Undecided,
    origins: Mutex<HashMap<String, OriginState>>,
    live: Mutex<HashSet<EntryId>>,
}

/// So many origins are remembered before any is forgotten.
const FEW_ORIGINS: usize = 1 << 10;

#[derive(Clone, Copy, Debug)]
struct OriginState {
    balance: f64,
    ignores_keys: bool,
}

impl IdempotencyKeys {
    /// Begins with what is known of the servers that will be called.
    pub fn builder(profile: Profile) -> KeysBuilder {
        KeysBuilder {
            settings: Settings {
                profile,
                servers: HashMap::new(),
                limits: Limits::default(),
                namespace: "".into(),
                account: "".into(),
                max_buffered: 1 << 20,
                max_journaled: 1 << 16,
            },
            journal: None,
            observers: Observers::default(),
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer::new()),
        }
    }

    /// The calls whose outcome the journal does not know, oldest first, at most `limit`: those of a
    /// process that died, and those that ended with
    /// [`ClientError::Unknown`](crate::ClientError::Unknown) and its like. Calls that this process
    /// is making right now are left out; those of other processes that share the journal are not. A
    /// call whose entry cannot be read is in the list as a [`CorruptEntry`], which counts towards
    /// `limit` until it is taken out of the journal.
    ///
    /// # Errors
    ///
    /// If the journal as a whole cannot be read.
    pub async fn unfinished(
        &self,
        limit: u32,
    ) -> Result<Vec<Result<PendingCall, CorruptEntry>>, StoreError> {
        // This asks for as many more as may be left out.
        let others = u32::try_from(self.inner.live().len()).unwrap_or(u32::MAX);
        let asked = limit.saturating_add(others);
        let entries = self.inner.journal.unfinished(asked).await?;
        let live = self.inner.live();
        let now = self.inner.clock.now();
        Ok(entries
            .into_iter()
            .filter(|listed| {
                let entry = listed.as_ref();
                !entry.is_ok_and(|entry| live.contains(&entry.id))
            })
            .take(limit as usize)
            .map(|listed| {
                let entry = listed?;
                let profile = self.inner.settings.profile(&entry.id.origin);
                let support = self.inner.support(&entry.id.origin);
                Ok(PendingCall::new(entry, profile, support, now))
            })
            .collect())
    }

    /// Takes a call out of the journal, once an operator found out that nothing happened: its key
    /// counts as new, also for another request. A call that was taken up, or that ended, since it
    /// was listed stays. Returns whether it was taken out.
    ///
    /// # Errors
    ///
    /// If the journal cannot be written.
    pub async fn forget(&self, call: &PendingCall) -> Result<bool, StoreError> {
        let journal = &self.inner.journal;
        let is_forgotten = journal.withdraw(call.id(), call.begun()).await?;
        self.inner.undecided.forget(call.id());
        Ok(is_forgotten)
    }
}

#[async_trait]
impl Middleware for IdempotencyKeys {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let _passing = twice::pass(extensions, &self.inner)?;
        send::send(&self.inner, request, extensions, next).await
    }
}

impl fmt::Debug for IdempotencyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeys")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

impl KeysBuilder {
    setters! {
        /// Gives the server at the origin of `url` a profile of its own.
        server(it, url: &Url, profile: Profile) {
            let origin = url.origin().ascii_serialization();
            it.settings.servers.insert(origin, profile);
        }

        /// Sets how often, how long and how fast calls are sent again.
        limits(it, limits: Limits) { it.settings.limits = limits }

        /// Writes every call that has a key into `journal` before it is sent. Unless set, only
        /// calls with an intent or a key of the caller's are remembered, in memory.
        journal(it, journal: impl ClientJournal) { it.journal = Some(Arc::new(journal)) }

        /// Sets what keeps the intents of this application apart from those of others that call the
        /// same server with the same account. A changed namespace changes every key.
        namespace(it, namespace: &str) { it.settings.namespace = namespace.into() }

        /// Says for which of the servers' accounts calls are made, unless they [say it
        /// themselves](crate::ClientCall::account): a name that stays the same when a token is
        /// renewed, and no secret. Each account has intents and keys of its own.
        ///
        /// An account that is named is the caller, whatever the headers say. A client that chooses
        /// among accounts by a header names one for each call. If no account is named, the
        /// [headers](crate#who-asks) tell callers apart. Headers, cookies and certificates that are
        /// added inside, by another middleware or by the client beneath, are not seen: name it
        /// then.
        account(it, account: &str) { it.settings.account = account.into() }

        /// Sets the longest body, in bytes, that is read into memory before it is sent: a mebibyte
        /// unless set. Such a body could not be sent twice otherwise, as that of a form with parts.
        /// It must say how long it is.
        max_buffered_body(it, bytes: usize) { it.settings.max_buffered = bytes }

        /// Sets the longest bodies of requests and responses, in bytes, that the journal keeps: 64
        /// KiB unless set. A request whose body it does not keep is not sent again after a restart,
        /// but reported. A response whose body it does not keep is not given again for the same
        /// intent.
        max_journaled_body(it, bytes: usize) { it.settings.max_journaled = bytes }

        /// Has `observer` learn how calls go. There may be several.
        observer(it, observer: impl ClientObserver) { it.observers.add(Arc::new(observer)) }

        /// Sets the clock by which keys grow old.
        clock(it, clock: impl Clock + 'static) { it.clock = Arc::new(clock) }

        /// Sets what measures pauses and deadlines: tokio's time unless set.
        timer(it, timer: impl Timer + 'static) { it.timer = Arc::new(timer) }
    }

    /// Builds the client and the middleware for it, to be put together with other middlewares.
    ///
    /// The redirect policy of `http` is replaced by one that keeps keys at their origin. A redirect
    /// to another origin is not followed, whatever the method, and the caller is told of it. A key
    /// must not be sent by a client that was built without this policy. If one is, and a redirect
    /// takes a key away, the call ends with
    /// [`ClientError::LeftOrigin`](crate::ClientError::LeftOrigin).
    ///
    /// A [retry policy](reqwest::ClientBuilder::retry) of `http` is replaced by the one that
    /// reqwest has by itself. That one sends a request again only if a server of HTTP/2 says that
    /// it did not begin it. With another policy, an attempt whose connection failed in the end may
    /// have been carried out.
    ///
    /// # Errors
    ///
    /// If the client cannot be built.
    pub fn build(self, http: reqwest::ClientBuilder) -> reqwest::Result<(Client, IdempotencyKeys)> {
        let http = http
            .redirect(redirect::policy())
            .retry(refused_stream::policy());
        let client = http.build()?;
        let journals_all = self.journal.is_some();
        let journal = self
            .journal
            .unwrap_or_else(|| Arc::new(MemoryJournal::new()));
        let inner = Inner {
            settings: self.settings,
            journal,
            journals_all,
            observers: self.observers,
            clock: self.clock,
            timer: self.timer,
            undecided: Undecided::default(),
            origins: Mutex::default(),
            live: Mutex::default(),
        };
        let keys = IdempotencyKeys {
            inner: Arc::new(inner),
        };
        Ok((client, keys))
    }

    /// Builds a client that has this middleware and no other.
    ///
    /// # Errors
    ///
    /// If the client cannot be built.
    pub fn client(self, http: reqwest::ClientBuilder) -> reqwest::Result<ClientWithMiddleware> {
        let (client, keys) = self.build(http)?;
        Ok(ClientBuilder::new(client).with(keys).build())
    }
}

impl Settings {
    pub(crate) fn profile(&self, origin: &str) -> &Profile {
        self.servers.get(origin).unwrap_or(&self.profile)
    }
}

impl Inner {
    /// Counts a call towards the budget of its origin.
    pub(crate) fn deposit(&self, origin: &str) {
        let budget = self.settings.limits.budget;
        self.with_origin(origin, |state| budget.deposit(&mut state.balance));
    }

    pub(crate) fn has_budget(&self, origin: &str) -> bool {
        self.with_origin(origin, |state| state.balance >= 1.0)
    }

    pub(crate) fn withdraw(&self, origin: &str) {
        self.with_origin(origin, |state| state.balance -= 1.0);
    }

    /// Whether a server honours keys. Its own word counts for more than the application's.
    pub(crate) fn support(&self, origin: &str) -> Support {
        if self.ignores_keys(origin) {
            Support::Undeclared
        } else {
            self.settings.profile(origin).support
        }
    }

    pub(crate) fn ignores_keys(&self, origin: &str) -> bool {
        self.with_origin(origin, |state| state.ignores_keys)
    }

    pub(crate) fn note_ignored_key(&self, origin: &str) {
        self.with_origin(origin, |state| state.ignores_keys = true);
    }

    fn with_origin<T>(&self, origin: &str, ask: impl FnOnce(&mut OriginState) -> T) -> T {
        let Budget { reserve, .. } = self.settings.limits.budget;
        let fresh = || OriginState {
            balance: reserve,
            ignores_keys: false,
        };
        let mut origins = lock(&self.origins);
        if let Some(state) = origins.get_mut(origin) {
            return ask(state);
        }
        if origins.len() >= FEW_ORIGINS && origins.len().is_power_of_two() {
            // The dropped ones are in the state that a new one begins with.
            origins.retain(|_, state| state.ignores_keys || state.balance < reserve);
        }
        ask(origins.entry(origin.to_owned()).or_insert_with(fresh))
    }

    pub(crate) fn live(&self) -> MutexGuard<'_, HashSet<EntryId>> {
        lock(&self.live)
    }
}

/// Locks `mutex`, also after a thread has panicked while it held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_origins_only_those_are_remembered_of_which_something_is_known() {
        let builder = IdempotencyKeys::builder(Profile::ietf());
        let built = builder.build(Client::builder());
        let (_, IdempotencyKeys { inner }) = built.expect("a client");
        inner.note_ignored_key("https://ignores.example");
        while inner.has_budget("https://down.example") {
            inner.withdraw("https://down.example");
        }

        for number in 0..10 * FEW_ORIGINS {
            inner.deposit(&format!("https://{number}.example"));
        }

        let known = lock(&inner.origins).len();
        assert!(known <= FEW_ORIGINS + 2, "{known}");
        assert!(inner.ignores_keys("https://ignores.example"));
        assert!(!inner.has_budget("https://down.example"));
    }
}

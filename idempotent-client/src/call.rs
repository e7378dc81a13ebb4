//! The settings that a caller gives one call, beside the request itself.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use reqwest::Body;

use crate::key::ClientKey;
use idempotent_runtime::__client::setters;

/// The settings of one call: put them on the request with
/// [`with_extension`](reqwest_middleware::RequestBuilder::with_extension). A call without them gets
/// a random key if its method needs one.
///
/// # Examples
///
/// ```
/// use idempotent_client::{ClientCall, Intent};
///
/// // Whoever charges this order again, in this process or in another one, sends the same key.
/// let call = ClientCall::new().intent(Intent::new("payments.charge", "order-42"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClientCall {
    pub(crate) source: Source,
    pub(crate) account: Option<Arc<str>>,
    pub(crate) keyed: Keyed,
    pub(crate) deadline: Option<Duration>,
    pub(crate) factory: Option<Factory>,
}

/// The source of a call's key.
#[derive(Clone, Debug, Default)]
pub(crate) enum Source {
    #[default]
    Random,
    Given(ClientKey),
    Intent(Intent),
}

/// Whether a call gets a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keyed {
    #[default]
    ByMethod,
    Always,
    Never,
}

/// One wish to have something done, however often it is asked for: an order to be charged, a
/// message to be sent.
///
/// Its key is derived from the operation and the id, the namespace and the account that were set.
/// Nothing else goes into it: not the amount, the time or the attempt. Take an id that means this
/// one wish, such as that of the order, and nothing that says who a person is.
#[derive(Clone, PartialEq, Eq)]
pub struct Intent {
    pub(crate) operation: Arc<str>,
    pub(crate) id: Arc<str>,
    pub(crate) begun: Option<SystemTime>,
}

impl Intent {
    /// Names a wish by what is to be done and an id that is unique among wishes of that kind.
    #[must_use]
    pub fn new(operation: &str, id: &str) -> Self {
        Self {
            operation: operation.into(),
            id: id.into(),
            begun: None,
        }
    }

    /// Says when the wish came up. If no journal has seen it, its key counts as this old: a key
    /// that the server may have forgotten is not sent.
    #[must_use]
    pub fn begun(mut self, begun: SystemTime) -> Self {
        self.begun = Some(begun);
        self
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// Makes a body anew for every attempt.
#[derive(Clone)]
pub(crate) struct Factory(pub(crate) Arc<dyn Fn() -> Body + Send + Sync>);

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

impl ClientCall {
    /// Describes a call that wants nothing in particular.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Gives the call this key, whatever its method, unless that only reads: GET, HEAD, OPTIONS
        /// and TRACE have none. A header that stands on the request counts for more.
        #[must_use]
        key(it, key: ClientKey) { it.source = Source::Given(key) }

        /// Gives the call the key of this intent, whatever its method, unless that only reads: GET,
        /// HEAD, OPTIONS and TRACE have none, and are sent each time. A header that stands on the
        /// request counts for more.
        #[must_use]
        intent(it, intent: Intent) { it.source = Source::Intent(intent) }

        /// Says for which of the server's accounts the call is made, in place of the one that
        /// [`KeysBuilder::account`](crate::KeysBuilder::account) names for all calls. It is a name
        /// that stays the same when a token is renewed, and no secret, because the journal keeps
        /// it. Each account has intents and keys of its own.
        #[must_use]
        account(it, account: &str) { it.account = Some(account.into()) }

        /// Gives the call a key also where its method could do without, such as PUT and DELETE.
        #[must_use]
        keyed(it) { it.keyed = Keyed::Always }

        /// Sends the call without a key, as to a route that ignores keys while others of its server
        /// honour them. A call that may have happened is then not sent again.
        #[must_use]
        without_key(it) { it.keyed = Keyed::Never }

        /// Sets how long the call may take with all its attempts, in place of the
        /// [limit](crate::Limits::deadline) that all calls have.
        #[must_use]
        deadline(it, deadline: Duration) { it.deadline = Some(deadline) }

        /// Takes the body from `make`, once for every attempt and once before the first, to hash
        /// it. That is how a stream can be sent again. If an attempt gets other bytes than those
        /// that were hashed, it is broken off before its last byte.
        #[must_use]
        body_from(it, make: impl Fn() -> Body + Send + Sync + 'static) {
            it.factory = Some(Factory(Arc::new(make)));
        }
    }
}

//! The facts that are known about a server before anything is sent to it.

use std::{sync::Arc, time::Duration};

use http::HeaderName;

use crate::key::KeyStyle;
use idempotent_runtime::{__client::setters, Time};

/// How a server takes keys, and what its answers mean.
///
/// Giving a server a profile that [honours keys](Support::Declared) is a promise about that server:
/// a call whose outcome is not known is sent again because of it.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) header: HeaderName,
    pub(crate) style: KeyStyle,
    pub(crate) support: Support,
    pub(crate) conflict: Conflict,
    pub(crate) verdicts: Arc<[HeaderName]>,
    pub(crate) request_headers: Arc<[HeaderName]>,
    pub(crate) volatile_headers: Arc<[HeaderName]>,
    pub(crate) retention: Duration,
    pub(crate) skew: Duration,
}

/// Whether a server honours keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Support {
    /// Its documentation says so.
    Declared,
    /// It is unknown. Keys are sent, and a call that may have happened is not sent again.
    Undeclared,
}

/// The meaning of a 409 that does not say it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Conflict {
    /// It is the application's, and the answer. After an attempt that may have been done, it leaves
    /// that one open, unless it says of itself that it is a recorded answer. A server may also mean
    /// that the attempt is still running.
    Application,
    /// The first request with this key is still running.
    InProgress,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Profile {
    /// A server that implements draft-ietf-httpapi-idempotency-key-header-07, and tells its own
    /// problems by their type: keys in quotes, kept for 24 hours.
    #[must_use]
    pub fn ietf() -> Self {
        Self {
            header: HeaderName::from_static("idempotency-key"),
            style: KeyStyle::Quoted,
            support: Support::Declared,
            conflict: Conflict::Application,
            verdicts: Arc::new([]),
            request_headers: Arc::new([]),
            volatile_headers: Arc::new([]),
            retention: DAY,
            skew: Duration::from_secs(5 * 60),
        }
    }

    /// Stripe's API: bare keys, kept for 24 hours, a 409 while the first request runs,
    /// `Stripe-Should-Retry`, and `Stripe-Version` as a part of the request.
    #[must_use]
    pub fn stripe() -> Self {
        Self {
            style: KeyStyle::Bare,
            conflict: Conflict::InProgress,
            verdicts: Arc::new([HeaderName::from_static("stripe-should-retry")]),
            request_headers: Arc::new([HeaderName::from_static("stripe-version")]),
            ..Self::ietf()
        }
    }

    /// A server of which it is unknown whether it honours keys: it gets them, and is not relied on.
    #[must_use]
    pub fn undeclared() -> Self {
        Self {
            support: Support::Undeclared,
            ..Self::ietf()
        }
    }

    /// Whether the server is known to honour keys.
    #[must_use]
    pub fn support(&self) -> Support {
        self.support
    }

    setters! {
        /// Sets the header that carries keys.
        #[must_use]
        header(it, header: HeaderName) { it.header = header }

        /// Sets how keys are written.
        #[must_use]
        style(it, style: KeyStyle) { it.style = style }

        /// Sets the meaning of a 409 that does not say it itself.
        #[must_use]
        conflict(it, conflict: Conflict) { it.conflict = conflict }

        /// Adds a header in which the server says `true` or `false` to being asked again, such as
        /// `Stripe-Should-Retry` or Adyen's `transient-error`. It counts for more than the status.
        #[must_use]
        verdict_header(it, header: HeaderName) {
            it.verdicts = it.verdicts.iter().cloned().chain([header]).collect();
        }

        /// Adds a header that makes a request what it is, such as one that chooses a version of the
        /// API. A journal keeps it, and a call that is sent again after a restart has it again.
        /// With another value it is another request, which is refused under the same key. Headers
        /// that describe the body or make conditions are kept and compared anyway. `Authorization`,
        /// `Cookie`, the usual headers for API keys, and values that are marked as sensitive are
        /// never kept. Name no other header that is secret, because its value stands in the journal
        /// then.
        #[must_use]
        request_header(it, header: HeaderName) {
            let names = it.request_headers.iter().cloned();
            it.request_headers = names.chain([header]).collect();
        }

        /// Leaves a header out of the caller, because its value changes though the same account
        /// asks, such as a signature, its date or a nonce.
        ///
        /// Unless an account is [named](crate::KeysBuilder::account), every header that [may say
        /// who asks](crate#who-asks) tells callers apart. If one of them has another value at each
        /// request, the journal answers nobody, and every repetition asks the server. The header is
        /// sent all the same. It is needed only if the header is put on outside of this middleware.
        /// A middleware inside may change every header at each attempt, because its headers do not
        /// count.
        ///
        /// # Limits
        ///
        /// Two accounts that differ in this header alone are one caller from then on, and one of
        /// them may be answered with what the other one did. So never leave out a header by which
        /// the server chooses the account. If that header changes, too, such as a token that is
        /// renewed or an `Authorization` that holds a signature, name the account. A header that
        /// makes the request [what it is](Self::request_header) is compared nevertheless.
        ///
        /// # Examples
        ///
        /// ```
        /// use idempotent_client::Profile;
        /// use reqwest::header::HeaderName;
        ///
        /// // A middleware outside signs each request anew, and `x-api-key` says who asks.
        /// let profile = Profile::ietf()
        ///     .volatile_header(HeaderName::from_static("signature"))
        ///     .volatile_header(HeaderName::from_static("signature-input"));
        /// ```
        #[must_use]
        volatile_header(it, header: HeaderName) {
            let names = it.volatile_headers.iter().cloned();
            it.volatile_headers = names.chain([header]).collect();
        }

        /// Sets how long the server keeps keys. An older key is never sent again, because the
        /// server would take it for a new one. Five minutes are taken off for clocks that differ,
        /// and no more than half of it.
        #[must_use]
        retention(it, retention: Duration) { it.retention = retention }
    }

    /// How old a key is that was made at `created`. If it was made later than `now`, by more than
    /// clocks differ, one of the two was read from a wrong clock. Then it counts as too old,
    /// because its age is unknown.
    pub(crate) fn age(&self, created: Time, now: Time) -> Duration {
        if created.since(now) > self.skew {
            Duration::MAX
        } else {
            now.since(created)
        }
    }

    /// How old a key may be when it is sent.
    pub(crate) fn oldest(&self) -> Duration {
        // A server that keeps keys for minutes only would leave nothing: then half of that time
        // counts.
        self.retention
            .saturating_sub(self.skew)
            .max(self.retention / 2)
    }
}

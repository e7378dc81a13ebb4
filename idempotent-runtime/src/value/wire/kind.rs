//! The kinds of problems, and what is usual for each: one table.

use http::StatusCode;
use serde::Serialize;

/// Makes [`Kind`], all of its kinds, and what is usual for each, from the table below.
macro_rules! kinds {
    (
        $(#[$about:meta])*
        pub enum Kind {$(
            $(#[$of:meta])*
            $kind:ident = $slug:literal, $status:ident, $key_action:ident, $again:expr,
                $title:literal, $detail:literal;
        )*}
    ) => {
        $(#[$about])*
        pub enum Kind {
            $($(#[$of])* $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Kind::$kind),*];

            fn usual(self) -> Usual {
                match self {
                    $(Kind::$kind => Usual {
                        slug: $slug,
                        status: StatusCode::$status,
                        title: $title,
                        detail: $detail,
                        again: $again,
                        key_action: KeyAction::$key_action,
                    },)*
                }
            }
        }
    };
}

kinds! {
    /// The kind of a problem that kept a request from the handler's answer: one for each thing that
    /// a client can do about it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Kind {
        /// The request needs a key and has none: 400 (draft-07, section 2.7).
        KeyMissing = "idempotency-key-missing", BAD_REQUEST, Send, NOT_AGAIN,
            "The idempotency key is missing",
            "This request requires an idempotency key.";
        /// The key is malformed, is there more than once, or breaks the policy: 400 (draft-07,
        /// sections 2.1 and 5).
        KeyInvalid = "idempotency-key-invalid", BAD_REQUEST, New, NOT_AGAIN,
            "The idempotency key is malformed",
            "What was sent as the idempotency key is no key.";
        /// The key belongs to another request: 422 (draft-07, section 2.7).
        KeyReused = "idempotency-key-reused", UNPROCESSABLE_ENTITY, New, NOT_AGAIN,
            "The idempotency key is already used",
            "This key was first used with a different request. Resend the original request to get its result, or use a new key for a new operation.";
        /// A call inside of the request is refused for its own key: 409. The layer itself does not
        /// answer so. A handler does, if the key of what it calls belongs to another call, or is no
        /// key: the client's key has no part in that.
        InnerCallRefused = "idempotency-inner-call-refused", CONFLICT, None, NOT_AGAIN,
            "The request clashes with something else that was done",
            "A part of this request was done before with other data, or is named by a value that cannot name it. Another idempotency key does not help: correct the request.";
        /// The first request with this key is still being processed: 409 (draft-07, section 2.7).
        RequestInProgress = "idempotency-request-in-progress", CONFLICT, Keep, again_in(1),
            "A request is outstanding for this idempotency key",
            "The first request with this key is still being processed. Retry the identical request with the same key.";
        /// The first request began, and it is unknown whether it took effect: 409.
        OutcomeUnknown = "idempotency-outcome-unknown", CONFLICT, Keep, NOT_AGAIN,
            "The outcome of the first request is unknown",
            "The first request started but its result was never recorded. It may or may not have taken effect. Do not retry with a new key before checking.";
        /// The first request was carried out, and its response cannot be repeated: 409.
        ResultUnavailable = "idempotency-result-unavailable", CONFLICT, Keep, NOT_AGAIN,
            "The result of the first request cannot be repeated",
            "The request was carried out, but its response was not kept. It is not carried out again.";
        /// The first request was carried out so long ago that its response is no longer kept: 409.
        ResultExpired = "idempotency-result-expired", CONFLICT, Keep, NOT_AGAIN,
            "The result of the first request is no longer kept",
            "The request was carried out so long ago that its response is gone. It is not carried out again under this key.";
        /// The first request was carried out, and its result cannot be read right now: 503. The
        /// layer itself does not answer so. A handler that carries the attribute does, if its
        /// outcome is a reference.
        ResultOutOfReach = "idempotency-result-out-of-reach", SERVICE_UNAVAILABLE, Keep, again_in(5),
            "The result of the first request cannot be read right now",
            "The request was carried out, but its result cannot be read right now. It is not carried out again.";
        /// The caller is unknown: 400, or 401 where the service can name the way to authenticate.
        ScopeUnresolved = "idempotency-scope-unresolved", BAD_REQUEST, Keep, NOT_AGAIN,
            "The caller is unknown",
            "Keys belong to a caller, and this request does not say who that is. The request was not executed.";
        /// The request's body is too large: 413.
        BodyTooLarge = "idempotency-body-too-large", PAYLOAD_TOO_LARGE, Keep, NOT_AGAIN,
            "The request body is too large",
            "The body is larger than this service takes together with a key. The request was not executed.";
        /// The request's body did not arrive whole: 400.
        BodyUnreadable = "idempotency-body-unreadable", BAD_REQUEST, Keep, AGAIN,
            "The request body did not arrive whole",
            "The body could not be read to its end. The request was not executed.";
        /// The request's body did not arrive in time: 408.
        BodyTimeout = "idempotency-body-timeout", REQUEST_TIMEOUT, Keep, AGAIN,
            "The request body did not arrive in time",
            "The body took longer to arrive than this service waits. The request was not executed.";
        /// The store of the keys does not answer: 503.
        StoreUnavailable = "idempotency-store-unavailable", SERVICE_UNAVAILABLE, Keep, again_in(5),
            "Idempotency cannot be guaranteed right now",
            "The request was not executed.";
        /// The service is overloaded or shutting down: 503.
        Overloaded = "idempotency-overloaded", SERVICE_UNAVAILABLE, Keep, again_in(5),
            "The service is overloaded or shutting down",
            "The request was not executed.";
        /// The request came as early data, and no key protects it: 425 (RFC 8470, section 5.2).
        TooEarly = "idempotency-too-early", TOO_EARLY, Send, AGAIN,
            "The request came too early",
            "A request that no key protects is not taken from early data, which can be repeated. The request was not executed.";
        /// The caller has too many keys in use: 429 (RFC 6585, section 4).
        TooManyKeys = "idempotency-too-many-keys", TOO_MANY_REQUESTS, Keep, again_in(5),
            "Too many keys are in use",
            "This caller has as many keys in use as this service allows. The request was not executed.";
        /// The resource does not support keys: 501.
        NotSupported = "idempotency-not-supported", NOT_IMPLEMENTED, None, NOT_AGAIN,
            "Idempotency keys are not supported here",
            "This resource cannot tell a repeated request from a new one. The request was not executed.";
        /// The handler ended without a response: 500.
        HandlerFailed = "idempotency-handler-failed", INTERNAL_SERVER_ERROR, Keep, NOT_AGAIN,
            "The request failed",
            "The service failed while it carried out the request. The request may or may not have taken effect.";
        /// The service is set up wrongly: 500.
        Misconfigured = "idempotency-misconfigured", INTERNAL_SERVER_ERROR, Keep, NOT_AGAIN,
            "The service is set up wrongly",
            "The request could not be protected against repetition and was not executed.";
    }
}

/// The action that a client is to take with its key, whatever else it knows of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyAction {
    /// Keep it for the same request.
    Keep,
    /// Take a new one, once the request is right.
    New,
    /// Send one.
    Send,
    /// Nothing: keys do not count here.
    None,
}

impl KeyAction {
    /// Every action.
    pub const ALL: &'static [Self] = &[Self::Keep, Self::New, Self::Send, Self::None];

    /// The name in problem documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            KeyAction::Keep => "keep",
            KeyAction::New => "new",
            KeyAction::Send => "send",
            KeyAction::None => "none",
        }
    }
}

/// A part of a request in which it differs from the first one with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mismatch {
    /// The method.
    Method,
    /// The path or the query.
    Target,
    /// The media type of the body.
    ContentType,
    /// The body.
    Body,
    /// A header field that counts on this route.
    Header,
}

impl Mismatch {
    /// Every part.
    pub const ALL: &'static [Self] = &[
        Self::Method,
        Self::Target,
        Self::ContentType,
        Self::Body,
        Self::Header,
    ];
}

impl Kind {
    /// The kind whose stable name this is.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }

    /// The stable name, such as `idempotency-key-missing`, by which the type URI ends.
    #[must_use]
    pub fn slug(self) -> &'static str {
        self.usual().slug
    }

    /// The slug with underscores, as the member `code` has it.
    #[must_use]
    pub fn code(self) -> String {
        self.slug().replace('-', "_")
    }

    /// The usual status.
    #[must_use]
    pub fn status(self) -> StatusCode {
        self.usual().status
    }

    /// The title, which is the same for every problem of the kind (RFC 9457, section 3.1.3).
    #[must_use]
    pub fn title(self) -> &'static str {
        self.usual().title
    }

    /// Whether the same request with the same key may succeed later, without any help.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        self.usual().again.0
    }

    /// The action that the client is to take with its key.
    #[must_use]
    pub fn key_action(self) -> KeyAction {
        self.usual().key_action
    }

    /// The usual sentence for people.
    #[must_use]
    pub fn detail(self) -> &'static str {
        self.usual().detail
    }

    /// The usual wait before another try, in seconds.
    #[must_use]
    pub fn retry_after(self) -> Option<u64> {
        self.usual().again.1
    }

    /// Whether the answer links to the service's documentation, because it is the client that must
    /// change (draft-07, section 2.7).
    #[must_use]
    pub fn is_described(self) -> bool {
        matches!(self, Kind::KeyMissing | Kind::KeyInvalid | Kind::KeyReused)
    }
}

/// The usual values for a kind.
struct Usual {
    slug: &'static str,
    status: StatusCode,
    title: &'static str,
    detail: &'static str,
    again: Again,
    key_action: KeyAction,
}

/// Whether the same request may succeed later, and the usual wait before that, in seconds.
type Again = (bool, Option<u64>);

const NOT_AGAIN: Again = (false, None);

const AGAIN: Again = (true, None);

const fn again_in(seconds: u64) -> Again {
    (true, Some(seconds))
}

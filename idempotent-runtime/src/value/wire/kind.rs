//! The kinds of problems, and what is usual for each: one table.

use http::StatusCode;
use serde::Serialize;

/// The kind of a problem that kept a request from the handler's answer: one for each thing that a
/// client can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The request needs a key and has none: 400 (draft-07, section 2.7).
    KeyMissing,
    /// The key is malformed, is there more than once, or breaks the policy: 400 (draft-07, sections
    /// 2.1 and 5).
    KeyInvalid,
    /// The key belongs to another request: 422 (draft-07, section 2.7).
    KeyReused,
    /// A call inside of the request is refused for its own key: 409. The layer itself does not
    /// answer so. A handler does, if the key of what it calls belongs to another call, or is no
    /// key: the client's key has no part in that.
    InnerCallRefused,
    /// The first request with this key is still being processed: 409 (draft-07, section 2.7).
    RequestInProgress,
    /// The first request began, and it is unknown whether it took effect: 409.
    OutcomeUnknown,
    /// The first request was carried out, and its response cannot be repeated: 409.
    ResultUnavailable,
    /// The first request was carried out so long ago that its response is no longer kept: 409.
    ResultExpired,
    /// The first request was carried out, and its result cannot be read right now: 503. The layer
    /// itself does not answer so. A handler that carries the attribute does, if its outcome is a
    /// reference.
    ResultOutOfReach,
    /// The caller is unknown: 400, or 401 where the service can name the way to authenticate.
    ScopeUnresolved,
    /// The request's body is too large: 413.
    BodyTooLarge,
    /// The request's body did not arrive whole: 400.
    BodyUnreadable,
    /// The request's body did not arrive in time: 408.
    BodyTimeout,
    /// The store of the keys does not answer: 503.
    StoreUnavailable,
    /// The service is overloaded or shutting down: 503.
    Overloaded,
    /// The request came as early data, and no key protects it: 425 (RFC 8470, section 5.2).
    TooEarly,
    /// The caller has too many keys in use: 429 (RFC 6585, section 4).
    TooManyKeys,
    /// The resource does not support keys: 501.
    NotSupported,
    /// The handler ended without a response: 500.
    HandlerFailed,
    /// The service is set up wrongly: 500.
    Misconfigured,
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
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Kind::KeyMissing,
        Kind::KeyInvalid,
        Kind::KeyReused,
        Kind::InnerCallRefused,
        Kind::RequestInProgress,
        Kind::OutcomeUnknown,
        Kind::ResultUnavailable,
        Kind::ResultExpired,
        Kind::ResultOutOfReach,
        Kind::ScopeUnresolved,
        Kind::BodyTooLarge,
        Kind::BodyUnreadable,
        Kind::BodyTimeout,
        Kind::StoreUnavailable,
        Kind::Overloaded,
        Kind::TooEarly,
        Kind::TooManyKeys,
        Kind::NotSupported,
        Kind::HandlerFailed,
        Kind::Misconfigured,
    ];

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
        self.usual().retryable
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
        self.usual().retry_after
    }

    /// Whether the answer links to the service's documentation, because it is the client that must
    /// change (draft-07, section 2.7).
    #[must_use]
    pub fn is_described(self) -> bool {
        matches!(self, Kind::KeyMissing | Kind::KeyInvalid | Kind::KeyReused)
    }

    fn usual(self) -> Usual {
        match self {
            Kind::KeyMissing => Usual {
                slug: "idempotency-key-missing",
                status: StatusCode::BAD_REQUEST,
                title: "The idempotency key is missing",
                detail: "This request requires an idempotency key.",
                retryable: false,
                key_action: KeyAction::Send,
                retry_after: None,
            },
            Kind::KeyInvalid => Usual {
                slug: "idempotency-key-invalid",
                status: StatusCode::BAD_REQUEST,
                title: "The idempotency key is malformed",
                detail: "What was sent as the idempotency key is no key.",
                retryable: false,
                key_action: KeyAction::New,
                retry_after: None,
            },
            Kind::KeyReused => Usual {
                slug: "idempotency-key-reused",
                status: StatusCode::UNPROCESSABLE_ENTITY,
                title: "The idempotency key is already used",
                detail: "This key was first used with a different request. Resend the original request to get its result, or use a new key for a new operation.",
                retryable: false,
                key_action: KeyAction::New,
                retry_after: None,
            },
            Kind::InnerCallRefused => Usual {
                slug: "idempotency-inner-call-refused",
                status: StatusCode::CONFLICT,
                title: "The request clashes with something else that was done",
                detail: "A part of this request was done before with other data, or is named by a value that cannot name it. Another idempotency key does not help: correct the request.",
                retryable: false,
                key_action: KeyAction::None,
                retry_after: None,
            },
            Kind::RequestInProgress => Usual {
                slug: "idempotency-request-in-progress",
                status: StatusCode::CONFLICT,
                title: "A request is outstanding for this idempotency key",
                detail: "The first request with this key is still being processed. Retry the identical request with the same key.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: Some(1),
            },
            Kind::OutcomeUnknown => Usual {
                slug: "idempotency-outcome-unknown",
                status: StatusCode::CONFLICT,
                title: "The outcome of the first request is unknown",
                detail: "The first request started but its result was never recorded. It may or may not have taken effect. Do not retry with a new key before checking.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::ResultUnavailable => Usual {
                slug: "idempotency-result-unavailable",
                status: StatusCode::CONFLICT,
                title: "The result of the first request cannot be repeated",
                detail: "The request was carried out, but its response was not kept. It is not carried out again.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::ResultExpired => Usual {
                slug: "idempotency-result-expired",
                status: StatusCode::CONFLICT,
                title: "The result of the first request is no longer kept",
                detail: "The request was carried out so long ago that its response is gone. It is not carried out again under this key.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::ResultOutOfReach => Usual {
                slug: "idempotency-result-out-of-reach",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "The result of the first request cannot be read right now",
                detail: "The request was carried out, but its result cannot be read right now. It is not carried out again.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: Some(5),
            },
            Kind::ScopeUnresolved => Usual {
                slug: "idempotency-scope-unresolved",
                status: StatusCode::BAD_REQUEST,
                title: "The caller is unknown",
                detail: "Keys belong to a caller, and this request does not say who that is. The request was not executed.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::BodyTooLarge => Usual {
                slug: "idempotency-body-too-large",
                status: StatusCode::PAYLOAD_TOO_LARGE,
                title: "The request body is too large",
                detail: "The body is larger than this service takes together with a key. The request was not executed.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::BodyUnreadable => Usual {
                slug: "idempotency-body-unreadable",
                status: StatusCode::BAD_REQUEST,
                title: "The request body did not arrive whole",
                detail: "The body could not be read to its end. The request was not executed.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::BodyTimeout => Usual {
                slug: "idempotency-body-timeout",
                status: StatusCode::REQUEST_TIMEOUT,
                title: "The request body did not arrive in time",
                detail: "The body took longer to arrive than this service waits. The request was not executed.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::StoreUnavailable => Usual {
                slug: "idempotency-store-unavailable",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "Idempotency cannot be guaranteed right now",
                detail: "The request was not executed.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: Some(5),
            },
            Kind::Overloaded => Usual {
                slug: "idempotency-overloaded",
                status: StatusCode::SERVICE_UNAVAILABLE,
                title: "The service is overloaded or shutting down",
                detail: "The request was not executed.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: Some(5),
            },
            Kind::TooEarly => Usual {
                slug: "idempotency-too-early",
                status: StatusCode::TOO_EARLY,
                title: "The request came too early",
                detail: "A request that no key protects is not taken from early data, which can be repeated. The request was not executed.",
                retryable: true,
                key_action: KeyAction::Send,
                retry_after: None,
            },
            Kind::TooManyKeys => Usual {
                slug: "idempotency-too-many-keys",
                status: StatusCode::TOO_MANY_REQUESTS,
                title: "Too many keys are in use",
                detail: "This caller has as many keys in use as this service allows. The request was not executed.",
                retryable: true,
                key_action: KeyAction::Keep,
                retry_after: Some(5),
            },
            Kind::NotSupported => Usual {
                slug: "idempotency-not-supported",
                status: StatusCode::NOT_IMPLEMENTED,
                title: "Idempotency keys are not supported here",
                detail: "This resource cannot tell a repeated request from a new one. The request was not executed.",
                retryable: false,
                key_action: KeyAction::None,
                retry_after: None,
            },
            Kind::HandlerFailed => Usual {
                slug: "idempotency-handler-failed",
                status: StatusCode::INTERNAL_SERVER_ERROR,
                title: "The request failed",
                detail: "The service failed while it carried out the request. The request may or may not have taken effect.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
            Kind::Misconfigured => Usual {
                slug: "idempotency-misconfigured",
                status: StatusCode::INTERNAL_SERVER_ERROR,
                title: "The service is set up wrongly",
                detail: "The request could not be protected against repetition and was not executed.",
                retryable: false,
                key_action: KeyAction::Keep,
                retry_after: None,
            },
        }
    }
}

/// The usual values for a kind.
struct Usual {
    slug: &'static str,
    status: StatusCode,
    title: &'static str,
    detail: &'static str,
    retryable: bool,
    key_action: KeyAction,
    retry_after: Option<u64>,
}

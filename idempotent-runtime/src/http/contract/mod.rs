//! What a service promises about keys, for those who call it: a resource must publish how it treats them (draft-07,
//! section 2.5.2).

mod open_api;
mod page;

use std::{borrow::Cow, time::Duration};

use http::{
    HeaderName, Method, StatusCode,
    header::{CONTENT_TYPE, LINK, LOCATION, RETRY_AFTER},
};

use super::{
    headers::{HeaderPolicy, IDEMPOTENT_REPLAYED, ORIGINAL_REQUEST_ID},
    key::{IDEMPOTENCY_KEY, KeyReader},
    meeting::IDEMPOTENCY_STATUS,
    problem::{Kind, Problems},
    rules::ReplayOfCreated,
};

/// What a service does with keys, as plain data: whoever knows the settings fills it in, and the rest of this module
/// writes it down for browsers, programs and people.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::http::contract::Contract;
///
/// let contract = Contract::new();
/// assert!(contract.to_markdown().contains("| methods | POST, PATCH |"));
/// assert!(contract.cors_exposed_headers().contains(&"idempotent-replayed".parse()?));
/// # Ok::<(), http::header::InvalidHeaderName>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Contract {
    /// In which protocol the service answers.
    pub protocol: Protocol,
    /// The methods whose requests are protected; where keys are refused or ignored aloud, those whose requests get to hear that.
    pub methods: Vec<Method>,
    /// Whether a request must carry a key, and whether one counts. Where it does not, the rest is not told.
    pub requirement: Requirement,
    /// Which header fields carry the key, in which form.
    pub keys: KeyReader,
    /// Within what a key stands for one request.
    pub key_space: KeySpace,
    /// How long a response answers retries, counted from when it was made.
    pub retention: Duration,
    /// What a request gets that comes with the key after that.
    pub after_retention: OnRetry,
    /// In what a retry must be equal to the first request, such as *method* or *body*.
    pub compared: Vec<Cow<'static, str>>,
    /// What a retry gets that comes while the first request is being processed.
    pub in_flight: WhileInFlight,
    /// What becomes of responses, by their status; the first rule that fits counts.
    pub outcomes: Vec<OutcomeRule>,
    /// The status of a replay whose first response was 201.
    pub replay_of_created: ReplayOfCreated,
    /// Which header fields replays repeat.
    pub headers: HeaderPolicy,
    /// The largest body of a request, in bytes.
    pub request_limit: Option<u64>,
    /// The largest body of a response that can be repeated, in bytes, where its header fields are of ordinary length.
    pub response_limit: Option<u64>,
    /// How problems are named and described.
    pub problems: Problems,
    /// The problems that the service may answer with, and their status in HTTP; in gRPC, the kind of problem decides.
    pub answers: Vec<(Kind, StatusCode)>,
}

/// In which protocol a service answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// In HTTP: refusals are problem documents.
    Http,
    /// In gRPC: refusals are statuses with details, and so are what handlers answer.
    Grpc,
}

/// Whether a request must carry a key, and what becomes of one that does where keys do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Requirement {
    /// One without is refused.
    Required,
    /// One without is processed each time it arrives.
    Optional,
    /// A key does not count: one with it is processed each time it arrives, too.
    Ignored,
    /// The same, and the response to one with a key says so: `Idempotency-Status: ignored`.
    IgnoredAloud,
    /// One with a key is refused by [`Kind::NotSupported`], and one without is processed each time it arrives.
    Unsupported,
}

impl Requirement {
    /// Tells whether keys count.
    pub(super) fn protects(self) -> bool {
        matches!(self, Requirement::Required | Requirement::Optional)
    }
}

/// Within what a key stands for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeySpace {
    /// Among all requests of a caller: the same key on another route is refused.
    Caller,
    /// Among the requests of a caller to one route.
    CallerAndRoute,
    /// Among the requests of all callers together.
    Everybody,
    /// Among the requests of all callers to one route.
    EverybodyAndRoute,
}

/// What a retry gets that comes while the first request is being processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhileInFlight {
    /// [`Kind::RequestInProgress`], at once.
    Refused,
    /// The response of the first request, when it is there within that time, and [`Kind::RequestInProgress`] otherwise.
    Waits(Duration),
}

/// What becomes of the responses of one class of status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutcomeRule {
    /// Which responses, such as *5xx*.
    pub responses: Cow<'static, str>,
    /// What a retry gets.
    pub on_retry: OnRetry,
}

impl OutcomeRule {
    /// Makes a rule.
    #[must_use]
    pub fn new(responses: impl Into<Cow<'static, str>>, on_retry: OnRetry) -> Self {
        let responses = responses.into();
        Self {
            responses,
            on_retry,
        }
    }
}

/// What a retry gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnRetry {
    /// The first response again.
    Replayed,
    /// The request is processed again.
    ProcessedAgain,
    /// This problem.
    Refused(Kind),
}

impl Contract {
    /// What draft-07 asks for, and this library's choices where it leaves one: the starting point of what a service
    /// fills in.
    #[must_use]
    pub fn new() -> Self {
        use OnRetry::{ProcessedAgain, Refused, Replayed};
        let answered = Kind::ALL.iter().copied().filter(|kind| {
            !matches!(
                kind,
                Kind::NotSupported | Kind::ResultExpired | Kind::ResultOutOfReach
            )
        });
        Self {
            protocol: Protocol::Http,
            methods: vec![Method::POST, Method::PATCH],
            requirement: Requirement::Required,
            keys: KeyReader::new(),
            key_space: KeySpace::Caller,
            retention: Duration::from_secs(24 * 60 * 60),
            after_retention: ProcessedAgain,
            compared: ["method", "target", "content type", "body"]
                .map(Cow::Borrowed)
                .to_vec(),
            in_flight: WhileInFlight::Refused,
            outcomes: vec![
                OutcomeRule::new("408, 425, 429 and 503", ProcessedAgain),
                OutcomeRule::new(
                    "those that are streamed or too large",
                    Refused(Kind::ResultUnavailable),
                ),
                OutcomeRule::new("all others", Replayed),
            ],
            replay_of_created: ReplayOfCreated::Created,
            headers: HeaderPolicy::new(),
            request_limit: None,
            response_limit: None,
            problems: Problems::new(),
            answers: answered.map(|kind| (kind, kind.status())).collect(),
        }
    }

    /// What a CORS layer must allow browsers to send, for `Access-Control-Allow-Headers`: the
    /// fields that carry the key, and `Content-Type`, without which a browser sends no JSON.
    #[must_use]
    pub fn cors_allowed_headers(&self) -> Vec<HeaderName> {
        let mut names = self.keys.names().to_vec();
        names.push(CONTENT_TYPE);
        names
    }

    /// What a CORS layer must let browsers read, for `Access-Control-Expose-Headers`: `Idempotent-Replayed`,
    /// `Idempotency-Status`, `Idempotency-Key`, `Retry-After`, `Location`, `Link`, and `Original-Request-Id` where replays have it.
    #[must_use]
    pub fn cors_exposed_headers(&self) -> Vec<HeaderName> {
        let mut names = vec![
            IDEMPOTENT_REPLAYED,
            IDEMPOTENCY_STATUS,
            IDEMPOTENCY_KEY,
            RETRY_AFTER,
            LOCATION,
            LINK,
        ];
        if self.headers.tells_request_id() {
            names.push(ORIGINAL_REQUEST_ID);
        }
        names
    }
}

impl Default for Contract {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;

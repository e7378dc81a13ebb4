//! Which header fields of a response are kept for its replays.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONNECTION, CONTENT_ENCODING, VARY},
};

/// The header field that marks a replay, with the value `true`; a first response never has it.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The header field by which a replay names the request that ran.
pub const ORIGINAL_REQUEST_ID: HeaderName = HeaderName::from_static("original-request-id");

/// The header field by which a response says that its key is free again.
pub(crate) const IDEMPOTENCY_STATUS: HeaderName = HeaderName::from_static("idempotency-status");

/// Never kept, even if a policy says so: they belong to one connection (RFC 9110, section 7.6.1) or
/// are made anew for each response.
const NEVER: [&str; 11] = [
    "connection",
    "content-length",
    "idempotency-key",
    "idempotency-status",
    "idempotent-replayed",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Kept only if a policy says so: they speak of the moment, of who asked, or of where the response
/// came by.
const USUALLY_NOT: [&str; 29] = [
    "age",
    "alt-svc",
    "authentication-info",
    "authorization",
    "b3",
    "correlation-id",
    "date",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "ratelimit",
    "request-id",
    "retry-after",
    "server",
    "server-timing",
    "set-cookie",
    "set-cookie2",
    "traceparent",
    "traceresponse",
    "tracestate",
    "via",
    "www-authenticate",
    "x-amz-request-id",
    "x-amzn-requestid",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-request-id",
    "x-trace-id",
];

/// The beginnings of names that are kept only if a policy says so.
const USUALLY_NOT_BEGINNINGS: [&str; 5] = [
    "access-control-",
    "ratelimit-",
    "x-b3-",
    "x-ratelimit-",
    "x-rate-limit-",
];

/// The members of `Vary` that a CORS layer adds to each response by itself.
const CORS_VARIES: [&str; 3] = [
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
];

/// Says which header fields of a response are kept for its replays; trailers are treated likewise.
///
/// By default all are kept except those that speak of the moment or of who asked:
///
/// | left out | why |
/// |---|---|
/// | `Connection` and what it nominates, `Keep-Alive`, `Proxy-Connection`, `TE`, `Trailer`, `Transfer-Encoding`, `Upgrade` | they belong to one connection (RFC 9110, section 7.6.1) |
/// | `Content-Length` | the server computes it of the body |
/// | `Idempotent-Replayed`, `Idempotency-Status`, `Idempotency-Key` | each response gets its own |
/// | `Date`, `Age`, `Via`, `Server`, `Alt-Svc` | they are made anew |
/// | `Set-Cookie`, `Set-Cookie2` | a replay would bring an old session back |
/// | `WWW-Authenticate`, `Proxy-Authenticate`, `Authentication-Info`, `Proxy-Authentication-Info`, `Authorization`, `Proxy-Authorization` | they are part of a conversation about who calls |
/// | `Access-Control-*`, and what CORS adds to `Vary` | the CORS layer outside adds them for the origin that asks now |
/// | request, correlation and trace ids, `Server-Timing`, `RateLimit`, `RateLimit-*`, `X-RateLimit-*`, `Retry-After` | they tell of this request, not of the first one |
///
/// The first three rows are left out even if a policy keeps them, the others can be kept by
/// [`keep`](Self::keep).
///
/// `Content-Encoding` is kept even if a policy leaves it out: the body is stored in that coding,
/// and could not be read otherwise.
///
/// # Examples
///
/// ```
/// use http::{HeaderMap, header::{CONTENT_TYPE, DATE}};
/// use idempotent_runtime::http::HeaderPolicy;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(CONTENT_TYPE, "application/json".parse()?);
/// headers.insert(DATE, "Sat, 21 Nov 2026 10:00:00 GMT".parse()?);
///
/// let kept = HeaderPolicy::new().stored(&headers);
/// assert!(kept.contains_key(CONTENT_TYPE));
/// assert!(!kept.contains_key(DATE));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeaderPolicy {
    unnamed: Unnamed,
    kept: Vec<HeaderName>,
    left_out: Vec<HeaderName>,
    request_id: Option<HeaderName>,
}

/// The rule for fields that a policy does not name.
#[derive(Clone, Copy, Debug, Default)]
enum Unnamed {
    #[default]
    KeptUnlessUsuallyNot,
    LeftOut,
}

impl HeaderPolicy {
    /// Keeps all fields except those of the table above.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only these fields and `Content-Encoding`.
    #[must_use]
    pub fn only(names: impl IntoIterator<Item = HeaderName>) -> Self {
        Self {
            unnamed: Unnamed::LeftOut,
            kept: names.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Keeps a field that is usually left out, such as `Set-Cookie`. It has no effect on those that
    /// are never kept.
    #[must_use]
    pub fn keep(mut self, name: HeaderName) -> Self {
        self.left_out.retain(|other| *other != name);
        self.kept.push(name);
        self
    }

    /// Leaves a field out. It has no effect on `Content-Encoding`.
    #[must_use]
    pub fn leave_out(mut self, name: HeaderName) -> Self {
        self.left_out.push(name);
        self
    }

    /// Tells replays the id of the request that ran: the value of the response's field `name`, such
    /// as `X-Request-Id`, becomes their `Original-Request-Id`.
    #[must_use]
    pub fn original_request_id(mut self, name: HeaderName) -> Self {
        self.request_id = Some(name);
        self
    }

    /// The fields that are kept, in their order. Every line of a field that is there several times
    /// is kept, also if its value is not text.
    #[must_use]
    pub fn stored(&self, headers: &HeaderMap) -> HeaderMap {
        let mut stored = HeaderMap::with_capacity(headers.keys_len());
        for (name, value) in headers {
            if !self.keeps(name) || is_nominated(name, headers) {
                continue;
            }
            if *name == VARY && !self.kept.contains(name) {
                if let Some(value) = without_cors(value) {
                    stored.append(VARY, value);
                }
            } else {
                stored.append(name, value.clone());
            }
        }
        let request_id = self.request_id.as_ref().and_then(|name| headers.get(name));
        if let Some(id) = request_id {
            stored.insert(ORIGINAL_REQUEST_ID, id.clone());
        }
        stored
    }

    /// Whether replays have the field `Original-Request-Id`.
    pub(super) fn tells_request_id(&self) -> bool {
        self.request_id.is_some()
    }

    /// Whether a field of that name is kept, when no `Connection` nominates it.
    #[must_use]
    pub fn keeps(&self, name: &HeaderName) -> bool {
        let text = name.as_str();
        if *name == CONTENT_ENCODING {
            return true;
        }
        if NEVER.contains(&text) || self.left_out.contains(name) {
            return false;
        }
        if self.kept.contains(name) {
            return true;
        }
        match self.unnamed {
            Unnamed::LeftOut => false,
            Unnamed::KeptUnlessUsuallyNot => {
                !USUALLY_NOT.contains(&text)
                    && !USUALLY_NOT_BEGINNINGS
                        .iter()
                        .any(|beginning| text.starts_with(beginning))
            }
        }
    }
}

/// Whether `Connection` says that the field belongs to it.
fn is_nominated(name: &HeaderName, headers: &HeaderMap) -> bool {
    headers.get_all(CONNECTION).iter().any(|value| {
        value.as_bytes().split(|&byte| byte == b',').any(|option| {
            option
                .trim_ascii()
                .eq_ignore_ascii_case(name.as_str().as_bytes())
        })
    })
}

/// Takes the names that CORS adds out of a value of `Vary`; `None` when nothing is left.
fn without_cors(value: &HeaderValue) -> Option<HeaderValue> {
    let Ok(text) = value.to_str() else {
        return Some(value.clone());
    };
    let is_cors = |member: &str| {
        CORS_VARIES
            .iter()
            .any(|cors| member.eq_ignore_ascii_case(cors))
    };
    let members: Vec<&str> = text.split(',').map(str::trim).collect();
    if !members.iter().any(|member| is_cors(member)) {
        return Some(value.clone());
    }
    let left: Vec<&str> = members
        .into_iter()
        .filter(|member| !member.is_empty() && !is_cors(member))
        .collect();
    (!left.is_empty()).then(|| {
        HeaderValue::try_from(left.join(", ")).expect("what is left of a value is one, too")
    })
}

#[cfg(test)]
pub(super) mod tests;

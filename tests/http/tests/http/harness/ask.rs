//! Requests to a shop.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};

/// A request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Bytes,
}

pub(crate) fn post(target: &str) -> Ask {
    Ask::new(Method::POST, target)
}

/// A request with the key `k`, as a client would repeat it.
pub(crate) fn charge() -> Ask {
    post("/charges").key("k").body("amount=12")
}

impl Ask {
    pub(crate) fn new(method: Method, target: &str) -> Self {
        Self {
            method,
            target: target.parse().expect("a target"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn key(self, value: impl AsRef<[u8]>) -> Self {
        self.header("idempotency-key", value)
    }

    /// Adds a line of a header field.
    pub(crate) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).expect("a value of a header field");
        self.headers.append(name, value);
        self
    }

    pub(crate) fn caller(self, caller: &str) -> Self {
        self.header("caller", caller)
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: impl Into<Bytes>) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// The same with another body, of which nothing need be known.
    pub(crate) fn streaming(self, body: Body) -> Request<Body> {
        let mut request = Request::from(self);
        *request.body_mut() = body;
        request
    }
}

impl From<Ask> for Request<Body> {
    fn from(ask: Ask) -> Self {
        let mut request = Request::new(Body::from(ask.body));
        *request.method_mut() = ask.method;
        *request.uri_mut() = ask.target;
        *request.headers_mut() = ask.headers;
        request
    }
}

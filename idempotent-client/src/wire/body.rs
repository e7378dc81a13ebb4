//! Request bodies that can be sent again, byte for byte.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use reqwest::{Body, Request, Url};
use sha2::{Digest as _, Sha256};

use crate::call::Factory;
use crate::policy::profile::Profile;
use crate::wire::boundary;
use crate::wire::request_headers::own_headers;
use idempotent_runtime::{__client::write_framed, BoxError};

/// A request, and where the bytes of its next attempt come from.
#[derive(Debug)]
pub(crate) struct Repeatable {
    request: Request,
    body: Source,
    /// The digest of method, target, body and the request's own headers; `None` for a stream, whose
    /// bytes were not yet seen.
    pub(crate) digest: Option<[u8; 32]>,
    /// The digest as it was made before headers were a part of it.
    pub(crate) without_headers: Option<[u8; 32]>,
}

#[derive(Debug)]
enum Source {
    /// The body of the request, which is in memory.
    Request,
    /// A function, and the hash of its bytes.
    Made {
        factory: Factory,
        length: u64,
        digest: [u8; 32],
    },
    /// A stream, until it is taken.
    Once(Option<Body>),
}

impl Repeatable {
    /// Reads a body that says how long it is and is at most `limit` bytes long into memory. The
    /// boundary, which would differ between two forms with the same parts, is settled.
    pub(crate) async fn new(
        mut request: Request,
        profile: &Profile,
        factory: Option<&Factory>,
        limit: usize,
    ) -> reqwest::Result<Self> {
        let body = match factory {
            Some(factory) => {
                request.body_mut().take();
                Self::hash(factory).await?
            }
            None => Self::freeze(&mut request, limit).await?,
        };
        let body_digest = match &body {
            Source::Request => {
                let bytes = request.body().and_then(Body::as_bytes);
                Some(Sha256::digest(bytes.unwrap_or_default()).into())
            }
            Source::Made { digest, .. } => Some(*digest),
            Source::Once(_) => None,
        };
        let headers = own_headers(profile, request.headers());
        let digest = body_digest.map(|body| digest(&request, &headers, &body));
        let without_headers = body_digest.map(|body| digest_without_headers(&request, &body));
        Ok(Self {
            request,
            body,
            digest,
            without_headers,
        })
    }

    async fn freeze(request: &mut Request, limit: usize) -> reqwest::Result<Source> {
        let announced = request.headers().get(CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let Some(body) = request.body_mut() else {
            return Ok(Source::Request);
        };
        if body.as_bytes().is_some() {
            return Ok(Source::Request);
        }
        let length = body.size_hint().exact().or(announced);
        if length.is_some_and(|length| length <= limit as u64) {
            let bytes = body.collect().await?.to_bytes();
            let bytes = boundary::settle(request.headers_mut(), bytes);
            *request.body_mut() = Some(Body::from(bytes));
            return Ok(Source::Request);
        }
        Ok(Source::Once(request.body_mut().take()))
    }

    async fn hash(factory: &Factory) -> reqwest::Result<Source> {
        let mut body = (factory.0)();
        let mut hasher = Sha256::new();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            if let Some(bytes) = frame?.data_ref() {
                hasher.update(bytes);
                length += bytes.len() as u64;
            }
            // A body that is always there would keep the deadline from being looked at.
            tokio::task::yield_now().await;
        }
        Ok(Source::Made {
            factory: factory.clone(),
            length,
            digest: hasher.finalize().into(),
        })
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self.body, Source::Once(_))
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    pub(crate) fn request_mut(&mut self) -> &mut Request {
        &mut self.request
    }

    /// The request without its body.
    pub(crate) fn head(&self) -> Request {
        let mut head = Request::new(self.request.method().clone(), self.request.url().clone());
        *head.headers_mut() = self.request.headers().clone();
        *head.timeout_mut() = self.request.timeout().copied();
        *head.version_mut() = self.request.version();
        head
    }

    /// The bytes, where they are in memory.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self.body {
            Source::Request => {
                let bytes = self.request.body().and_then(Body::as_bytes);
                Some(bytes.unwrap_or_default())
            }
            Source::Made { .. } | Source::Once(_) => None,
        }
    }

    /// The request of the next attempt. A stream is there for one attempt only, and is empty from
    /// the second one on.
    pub(crate) fn next(&mut self) -> Request {
        let request = self.request.try_clone();
        let mut request = request.expect("streams were taken out of it");
        match &mut self.body {
            Source::Request => {}
            Source::Made {
                factory,
                length,
                digest,
            } => {
                let checked = Checked {
                    inner: (factory.0)(),
                    hasher: Sha256::new(),
                    left: *length,
                    digest: *digest,
                };
                *request.body_mut() = Some(Body::wrap(checked));
            }
            Source::Once(body) => *request.body_mut() = body.take(),
        }
        request
    }
}

/// The digest that must be equal in a call that is sent again.
fn digest(request: &Request, headers: &HeaderMap, body: &[u8; 32]) -> [u8; 32] {
    let mut buffer = Vec::new();
    for part in [
        &b"idempotent-client-request-2"[..],
        request.method().as_str().as_bytes(),
        target(request).as_str().as_bytes(),
        body,
    ] {
        write_framed(&mut buffer, part);
    }
    let mut headers: Vec<_> = headers.iter().collect();
    // The order of the lines of one header counts; the order of headers does not.
    headers.sort_by_key(|(name, _)| name.as_str());
    for (name, value) in headers {
        write_framed(&mut buffer, name.as_str().as_bytes());
        write_framed(&mut buffer, value.as_bytes());
    }
    Sha256::digest(&buffer).into()
}

/// A fragment is never sent.
fn target(request: &Request) -> Url {
    let mut url = request.url().clone();
    url.set_fragment(None);
    url
}

/// The form that stands in journals of earlier releases.
fn digest_without_headers(request: &Request, body: &[u8; 32]) -> [u8; 32] {
    let content_type = request.headers().get(CONTENT_TYPE);
    let mut buffer = Vec::new();
    for part in [
        &b"idempotent-client-request-1"[..],
        request.method().as_str().as_bytes(),
        target(request).as_str().as_bytes(),
        content_type.map(HeaderValue::as_bytes).unwrap_or_default(),
        body,
    ] {
        write_framed(&mut buffer, part);
    }
    Sha256::digest(&buffer).into()
}

/// Passes a body on while it is the same as the hashed one. The frame that would complete it is
/// passed on only when everything was the same, so that a server never gets a whole body that is
/// another one.
struct Checked {
    inner: Body,
    hasher: Sha256,
    left: u64,
    digest: [u8; 32],
}

/// Ends a body that is another one than before.
#[derive(Debug)]
pub(crate) struct Changed;

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is not the same as before")
    }
}

impl std::error::Error for Changed {}

impl http_body::Body for Checked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        let Some(frame) = frame.transpose()? else {
            let complete = self.left == 0;
            return Poll::Ready((!complete).then(|| Err(Changed.into())));
        };
        if let Some(bytes) = frame.data_ref() {
            self.hasher.update(bytes);
            let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
                return Poll::Ready(Some(Err(Changed.into())));
            };
            self.left = left;
            let whole = left == 0 && !bytes.is_empty();
            if whole && self.hasher.finalize_reset()[..] != self.digest {
                return Poll::Ready(Some(Err(Changed.into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use http::Method;

    use super::*;

    fn request(method: Method, url: &str, body: impl Into<Body>) -> Request {
        let mut request = Request::new(method, url.parse().expect("a URL"));
        *request.body_mut() = Some(body.into());
        request
    }

    async fn digest_of(request: Request) -> Option<[u8; 32]> {
        let profile = Profile::stripe();
        let repeatable = Repeatable::new(request, &profile, None, 100).await;
        repeatable.expect("it is read").digest
    }

    fn with(name: &'static str, value: &'static str) -> Request {
        let mut request = request(Method::POST, "http://a/b?c=1", "x");
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
        request
    }

    #[tokio::test]
    async fn cl10_method_target_body_and_own_headers_are_in_the_digest() {
        let first = digest_of(request(Method::POST, "http://a/b?c=1", "x")).await;
        assert!(first.is_some());
        let again = digest_of(request(Method::POST, "http://a/b?c=1#d", "x")).await;
        assert_eq!(first, again);
        for other in [
            request(Method::PATCH, "http://a/b?c=1", "x"),
            request(Method::POST, "http://a/b?c=2", "x"),
            request(Method::POST, "http://a/b?c=1", "y"),
            with("content-type", "application/json"),
            with("if-match", "\"1\""),
            with("stripe-version", "2026-01-01"),
        ] {
            assert_ne!(first, digest_of(other).await);
        }
        for same in [
            with("idempotency-key", "\"1\""),
            with("authorization", "Bearer 1"),
            with("traceparent", "00-1"),
        ] {
            assert_eq!(first, digest_of(same).await);
        }
        let one = digest_of(with("if-match", "1")).await;
        assert_ne!(one, digest_of(with("if-match", "2")).await);
        assert_ne!(one, digest_of(with("if-none-match", "1")).await);
    }

    /// Digests in a file are a promise: both forms are those of every release since.
    #[tokio::test]
    async fn cl10_digests_are_the_same_in_every_release() {
        let mut request = with("content-type", "text/plain");
        let match_seven = HeaderValue::from_static("\"7\"");
        request.headers_mut().insert("if-match", match_seven);
        let repeatable = Repeatable::new(request, &Profile::ietf(), None, 100).await;
        let repeatable = repeatable.expect("it is read");
        let hex = |digest: Option<[u8; 32]>| {
            let digest = digest.expect("it is in memory");
            digest.map(|byte| format!("{byte:02x}")).concat()
        };
        assert_eq!(
            hex(repeatable.digest),
            "43bfe04c3e6fbdaf2679f52b0553ce0f9d637b25282bb7f13614f21873e0ccfc"
        );
        assert_eq!(
            hex(repeatable.without_headers),
            "e9325bbe21c3feedb47b05b25e4ea0830dcc25cef01ce3d30ad8085842859b28"
        );
    }

    #[tokio::test]
    async fn cl31_a_body_that_changes_never_gets_to_its_end() {
        for second in ["axcdef", "abc", "abcdefg", "", "abcdeX"] {
            let made = Arc::new(AtomicUsize::new(0));
            let factory = Factory(Arc::new(move || {
                match made.fetch_add(1, Ordering::SeqCst) {
                    0 | 1 => Body::from("abcdef"),
                    _ => Body::from(second),
                }
            }));
            let request = request(Method::POST, "http://a/", "");
            let profile = Profile::ietf();
            let repeatable = Repeatable::new(request, &profile, Some(&factory), 0).await;
            let mut repeatable = repeatable.expect("it is hashed");

            let mut same = repeatable.next();
            let body = same.body_mut().take().expect("a body");
            let sent = body.collect().await.expect("it is the same").to_bytes();
            assert_eq!(sent, "abcdef");

            let mut changed = repeatable.next();
            let mut body = changed.body_mut().take().expect("a body");
            let mut passed = 0;
            let end = loop {
                match body.frame().await {
                    Some(Ok(frame)) => passed += frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(error)) => break Some(error),
                    None => break None,
                }
            };
            assert!(end.is_some(), "`{second}` was sent to its end");
            assert!(passed < 6, "{passed} bytes of `{second}` were sent");
        }
    }
}

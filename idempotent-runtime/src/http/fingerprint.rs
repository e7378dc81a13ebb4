//! The parts that two requests must have in common to be the same request.

use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HOST},
    request::Parts,
};
use serde::{Serialize, Serializer};
use sha2::Sha256;

use crate::{
    call::CallBuilder,
    framing::write_framed,
    http::{json, routing},
    sha256::sha256,
};

/// How the bodies of two requests are compared.
#[derive(Clone)]
#[non_exhaustive]
pub enum BodyComparison {
    /// Byte by byte.
    Exact,
    /// By their meaning, if the content type says that they are JSON: white space, the order of
    /// members and the spelling of strings and numbers do not matter. A body that is no JSON, or
    /// that names a member twice, is compared byte by byte.
    ///
    /// Numbers count as decimals of any length: `1.0` is `1`, and no two integers are equal that
    /// differ.
    CanonicalJson,
    /// By the bytes that a function makes of the request: two are the same if it returns the same
    /// bytes. It is for a multipart form, say, whose boundary differs in each attempt.
    By(BodyDigest),
}

impl BodyComparison {
    /// Compares the bytes that `digest` makes of the request.
    pub fn by(digest: impl Fn(&Parts, &Bytes) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::By(BodyDigest(Arc::new(digest)))
    }
}

/// The function that makes, of a request and its body, the bytes that are compared; made by
/// [`BodyComparison::by`].
#[derive(Clone)]
pub struct BodyDigest(Arc<dyn Digest>);

trait Digest: Send + Sync {
    fn digest(&self, request: &Parts, body: &Bytes) -> Vec<u8>;
}

impl<F: Fn(&Parts, &Bytes) -> Vec<u8> + Send + Sync> Digest for F {
    fn digest(&self, request: &Parts, body: &Bytes) -> Vec<u8> {
        self(request, body)
    }
}

impl fmt::Debug for BodyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyDigest(…)")
    }
}

impl fmt::Debug for BodyComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyComparison::Exact => "Exact",
            BodyComparison::CanonicalJson => "CanonicalJson",
            BodyComparison::By(_) => "By(…)",
        })
    }
}

/// How the query parts of two targets are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueryComparison {
    /// Byte by byte.
    Exact,
    /// As a bag of parameters: their number and their spelling matter, and their order does not.
    AnyOrder,
    /// Not at all: it says nothing of what is done.
    Ignored,
    /// Byte by byte, without the parameters of these names, as a client spells them: those that a
    /// campaign or a trace adds, say. A query of nothing else is none, and what stands between two
    /// `&` and is empty is no parameter.
    Without(&'static [&'static str]),
}

impl QueryComparison {
    /// The part of a query that is left for the comparison, if any is.
    fn compared(self, query: &str) -> Option<Cow<'_, str>> {
        let names = match self {
            QueryComparison::Exact | QueryComparison::AnyOrder => return Some(query.into()),
            QueryComparison::Ignored => return None,
            // A target that ends in `?` is another one.
            QueryComparison::Without(_) if query.is_empty() => return Some(query.into()),
            QueryComparison::Without(names) => names,
        };
        let is_left = |parameter: &&str| {
            let name = parameter.split('=').next().unwrap_or_default();
            !parameter.is_empty() && !names.contains(&name)
        };
        let left: Vec<_> = query.split('&').filter(is_left).collect();
        (!left.is_empty()).then(|| left.join("&").into())
    }
}

/// The parts of two requests that are compared beside their methods, paths and content types, which
/// always are.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) body: BodyComparison,
    pub(crate) query: QueryComparison,
    pub(crate) headers: Vec<HeaderName>,
}

/// The names under which a record keeps the compared parts, and a mismatch is reported.
pub(crate) mod part {
    pub(crate) const METHOD: &str = "method";
    pub(crate) const TARGET: &str = "target";
    pub(crate) const CONTENT_TYPE: &str = "content_type";
    pub(crate) const HEADERS: &str = "headers";
    pub(crate) const BODY: &str = "body";
}

impl Comparison {
    /// Says what must be equal in a retry. The body goes in as its hash, so that no store keeps it.
    pub(crate) fn describe<P, K>(
        &self,
        call: CallBuilder<P, K>,
        request: &Parts,
        target: &Target<'_>,
        body: &Bytes,
    ) -> CallBuilder<P, K> {
        let headers = &request.headers;
        call.argument(part::METHOD, request.method.as_str())
            .argument(part::TARGET, &target.framed(self.query))
            .argument(part::CONTENT_TYPE, &content_type(headers))
            .argument(part::HEADERS, &self.compared(request))
            .argument(part::BODY, &self.digest(request, body))
    }

    /// A field that the request does not have adds nothing. So a field that is named later makes no
    /// other request of those without it.
    fn compared(&self, request: &Parts) -> Option<Hash> {
        let mut framed = Vec::new();
        for name in &self.headers {
            let lines = lines(name, request);
            if lines.is_empty() {
                continue;
            }
            write_framed(&mut framed, name.as_str().as_bytes());
            for line in lines {
                framed.push(1);
                write_framed(&mut framed, line);
            }
            framed.push(0);
        }
        (!framed.is_empty()).then(|| Hash(sha256(&mut framed)))
    }

    /// The hash, and the name of what was hashed, so that no body equals the bytes that were made
    /// of another one.
    fn digest(&self, request: &Parts, body: &Bytes) -> (&'static str, Hash) {
        match &self.body {
            BodyComparison::CanonicalJson if is_json(&request.headers) => {
                match json::canonical(body) {
                    Some(form) => ("json", Hash::of(&form)),
                    None => ("exact", Hash::of(body)),
                }
            }
            BodyComparison::By(BodyDigest(by)) => ("by", Hash::of(&by.digest(request, body))),
            BodyComparison::Exact | BodyComparison::CanonicalJson => ("exact", Hash::of(body)),
        }
    }
}

/// The lines of a header field. If the target of a request names its host, as it does by HTTP/2,
/// that counts, and a field `Host` beside it does not (RFC 9113, section 8.3.1).
fn lines<'a>(name: &HeaderName, request: &'a Parts) -> Vec<&'a [u8]> {
    if name == HOST
        && let Some(authority) = routing::uri(request).authority()
    {
        return vec![authority.as_str().as_bytes()];
    }
    let lines = request.headers.get_all(name).into_iter();
    lines.map(HeaderValue::as_bytes).collect()
}

/// The target of a request: its path in normal form, and its query if it has one.
pub(crate) struct Target<'a> {
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
}

/// Room for the bytes around a path and a query, and for the padding of their hash.
const FRAMES: usize = 128;

impl Target<'_> {
    fn framed(&self, comparison: QueryComparison) -> Hash {
        let query = self.query.and_then(|query| comparison.compared(query));
        let length = query.as_ref().map_or(0, |query| query.len());
        let mut framed = Vec::with_capacity(self.path.len() + length + FRAMES);
        write_framed(&mut framed, self.path.as_bytes());
        match (query, comparison) {
            (None, _) => framed.push(0),
            (Some(query), QueryComparison::AnyOrder) => {
                framed.push(2);
                let mut parameters: Vec<_> = query.split('&').collect();
                parameters.sort_unstable();
                for parameter in parameters {
                    write_framed(&mut framed, parameter.as_bytes());
                }
            }
            (Some(query), _) => {
                framed.push(1);
                write_framed(&mut framed, query.as_bytes());
            }
        }
        Hash(sha256(&mut framed))
    }
}

/// The media type without its parameters, because a `charset` or a boundary does not make another
/// request, and the coding that the body is in.
fn content_type(headers: &HeaderMap) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let essence = joined(headers, &CONTENT_TYPE, essence);
    let coding = joined(headers, &CONTENT_ENCODING, coding);
    (!essence.is_empty() || !coding.is_empty()).then_some((essence, coding))
}

/// The part of each line of a field that `part` takes, in lower case. Several lines are one value,
/// joined by commas (RFC 9110, section 5.3).
fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName, part: fn(&str) -> &str) -> Cow<'a, str> {
    let mut parts = headers.get_all(name).into_iter().map(|line| {
        let line = String::from_utf8_lossy(line.as_bytes());
        lowercase(line, part)
    });
    let mut joined = parts.next().unwrap_or_default();
    for part in parts.filter(|part| !part.is_empty()) {
        if !joined.is_empty() {
            joined.to_mut().push_str(", ");
        }
        joined.to_mut().push_str(&part);
    }
    joined
}

/// The part of a text that `part` takes, in lower case, as most clients write it already.
fn lowercase(text: Cow<'_, str>, part: fn(&str) -> &str) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) if !part(text).bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Cow::Borrowed(part(text))
        }
        text => Cow::Owned(part(&text).to_ascii_lowercase()),
    }
}

fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// The codings of a body; nothing if there is none, which may also be told as `identity` (RFC 9110,
/// section 8.4.1).
fn coding(content_encoding: &str) -> &str {
    let coding = content_encoding.trim();
    if coding.eq_ignore_ascii_case("identity") {
        ""
    } else {
        coding
    }
}

/// Tells whether a body is JSON by its content type: `application/json`, or anything that ends in
/// `+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(CONTENT_TYPE).map(HeaderValue::to_str) else {
        return false;
    };
    let essence = essence(value).to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

/// A SHA-256, as the bytes that it is.
struct Hash([u8; 32]);

impl Hash {
    fn of(bytes: &[u8]) -> Self {
        Self(<Sha256 as sha2::Digest>::digest(bytes).into())
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

//! A response as it is kept for the replays of its request.

mod body;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, TRAILER, TRANSFER_ENCODING},
    response::Parts,
};
use sha2::{Digest as _, Sha256};

pub use self::body::StoredBody;
use super::headers::{HeaderPolicy, IDEMPOTENT_REPLAYED};
use crate::framing::{read_framed, read_number, write_framed, write_number};

/// The first byte of what [`StoredResponse::encode`] writes.
const FORMAT: u8 = 1;

/// How much of the SHA-256 of a stored response is kept with it, in bytes.
const DIGEST: usize = 8;

/// A response as it is kept for the replays of its request: status, header fields, the whole body
/// and trailers.
///
/// # Format
///
/// `encode` writes, in this order: the format's number, 1, in one byte; the first 8 bytes of the
/// SHA-256 of that byte and of everything that follows here; the status, in two bytes, the higher
/// one first; the header fields; the trailer fields; the body, up to the end. Fields are their
/// number, then for each its name, one byte that is 1 where the value is marked as sensitive and 0
/// elsewhere, and its value. Numbers are in unsigned LEB128; names and values stand behind their
/// length.
///
/// # Examples
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use idempotent_runtime::http::StoredResponse;
///
/// let response = StoredResponse::new(StatusCode::CREATED, HeaderMap::new(), "order 42", HeaderMap::new());
/// let bytes = response.encode();
/// assert_eq!(StoredResponse::decode(&bytes)?, response);
/// # Ok::<(), idempotent_runtime::http::UnreadableResponse>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
}

impl StoredResponse {
    /// Makes one of everything that it is to hold. A status that allows no body (1xx, 204, 205,
    /// 304) gets none.
    #[must_use]
    pub fn new(
        status: StatusCode,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        trailers: HeaderMap,
    ) -> Self {
        let body = may_have_body(status).then(|| body.into());
        let body = body.unwrap_or_default();
        Self {
            status,
            headers,
            body,
            trailers,
        }
    }

    /// Takes from a response what `policy` keeps of it.
    #[must_use]
    pub fn capture(
        head: &Parts,
        body: impl Into<Bytes>,
        trailers: Option<&HeaderMap>,
        policy: &HeaderPolicy,
    ) -> Self {
        let trailers = trailers.map(|trailers| policy.stored(trailers));
        let headers = policy.stored(&head.headers);
        Self::new(head.status, headers, body, trailers.unwrap_or_default())
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The header fields.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The whole body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The trailer fields; empty where there are none.
    #[must_use]
    pub fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    /// Makes the response of a replay: the stored one, marked with `Idempotent-Replayed: true`.
    #[must_use]
    pub fn into_replay(self) -> Response<StoredBody> {
        let mut response = self.into_response();
        let marked = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, marked);
        response
    }

    /// Makes the stored response, without a mark.
    ///
    /// It has neither a `Content-Length`, which the server computes of the body, nor a
    /// `Transfer-Encoding`, also where it was made with one. It has a `Trailer` that names the
    /// trailers, if there are any: HTTP/1.1 servers leave them out without it.
    #[must_use]
    pub fn into_response(self) -> Response<StoredBody> {
        let mut headers = self.headers;
        for of_the_message in [CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(of_the_message);
        }
        if !self.trailers.is_empty() {
            headers.insert(TRAILER, names_of(&self.trailers));
        }
        let mut response = Response::new(StoredBody::new(self.body, self.trailers));
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }

    /// Writes it as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let fields = room_for(&self.headers) + room_for(&self.trailers);
        let mut bytes = Vec::with_capacity(1 + DIGEST + 2 + fields + self.body.len());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&[0; DIGEST]);
        bytes.extend_from_slice(&self.status.as_u16().to_be_bytes());
        write_fields(&mut bytes, &self.headers);
        write_fields(&mut bytes, &self.trailers);
        bytes.extend_from_slice(&self.body);
        let digest = digest_of(&bytes[1 + DIGEST..]);
        bytes[1..=DIGEST].copy_from_slice(&digest);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    ///
    /// When the bytes are of another format, or not what was written. The handler ran once for
    /// them: it must not be run again because of this.
    pub fn decode(bytes: &[u8]) -> Result<Self, UnreadableResponse> {
        Self::read(bytes, Bytes::copy_from_slice)
    }

    /// Reads what [`encode`](Self::encode) wrote, and shares the body and the values of fields with
    /// `bytes` instead of copying them.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_shared(bytes: &Bytes) -> Result<Self, UnreadableResponse> {
        Self::read(bytes, |body| bytes.slice_ref(body))
    }

    fn read(bytes: &[u8], keep: impl Fn(&[u8]) -> Bytes) -> Result<Self, UnreadableResponse> {
        let (&format, rest) = bytes.split_first().ok_or(UnreadableResponse::Corrupt)?;
        if format != FORMAT {
            return Err(UnreadableResponse::UnknownFormat { format });
        }
        let parts = rest.split_first_chunk::<DIGEST>();
        let (digest, mut rest) = parts.ok_or(UnreadableResponse::Corrupt)?;
        if *digest != digest_of(rest) {
            return Err(UnreadableResponse::Corrupt);
        }
        Self::read_checked(&mut rest, keep).ok_or(UnreadableResponse::Corrupt)
    }

    fn read_checked(rest: &mut &[u8], keep: impl Fn(&[u8]) -> Bytes) -> Option<Self> {
        let (status, fields) = rest.split_first_chunk()?;
        *rest = fields;
        let status = StatusCode::from_u16(u16::from_be_bytes(*status)).ok()?;
        let headers = read_fields(rest, &keep)?;
        let trailers = read_fields(rest, &keep)?;
        let allowed = rest.is_empty() || may_have_body(status);
        allowed.then(|| Self::new(status, headers, keep(rest), trailers))
    }
}

/// Shows no header values and no body, because they may hold what must not stand in logs.
impl std::fmt::Debug for StoredResponse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StoredResponse")
            .field("status", &self.status)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body", &format_args!("{} bytes", self.body.len()))
            .field("trailers", &self.trailers.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// A stored response cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableResponse {
    /// It was written by a release that knows another format, or is no stored response at all.
    #[error("the stored response is of format {format}, and this release reads format {FORMAT}")]
    #[non_exhaustive]
    UnknownFormat {
        /// The number of the format.
        format: u8,
    },
    /// It was cut short or changed after it was written.
    #[error("the stored response was cut short or changed after it was written")]
    Corrupt,
}

/// Whether a response of that status has a body (RFC 9110, sections 15.2, 15.3.5, 15.3.6 and
/// 15.4.5).
fn may_have_body(status: StatusCode) -> bool {
    !status.is_informational()
        && !matches!(
            status,
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
        )
}

fn names_of(fields: &HeaderMap) -> HeaderValue {
    let names: Vec<&str> = fields.keys().map(HeaderName::as_str).collect();
    HeaderValue::try_from(names.join(", "))
        .expect("the names of header fields can stand in the value of one")
}

fn digest_of(contents: &[u8]) -> [u8; DIGEST] {
    let digest = Sha256::new().chain_update([FORMAT]).chain_update(contents);
    let whole: [u8; 32] = digest.finalize().into();
    std::array::from_fn(|place| whole[place])
}

/// How many bytes fields take, or a few more: a store may keep the room for as long as the outcome.
fn room_for(fields: &HeaderMap) -> usize {
    let number = 3;
    let lines = fields
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 1 + 2 * number);
    number + lines.sum::<usize>()
}

fn write_fields(bytes: &mut Vec<u8>, fields: &HeaderMap) {
    write_number(bytes, fields.len() as u64);
    for (name, value) in fields {
        write_framed(bytes, name.as_str().as_bytes());
        bytes.push(u8::from(value.is_sensitive()));
        write_framed(bytes, value.as_bytes());
    }
}

fn read_fields(bytes: &mut &[u8], keep: impl Fn(&[u8]) -> Bytes) -> Option<HeaderMap> {
    let count = read_number(bytes)?;
    // The number is not trusted with an allocation: a field takes three bytes at least, and so many
    // must be there.
    let mut fields = HeaderMap::new();
    for _ in 0..count {
        let name = read_framed(bytes)?;
        let (&sensitive, rest) = bytes.split_first()?;
        *bytes = rest;
        let mut value = HeaderValue::from_maybe_shared(keep(read_framed(bytes)?)).ok()?;
        value.set_sensitive(match sensitive {
            0 => false,
            1 => true,
            _ => return None,
        });
        let name = HeaderName::from_lowercase(name).ok()?;
        fields.try_append(name, value).ok()?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests;

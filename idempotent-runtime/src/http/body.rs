//! Bodies: handed on as they come, or read to their end.

use std::{
    future::poll_fn,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::{
    error::BoxError,
    handle::Idempotency,
    http::streamed::{Streamed, Watch},
    value::opaque,
};

pin_project! {
    /// The body of a request as the guarded service gets it, and of a response as the layer's
    /// caller gets it. It is the body that came, or bytes that were read from it.
    pub struct Body<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = Projected]
    enum Kind<B> {
        Untouched {
            #[pin]
            body: B,
        },
        Read {
            read: Whole,
            rest: Option<Pin<Box<B>>>,
            failure: Option<BoxError>,
        },
        Streamed {
            streamed: Streamed<B>,
        },
    }
}

/// A body that was read to its end, or the part of one that was read.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Whole {
    fn pop(&mut self) -> Option<Frame<Bytes>> {
        if self.bytes.is_empty() {
            return self.trailers.take().map(Frame::trailers);
        }
        Some(Frame::data(mem::take(&mut self.bytes)))
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.trailers.is_none()
    }
}

/// The part that was read so far of a body that is being read.
///
/// Its pieces are joined as they come: each costs the same room beside its data, and their sender
/// chooses how small they are. A body of one piece, which most are, is not copied.
#[derive(Default)]
struct Gathered {
    first: Bytes,
    /// The first piece and all others; empty where there are no others.
    joined: BytesMut,
    trailers: Option<HeaderMap>,
}

impl Gathered {
    fn add(&mut self, frame: Frame<Bytes>) {
        match frame.into_data().map_err(Frame::into_trailers) {
            Ok(data) if data.is_empty() => {}
            Ok(data) if self.len() == 0 => self.first = data,
            Ok(data) => {
                if self.joined.is_empty() {
                    self.joined.extend_from_slice(&mem::take(&mut self.first));
                }
                self.joined.extend_from_slice(&data);
            }
            Err(Ok(trailers)) => self.trailers = Some(trailers),
            Err(Err(_of_a_kind_not_known_yet)) => {}
        }
    }

    /// The bytes of data.
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn whole(self) -> Whole {
        Whole {
            bytes: if self.joined.is_empty() {
                self.first
            } else {
                self.joined.freeze()
            },
            trailers: self.trailers,
        }
    }
}

/// Why a body was not read to its end.
pub(crate) enum Unfinished<B> {
    /// It is longer than allowed: the part that was read so far, and the rest behind it.
    TooLong(Body<B>),
    /// Reading it failed: the part that was read so far, and the failure behind it.
    Failed(Body<B>),
}

impl<B> Body<B> {
    /// Hands on a body as it is.
    pub(crate) fn untouched(body: B) -> Self {
        Self {
            kind: Kind::Untouched { body },
        }
    }

    /// Gives the part that was read.
    pub(crate) fn whole(whole: Whole) -> Self {
        Self::read(whole, None, None)
    }

    /// Gives it on as it comes, while its watcher hears how it ends.
    pub(crate) fn watched(self, handle: &Idempotency) -> (Self, Watch<B>) {
        let (streamed, watch) = Streamed::new(self, handle);
        let kind = Kind::Streamed { streamed };
        (Self { kind }, watch)
    }

    /// Why it broke off, if it did.
    pub(crate) fn failure(&self) -> Option<&BoxError> {
        match &self.kind {
            Kind::Untouched { .. } | Kind::Streamed { .. } => None,
            Kind::Read { failure, .. } => failure.as_ref(),
        }
    }

    fn read(read: Whole, rest: Option<Pin<Box<B>>>, failure: Option<BoxError>) -> Self {
        Self {
            kind: Kind::Read {
                read,
                rest,
                failure,
            },
        }
    }
}

impl<B> From<Bytes> for Body<B> {
    fn from(bytes: Bytes) -> Self {
        Self::whole(Whole {
            bytes,
            trailers: None,
        })
    }
}

/// Reads a body to its end, at most `limit` bytes of data.
///
/// # Cancel safety
///
/// The part that was read is lost when the future is dropped.
pub(crate) async fn read_to_end<B>(body: B, limit: usize) -> Result<Whole, Unfinished<B>>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = Box::pin(body);
    let mut gathered = Gathered::default();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame {
            Ok(frame) => gathered.add(frame),
            Err(error) => {
                let failed = Body::read(gathered.whole(), None, Some(error.into()));
                return Err(Unfinished::Failed(failed));
            }
        }
        if gathered.len() > limit {
            let too_long = Body::read(gathered.whole(), Some(body), None);
            return Err(Unfinished::TooLong(too_long));
        }
    }
    Ok(gathered.whole())
}

/// Reads a body to its end, of any length.
#[cfg(feature = "testing")]
pub(crate) async fn whole_body<B>(body: B) -> Result<Bytes, BoxError>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match read_to_end(body, usize::MAX).await {
        Ok(whole) => Ok(whole.bytes),
        Err(_) => Err("the body broke off".into()),
    }
}

impl<B> HttpBody for Body<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (read, rest, failure) = match self.project().kind.project() {
            Projected::Untouched { body } => {
                return body
                    .poll_frame(cx)
                    .map(|frame| frame.map(|frame| frame.map_err(Into::into)));
            }
            Projected::Streamed { streamed } => return streamed.poll_frame(cx),
            Projected::Read {
                read,
                rest,
                failure,
            } => (read, rest, failure),
        };
        if let Some(frame) = read.pop() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let frame = match rest {
            Some(rest) => {
                ready!(rest.as_mut().poll_frame(cx)).map(|frame| frame.map_err(Into::into))
            }
            None => failure.take().map(Err),
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Untouched { body } => body.is_end_stream(),
            Kind::Streamed { streamed } => streamed.is_end_stream(),
            Kind::Read {
                read,
                rest,
                failure,
            } => {
                read.is_empty()
                    && failure.is_none()
                    && rest.as_ref().is_none_or(HttpBody::is_end_stream)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Untouched { body } => body.size_hint(),
            Kind::Streamed { streamed } => streamed.size_hint(),
            Kind::Read {
                read,
                rest,
                failure,
            } => {
                let there = read.bytes.len() as u64;
                // A server sends a body of known length with a `Content-Length`, and HTTP/1.1 has
                // trailers only without one.
                let is_open = failure.is_some() || read.trailers.is_some();
                let behind = match rest {
                    Some(rest) => rest.size_hint(),
                    None if is_open => SizeHint::default(),
                    None => SizeHint::with_exact(0),
                };
                let mut hint = SizeHint::default();
                hint.set_lower(behind.lower().saturating_add(there));
                if let Some(upper) = behind.upper().and_then(|upper| upper.checked_add(there)) {
                    hint.set_upper(upper);
                }
                hint
            }
        }
    }
}

// The bytes of a body must not be shown.
opaque!(Body<B>);

#[cfg(test)]
mod tests;

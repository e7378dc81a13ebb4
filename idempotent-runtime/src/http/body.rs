//! Bodies: handed on as they come, read to their end, or given on while somebody watches how they end.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::oneshot;

use crate::error::BoxError;

pin_project! {
    /// The body of a request as the guarded service gets it, and of a response as the layer's caller gets it: the one that
    /// came, or bytes that were read from it.
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
            read: Frames,
            rest: Option<Pin<Box<B>>>,
            failure: Option<BoxError>,
            watch: Option<Watch>,
        },
    }
}

/// What was read of a body. Most bodies are a single frame, which needs no room of its own.
#[derive(Default)]
struct Frames {
    first: Option<Frame<Bytes>>,
    more: VecDeque<Frame<Bytes>>,
}

impl Frames {
    fn push(&mut self, frame: Frame<Bytes>) {
        if self.is_empty() {
            self.first = Some(frame);
        } else {
            self.more.push_back(frame);
        }
    }

    fn pop(&mut self) -> Option<Frame<Bytes>> {
        self.first.take().or_else(|| self.more.pop_front())
    }

    fn iter(&self) -> impl Iterator<Item = &Frame<Bytes>> {
        self.first.iter().chain(&self.more)
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_empty()
    }
}

/// A body that was read to its end.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// Why a body was not read to its end.
pub(crate) enum Unfinished<B> {
    /// It is longer than allowed: what was read of it so far, and the rest behind it.
    TooLong(Body<B>),
    /// Reading it failed: what was read of it so far, and the failure behind it.
    Failed(Body<B>),
}

/// How a body ended that was given on; its watcher hears nothing where it was dropped half-way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Whole,
    Failed,
}

struct Watch(Option<oneshot::Sender<Ended>>);

impl Watch {
    fn tell(&mut self, ended: Ended) {
        if let Some(watcher) = self.0.take() {
            let _nobody_watches_any_more = watcher.send(ended);
        }
    }
}

impl<B> Body<B> {
    /// Hands on a body as it is.
    pub(crate) fn untouched(body: B) -> Self {
        Self {
            kind: Kind::Untouched { body },
        }
    }

    /// Gives what was read.
    pub(crate) fn whole(whole: Whole) -> Self {
        let mut read = Frames::default();
        if !whole.bytes.is_empty() {
            read.push(Frame::data(whole.bytes));
        }
        if let Some(trailers) = whole.trailers {
            read.push(Frame::trailers(trailers));
        }
        Self::read(read, None, None)
    }

    /// Has its end told to whoever watches.
    pub(crate) fn watched(self) -> (Self, oneshot::Receiver<Ended>)
    where
        B: HttpBody<Data = Bytes>,
    {
        let (watcher, ended) = oneshot::channel();
        let (read, rest, failure) = match self.kind {
            Kind::Untouched { body } => (Frames::default(), Some(Box::pin(body)), None),
            Kind::Read {
                read,
                rest,
                failure,
                ..
            } => (read, rest, failure),
        };
        let mut body = Self::read(read, rest, failure);
        if let Kind::Read { watch, .. } = &mut body.kind {
            *watch = Some(Watch(Some(watcher)));
        }
        (body, ended)
    }

    fn read(read: Frames, rest: Option<Pin<Box<B>>>, failure: Option<BoxError>) -> Self {
        Self {
            kind: Kind::Read {
                read,
                rest,
                failure,
                watch: None,
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
/// What was read is lost when it is dropped.
pub(crate) async fn read_to_end<B>(body: B, limit: usize) -> Result<Whole, Unfinished<B>>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = Box::pin(body);
    let mut read = Frames::default();
    let mut length = 0_usize;
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                return Err(Unfinished::Failed(Body::read(
                    read,
                    None,
                    Some(error.into()),
                )));
            }
        };
        length = length.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        read.push(frame);
        if length > limit {
            return Err(Unfinished::TooLong(Body::read(read, Some(body), None)));
        }
    }
    Ok(joined(read, length))
}

/// Reads a body to its end, however long.
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

/// Puts the frames together; a body of one piece, which most are, is not copied.
fn joined(mut read: Frames, length: usize) -> Whole {
    let mut whole = Whole::default();
    let mut joined = BytesMut::new();
    while let Some(frame) = read.pop() {
        match frame.into_data().map_err(Frame::into_trailers) {
            Ok(data) if whole.bytes.is_empty() => whole.bytes = data,
            Ok(data) => {
                if joined.is_empty() {
                    joined.reserve(length);
                    joined.extend_from_slice(&whole.bytes);
                }
                joined.extend_from_slice(&data);
            }
            Err(Ok(trailers)) => whole.trailers = Some(trailers),
            Err(Err(_of_a_kind_not_known_yet)) => {}
        }
    }
    if !joined.is_empty() {
        whole.bytes = joined.freeze();
    }
    whole
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
        let (read, rest, failure, watch) = match self.project().kind.project() {
            Projected::Untouched { body } => {
                return body
                    .poll_frame(cx)
                    .map(|frame| frame.map(|frame| frame.map_err(Into::into)));
            }
            Projected::Read {
                read,
                rest,
                failure,
                watch,
            } => (read, rest, failure, watch),
        };
        if let Some(frame) = read.pop() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let frame = match rest {
            Some(rest) => {
                let polled = catch_unwind(AssertUnwindSafe(|| rest.as_mut().poll_frame(cx)));
                let polled = polled.unwrap_or_else(|panic| {
                    if let Some(watch) = watch {
                        watch.tell(Ended::Failed);
                    }
                    resume_unwind(panic)
                });
                ready!(polled).map(|frame| frame.map_err(Into::into))
            }
            None => failure.take().map(Err),
        };
        if let Some(watch) = watch {
            match &frame {
                Some(Ok(_)) => {}
                Some(Err(_)) => watch.tell(Ended::Failed),
                None => watch.tell(Ended::Whole),
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Untouched { body } => body.is_end_stream(),
            Kind::Read {
                read,
                rest,
                failure,
                ..
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
            Kind::Read {
                read,
                rest,
                failure,
                ..
            } => {
                let there: usize = read
                    .iter()
                    .filter_map(Frame::data_ref)
                    .map(Bytes::len)
                    .sum();
                let there = there as u64;
                // A server sends a body of known length with a `Content-Length`, and HTTP/1.1 has trailers only without one.
                let is_open = failure.is_some() || read.iter().any(Frame::is_trailers);
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

impl<B> fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What stands in a body is nobody's business.
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

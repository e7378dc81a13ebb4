//! The answers of handlers, and bodies that are made piece by piece.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{BoxError, body::Body};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use idempotent_runtime::http::ReplayHint;
use tokio::sync::mpsc::UnboundedReceiver;

/// A response without header fields.
pub(crate) fn respond(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}

/// The same with one more line of a header field.
pub(crate) fn with_field(
    mut response: Response<Body>,
    name: &'static str,
    value: &'static str,
) -> Response<Body> {
    let value = HeaderValue::from_static(value);
    response.headers_mut().append(name, value);
    response
}

/// The same with the handler's own word, where it has one.
pub(crate) fn marked(
    mut response: Response<Body>,
    mark: impl Into<Option<ReplayHint>>,
) -> Response<Body> {
    let mark: Option<ReplayHint> = mark.into();
    mark.map(|mark| response.extensions_mut().insert(mark));
    response
}

/// Tells one run from another.
pub(crate) fn receipt(run: usize) -> Response<Body> {
    Response::new(Body::from(format!("receipt {run}")))
}

type PollPiece<E> = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> + Send>;

struct Polled<E> {
    poll: PollPiece<E>,
    length: SizeHint,
}

impl<E> http_body::Body for Polled<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        (self.poll)(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.length
    }
}

/// A body whose pieces come from this function, and whose length is unknown.
pub(crate) fn polled<E>(
    poll: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> + Send + 'static,
) -> Body
where
    E: Into<BoxError> + 'static,
{
    let length = SizeHint::default();
    let poll: PollPiece<E> = Box::new(poll);
    Body::new(Polled { poll, length })
}

/// The same, and it is known how long it is to be.
pub(crate) fn polled_of<E>(
    length: u64,
    poll: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> + Send + 'static,
) -> Body
where
    E: Into<BoxError> + 'static,
{
    let length = SizeHint::with_exact(length);
    let poll: PollPiece<E> = Box::new(poll);
    Body::new(Polled { poll, length })
}

/// A body of these pieces, whose length is unknown.
pub(crate) fn stream<E>(pieces: Vec<Result<Bytes, E>>) -> Body
where
    E: Into<BoxError> + Send + 'static,
{
    let mut pieces = pieces.into_iter();
    polled(move |_| Poll::Ready(pieces.next()))
}

/// The same, and it is known how long it is to be.
pub(crate) fn stream_of<E>(length: u64, pieces: Vec<Result<Bytes, E>>) -> Body
where
    E: Into<BoxError> + Send + 'static,
{
    let mut pieces = pieces.into_iter();
    polled_of(length, move |_| Poll::Ready(pieces.next()))
}

/// A body of what is sent, as it is sent.
pub(crate) fn live(mut pieces: UnboundedReceiver<Bytes>) -> Body {
    polled::<Infallible>(move |cx| pieces.poll_recv(cx).map(|piece| piece.map(Ok)))
}

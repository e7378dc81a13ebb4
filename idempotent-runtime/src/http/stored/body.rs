//! A stored body on its way out.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::value::opaque;

/// The body of a stored response, with its trailers.
pub struct StoredBody {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl StoredBody {
    pub(super) fn new(data: Bytes, trailers: HeaderMap) -> Self {
        Self {
            data: (!data.is_empty()).then_some(data),
            trailers: (!trailers.is_empty()).then_some(trailers),
        }
    }
}

// The contents of a body must not be shown.
opaque!(StoredBody);

impl Body for StoredBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        let frame = data.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.data.as_ref().map_or(0, Bytes::len) as u64;
        if self.trailers.is_none() {
            return SizeHint::with_exact(length);
        }
        // A server sends a body of known length with a `Content-Length`, and HTTP/1.1 has trailers
        // only without one.
        let mut hint = SizeHint::new();
        hint.set_lower(length);
        hint
    }
}

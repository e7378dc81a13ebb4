//! Responses that are handed on before all of their body has come.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use reqwest::{Body, Response};
use tokio::runtime::Handle;

use super::{
    answer::{put_together, take_apart},
    finish::Closing,
    keys::Inner,
};

/// Hands a response on whose call is over when its body is. Where the body breaks off, the call stays open, and can be sent again
/// with its key: half a response is no outcome. Who drops it before its end does not want the rest.
pub(super) fn watched(response: Response, inner: &Arc<Inner>, closing: Closing) -> Response {
    let (parts, url, body) = take_apart(response);
    let inner = Arc::clone(inner);
    let watched = Watched {
        body,
        ended: false,
        telling: Some(Mutex::new(Box::pin(async move {
            closing.write(&inner).await;
        }))),
    };
    put_together(parts, url, Body::wrap(watched))
}

struct Watched {
    body: Body,
    ended: bool,
    /// Tells the journal that the call is over, until that is done or is not to be done. The lock is never taken: it lets what
    /// may be moved to another thread stand in what several may look at.
    telling: Option<Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<reqwest::Result<Frame<Bytes>>>> {
        if !self.ended {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
            if matches!(frame, Some(Err(_))) {
                self.telling = None;
            }
            if frame.is_some() {
                return Poll::Ready(frame);
            }
            self.ended = true;
        }
        // Who has seen the end may ask again at once, and the journal is to know by then.
        if let Some(telling) = &mut self.telling {
            let telling = telling.get_mut().unwrap_or_else(PoisonError::into_inner);
            ready!(telling.as_mut().poll(context));
            self.telling = None;
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.telling.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Where there is no runtime any more, the call stays open, and is sent again with its key.
        if let Some(telling) = self.telling.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(telling.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

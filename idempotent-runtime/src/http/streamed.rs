//! A response that is given on as it comes: its watcher hears how it ends, and cuts it off if its
//! client does not read it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::{
    clock::Timer,
    error::BoxError,
    handle::Idempotency,
    http::{body::Body, patience::Patience},
    race::race,
    value::lock,
};

/// How a body ended that was given on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Whole,
    Failed,
}

/// A client left a response unread for longer than it may.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the response was not read in time")]
struct Unread;

/// The body that goes out to the client.
pub(crate) struct Streamed<B> {
    shared: Arc<Mutex<Shared<B>>>,
    handle: Idempotency,
    end: Option<oneshot::Sender<Ended>>,
}

struct Shared<B> {
    body: Rest<B>,
    /// Since when the client owes the next look; `None` while the handler owes the next piece.
    unread_since: Option<Duration>,
    waker: Option<Waker>,
}

enum Rest<B> {
    There(Pin<Box<Body<B>>>),
    /// It was cut off, and the client does not know it yet.
    Cut,
    Gone,
}

/// The watcher of a body that goes out. It does not keep the body: if the client is gone, so is the
/// body.
pub(crate) struct Watch<B> {
    shared: Weak<Mutex<Shared<B>>>,
    ended: oneshot::Receiver<Ended>,
}

impl<B> Streamed<B> {
    pub(crate) fn new(body: Body<B>, handle: &Idempotency) -> (Self, Watch<B>) {
        let (end, ended) = oneshot::channel();
        let shared = Arc::new(Mutex::new(Shared {
            body: Rest::There(Box::pin(body)),
            unread_since: Some(handle.timer().now()),
            waker: None,
        }));
        let watch = Watch {
            shared: Arc::downgrade(&shared),
            ended,
        };
        let streamed = Self {
            shared,
            handle: handle.clone(),
            end: Some(end),
        };
        (streamed, watch)
    }

    fn tell(&mut self, ended: Ended) {
        if let Some(end) = self.end.take() {
            let _nobody_watches_any_more = end.send(ended);
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mut shared = lock(&self.shared);
        let polled = match &mut shared.body {
            Rest::There(body) => body.as_mut().poll_frame(cx),
            Rest::Cut => {
                shared.body = Rest::Gone;
                return Poll::Ready(Some(Err(Unread.into())));
            }
            Rest::Gone => return Poll::Ready(None),
        };
        let is_ready = polled.is_ready();
        shared.unread_since = is_ready.then(|| self.handle.timer().now());
        shared.waker = (!is_ready).then(|| cx.waker().clone());
        polled
    }
}

impl<B> Streamed<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.poll(cx)));
        let frame = ready!(polled.unwrap_or_else(|panic| {
            self.tell(Ended::Failed);
            resume_unwind(panic)
        }));
        match &frame {
            Some(Ok(_)) => {}
            Some(Err(_)) => self.tell(Ended::Failed),
            None => self.tell(Ended::Whole),
        }
        Poll::Ready(frame)
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        match &lock(&self.shared).body {
            Rest::There(body) => body.is_end_stream(),
            Rest::Cut => false,
            Rest::Gone => true,
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match &lock(&self.shared).body {
            Rest::There(body) => body.size_hint(),
            Rest::Cut | Rest::Gone => SizeHint::default(),
        }
    }
}

impl<B> Watch<B> {
    /// Returns how the body ended; `None` if its client went away, left it unread for longer than
    /// it may, or if `over` came first. The body of a client that does not read is cut off.
    pub(crate) async fn end(
        self,
        timer: &dyn Timer,
        patience: Patience,
        over: impl Future<Output = ()>,
    ) -> Option<Ended> {
        let Self { shared, ended } = self;
        let cut = cut_if_unread(shared, timer, patience);
        race(ended, race_both(cut, over)).await?.ok()
    }
}

async fn race_both(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    race(pin!(one), other).await;
}

/// Resolves when the body was cut off, or is gone.
async fn cut_if_unread<B>(shared: Weak<Mutex<Shared<B>>>, timer: &dyn Timer, patience: Patience) {
    let deadline = timer.now().saturating_add(patience.in_all);
    loop {
        let now = timer.now();
        let limit = {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let since = lock(&shared).unread_since.unwrap_or(now);
            let limit = since.saturating_add(patience.between).min(deadline);
            if limit <= now {
                return cut(&shared);
            }
            limit
        };
        timer.sleep_until(limit).await;
    }
}

fn cut<B>(shared: &Mutex<Shared<B>>) {
    let (body, waker) = {
        let mut shared = lock(shared);
        let Rest::There(_) = &shared.body else {
            return;
        };
        let body = std::mem::replace(&mut shared.body, Rest::Cut);
        (body, shared.waker.take())
    };
    if catch_unwind(AssertUnwindSafe(|| drop(body))).is_err() {
        tracing::error!("a response that no client read panicked when it was dropped");
    }
    if let Some(waker) = waker {
        waker.wake();
    }
}

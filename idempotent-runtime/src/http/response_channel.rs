//! The client's side of a call, while its handler runs in a task of its own.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
};

use http::{HeaderValue, Response};
use tokio::sync::oneshot;

use crate::{
    error::Error,
    http::{body::Body, headers::IDEMPOTENCY_STATUS},
    observe::{CallReport, UnprotectedReason},
    record::RawOutcome,
};

/// The word of a response whose key is free again: nothing happened.
pub(crate) const RELEASED: &str = "released";

/// The word of a response that is not the outcome of its call, and whose key is not free.
pub(crate) const OPEN: &str = "open";

/// The reply of a handler to its own client.
pub(crate) enum Reply<R, E> {
    /// Its response, to be given when its outcome is recorded.
    Whole(Box<HandlerReply<R, E>>),
    /// A response of which only its end is recorded.
    Streamed(Box<Response<Body<R>>>),
}

/// A handler's response, and what is to be recorded of it.
pub(crate) struct HandlerReply<R, E> {
    pub(crate) response: Result<Response<Body<R>>, E>,
    pub(crate) outcome: RawOutcome,
}

impl<R, E> HandlerReply<R, E> {
    /// Says with a response what its status alone does not tell: that its key is free again, or
    /// that the call is open. The response of an open call is about this run alone, and an earlier
    /// run may have acted.
    pub(crate) fn set_status(&mut self, word: &'static str) {
        if let Ok(response) = &mut self.response {
            let word = HeaderValue::from_static(word);
            response.headers_mut().insert(IDEMPOTENCY_STATUS, word);
        }
    }

    /// The response, when its call has come to its end so. A key of which the store could not be
    /// told is not said to be free.
    pub(crate) fn given(mut self, how: &CallReport) -> Result<Response<Body<R>>, E> {
        let stands = matches!(how, CallReport::Executed { recorded: true, .. });
        if !stands
            && let Ok(response) = &mut self.response
            && response.headers_mut().remove(IDEMPOTENCY_STATUS).is_some()
            && leaves_open(how)
        {
            self.set_status(OPEN);
        }
        self.response
    }
}

/// Whether there is, or may be, a record of which the store could not be told that its handler did
/// nothing.
fn leaves_open(how: &CallReport) -> bool {
    matches!(
        how,
        CallReport::Executed { .. } | CallReport::Unprotected(UnprotectedReason::StoreOutage)
    )
}

/// Gives it to the client's side. If no client takes it any more it ends here, and with it the
/// watch over its body.
pub(crate) fn send<R, E>(client: oneshot::Sender<Reply<R, E>>, own: Reply<R, E>) {
    let given = catch_unwind(AssertUnwindSafe(|| drop(client.send(own))));
    if given.is_err() {
        tracing::error!("a response that no client took panicked when it was dropped");
    }
}

/// The news that the client's side of a call gets of it.
pub(crate) enum Received<R, E> {
    /// The handler's own response, which goes on while the call does.
    Streamed(Box<Response<Body<R>>>),
    /// The call's end, with the reply of its own handler, if that ran.
    Answered(
        Result<(RawOutcome, CallReport), Error>,
        Option<Box<HandlerReply<R, E>>>,
    ),
}

pub(crate) async fn recv<R, E>(
    mut call: Pin<&mut impl Future<Output = Result<(RawOutcome, CallReport), Error>>>,
    mut own: oneshot::Receiver<Reply<R, E>>,
) -> Received<R, E> {
    let mut whole = None;
    let mut has_told = false;
    poll_fn(|cx| {
        let answered = call.as_mut().poll(cx);
        if !has_told {
            // A handler tells its client before its call ends, so a reply is there by now if there
            // is one; polling may be put off.
            let told = match answered {
                Poll::Ready(_) => Poll::Ready(own.try_recv().ok()),
                Poll::Pending => Pin::new(&mut own).poll(cx).map(Result::ok),
            };
            has_told = told.is_ready();
            match told {
                Poll::Ready(Some(Reply::Streamed(response))) => {
                    return Poll::Ready(Received::Streamed(response));
                }
                Poll::Ready(Some(Reply::Whole(told))) => whole = Some(told),
                Poll::Ready(None) | Poll::Pending => {}
            }
        }
        answered.map(|answer| Received::Answered(answer, whole.take()))
    })
    .await
}

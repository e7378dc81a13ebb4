//! A body that runs inside the span of its call.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::ActiveCall;
use crate::{attempt::Attempt, engine::last_words};

/// A body that runs. Dropped half-way, it is dropped as a part of its attempt, and before the
/// record is given up: the next attempt meets nothing of it.
pub(crate) struct RunningBody<'a, B> {
    pub(super) call: &'a mut ActiveCall,
    pub(super) attempt: &'a Attempt,
    pub(super) body: Pin<&'a mut Option<B>>,
}

impl<B: Future> Future for RunningBody<'_, B> {
    type Output = B::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let Self {
            call,
            attempt,
            body,
        } = &mut *self;
        match body.as_mut().as_pin_mut() {
            Some(body) => call.poll_body(attempt, body, cx),
            None => unreachable!("a body stays until what runs it is dropped"),
        }
    }
}

impl<B> Drop for RunningBody<'_, B> {
    fn drop(&mut self) {
        let (body, attempt) = (&mut self.body, self.attempt);
        last_words::inside(&self.call.span, || attempt.dropping(&mut || body.set(None)));
    }
}

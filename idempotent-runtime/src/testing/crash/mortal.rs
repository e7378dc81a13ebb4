//! A process that dies: when, and which of its calls reach the store by then.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use async_trait::async_trait;

use super::CrashPoint;
use crate::{
    identity::RecordId,
    record::Draft,
    store::through::through,
    store::{Store, StoreError, StoreErrorKind},
    testing::StoreOperation,
    value::lock,
};

/// The point that ends a process. The points of the store are counted apart, because how often a
/// call gives way may depend on what goes on beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Store(usize),
    Await(usize),
}

impl End {
    pub(super) fn next(self) -> Self {
        match self {
            End::Store(number) => End::Store(number + 1),
            End::Await(number) => End::Await(number + 1),
        }
    }
}

/// The life of a process, which ends at one of its points.
#[derive(Debug)]
pub(super) struct Life {
    end: End,
    thread: ThreadId,
    course: Mutex<MortalRun>,
}

/// The points that it has come to so far.
#[derive(Debug, Default)]
struct MortalRun {
    of_the_store: usize,
    awaits: usize,
    died: Option<CrashPoint>,
    /// Nothing of the process is polled any more.
    left: bool,
    waker: Option<Waker>,
}

impl Life {
    pub(super) fn until(end: End) -> Self {
        Self {
            end,
            thread: thread::current().id(),
            course: Mutex::default(),
        }
    }

    fn is_over(&self) -> bool {
        lock(&self.course).died.is_some()
    }

    /// Whether this is one of its own tasks, which are about to be dropped, and not a thread that
    /// may ask for long.
    fn is_ending_here(&self) -> bool {
        !lock(&self.course).left && thread::current().id() == self.thread
    }

    /// Says that nothing of the process is polled any more.
    pub(super) fn leave(&self) {
        lock(&self.course).left = true;
    }

    /// Passes a point of the store; never, where it is the last one.
    async fn pass(&self, point: CrashPoint) {
        let ended = {
            let mut course = lock(&self.course);
            course.of_the_store += 1;
            if self.end == End::Store(course.of_the_store) {
                course.died.get_or_insert(point);
                // The code that comes to the point may be a task of its own.
                if let Some(waker) = course.waker.take() {
                    waker.wake();
                }
            }
            course.died.is_some()
        };
        if ended {
            pending::<()>().await;
        }
    }

    /// Goes on with the call; resolves when the process dies.
    pub(super) fn poll<F: Future>(
        &self,
        call: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<CrashPoint> {
        lock(&self.course).waker = Some(cx.waker().clone());
        let answered = call.poll(cx).is_ready();
        let mut course = lock(&self.course);
        if course.died.is_none() && answered {
            course.died = Some(CrashPoint::Answered);
        } else if course.died.is_none() {
            course.awaits += 1;
            if self.end == End::Await(course.awaits) {
                course.died = Some(CrashPoint::Await(course.awaits));
            }
        }
        course.died.map_or(Poll::Pending, Poll::Ready)
    }
}

/// The store, as it is reached by a process that dies.
#[derive(Debug)]
pub(super) struct Mortal {
    inner: Arc<dyn Store>,
    life: Arc<Life>,
}

impl Mortal {
    pub(super) fn new(inner: Arc<dyn Store>, life: Arc<Life>) -> Self {
        Self { inner, life }
    }

    async fn through<T>(
        &self,
        operation: StoreOperation,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        if self.life.is_over() {
            if self.life.is_ending_here() {
                // A task that runs beside the call is dead, too, and learns of nothing.
                pending::<()>().await;
            }
            let kind = StoreErrorKind::Unavailable;
            return Err(StoreError::new(kind, "reaching the store after death"));
        }
        self.life.pass(CrashPoint::Before(operation)).await;
        let answer = call.await;
        self.life.pass(CrashPoint::After(operation)).await;
        answer
    }

    async fn through_write<T>(
        &self,
        next: &Draft,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.through(StoreOperation::of(next), call).await
    }
}

through! { Mortal, StoreOperation {} }

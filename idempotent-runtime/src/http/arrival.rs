//! A request's body while it is kept: how long it may take to arrive, and whose room it takes.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::{
    clock::Timer,
    error::BoxError,
    http::{
        body::{Unfinished, Whole, read_to_end},
        guard::Guard,
        in_flight_limit::{Bounds, Occupant, Permit, Rejected},
        patience::{Patience, TooSlow},
        problem::{Kind, Problem},
        triage::{too_large, unreadable},
    },
};

pin_project! {
    /// A body that fails if it takes longer than it may.
    struct Arriving<'a, B> {
        #[pin]
        body: B,
        timer: &'a dyn Timer,
        patience: Patience,
        // When all of it has to be there; nothing before it is waited for.
        deadline: Option<Duration>,
        // When the next byte has to be there; nothing while none is waited for.
        limit: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    }
}

impl<B> HttpBody for Arriving<'_, B>
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
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            // Frames without a byte cost nothing, and prove nothing.
            if matches!(&frame, Some(Ok(frame)) if frame.data_ref().is_some_and(|data| !data.is_empty()))
            {
                *this.limit = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = this.limit.get_or_insert_with(|| {
            let now = this.timer.now();
            let deadline = this
                .deadline
                .get_or_insert(now.saturating_add(this.patience.in_all));
            let next = now.saturating_add(this.patience.between);
            this.timer.sleep_until(next.min(*deadline))
        });
        limit.as_mut().poll(cx).map(|()| Some(Err(TooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Guard {
    /// Reads the body of the request. A body that is not there yet takes a handler's place while it
    /// is waited for.
    pub(crate) async fn read<B>(&self, body: B) -> Result<Whole, Problem>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let arriving = Arriving {
            body,
            timer: self.settings.handle.timer(),
            patience: self.rules.patience,
            deadline: None,
            limit: None,
        };
        let mut reading = pin!(read_to_end(arriving, self.rules.max_request));
        let read = match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
            Poll::Ready(read) => read,
            Poll::Pending => {
                let _place = self.acquire(Occupant::Pending, self.settings.bounds)?;
                reading.await
            }
        };
        read.map_err(|unfinished| match unfinished {
            Unfinished::TooLong(_) => too_large(&self.rules),
            Unfinished::Failed(body) => unreadable(&body),
        })
    }

    /// Lets the occupant in; the refusal if there is no room.
    pub(crate) fn acquire(&self, occupant: Occupant, bounds: Bounds) -> Result<Permit, Problem> {
        let counted = self
            .settings
            .bounds
            .are_of_callers()
            .then(|| self.caller_id());
        let entered = self.settings.in_flight.acquire(occupant, counted, bounds);
        entered.map_err(|barred| {
            Problem::new(match barred {
                Rejected::Closed | Rejected::Full => Kind::Overloaded,
                Rejected::FullOfThisCaller => Kind::TooManyKeys,
            })
        })
    }
}

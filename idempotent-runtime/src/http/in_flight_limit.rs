//! Ends a service without cutting off its work, and bounds how much it does at once.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::watch;

use crate::value::opaque;

/// Counts the handlers that run, the requests whose bodies are kept meanwhile and the responses
/// that still stream, in all and for each caller that it is told of, and is shut once.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlightLimit(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    /// The handlers.
    inside: usize,
    /// The requests whose bodies arrive, or are kept while they wait.
    pending: usize,
    /// The responses.
    streaming: usize,
    /// By the bytes that tell callers apart.
    callers: HashMap<Arc<[u8]>, usize>,
    closed: bool,
}

// Without the callers, whose names must not be shown.
opaque!(State, |it| inside = it.inside, closed = it.closed);

/// An occupant of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// A handler that runs.
    Handler,
    /// A request that has no handler yet, and whose body is there in part or whole: it arrives, or
    /// the request waits for another one.
    Pending,
    /// A response that still streams, whose handler has answered.
    Stream,
}

impl State {
    fn number_of(&mut self, occupant: Occupant) -> &mut usize {
        match occupant {
            Occupant::Handler => &mut self.inside,
            Occupant::Pending => &mut self.pending,
            Occupant::Stream => &mut self.streaming,
        }
    }
}

/// How many handlers may run at once and requests be kept, and how many responses may stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) in_all: usize,
    /// While there are as many, no handler begins.
    pub(crate) streams: usize,
    pub(crate) of_one_caller: usize,
}

impl Bounds {
    pub(crate) const NONE: Self = Self {
        in_all: usize::MAX,
        streams: usize::MAX,
        of_one_caller: usize::MAX,
    };

    /// Whether it matters whose handlers run.
    pub(crate) fn are_of_callers(self) -> bool {
        self.of_one_caller != usize::MAX
    }
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    Closed,
    Full,
    FullOfThisCaller,
}

/// The place of an occupant.
pub(crate) struct Permit {
    in_flight: InFlightLimit,
    occupant: Occupant,
    caller: Option<Arc<[u8]>>,
}

impl InFlightLimit {
    /// Gives a permit, which counts for this caller if callers are counted, unless the limit is
    /// closed or reached. A limit that is [`empty`](Self::empty) after it was closed stays so.
    pub(crate) fn acquire(
        &self,
        occupant: Occupant,
        caller: Option<Arc<[u8]>>,
        bounds: Bounds,
    ) -> Result<Permit, Rejected> {
        let mut answer = Ok(());
        self.0.send_if_modified(|state| {
            let counted = caller.as_ref().and_then(|caller| state.callers.get(caller));
            let of_this_caller = counted.copied().unwrap_or_default();
            answer = match () {
                () if state.closed => Err(Rejected::Closed),
                () if state.inside + state.pending >= bounds.in_all => Err(Rejected::Full),
                () if state.streaming >= bounds.streams => Err(Rejected::Full),
                () if of_this_caller >= bounds.of_one_caller => Err(Rejected::FullOfThisCaller),
                () => Ok(()),
            };
            if answer.is_ok() {
                *state.number_of(occupant) += 1;
                if let Some(caller) = &caller {
                    state.callers.insert(Arc::clone(caller), of_this_caller + 1);
                }
            }
            // No task waits for a permit to be given.
            false
        });
        answer.map(|()| Permit {
            in_flight: self.clone(),
            occupant,
            caller,
        })
    }

    pub(crate) fn close(&self) {
        self.0.send_modify(|state| state.closed = true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.borrow().closed
    }

    /// Resolves once the limit is closed.
    pub(crate) async fn closed(&self) {
        // The sender is this very limit, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|state| state.closed).await;
    }

    /// Resolves when no handler runs, once the limit is closed.
    pub(crate) async fn empty(&self) {
        let mut states = self.0.subscribe();
        // The sender is this very limit, so it cannot be gone.
        let _ = states
            .wait_for(|state| state.closed && state.inside == 0)
            .await;
    }
}

impl Permit {
    /// Gives this place back for one of another kind, whatever its bound.
    pub(crate) fn becomes(&mut self, occupant: Occupant) {
        self.in_flight.0.send_if_modified(|state| {
            *state.number_of(self.occupant) -= 1;
            *state.number_of(occupant) += 1;
            state.closed && state.inside == 0
        });
        self.occupant = occupant;
    }
}

opaque!(Permit);

impl Drop for Permit {
    fn drop(&mut self) {
        self.in_flight.0.send_if_modified(|state| {
            *state.number_of(self.occupant) -= 1;
            if let Some(caller) = &self.caller
                && let Some(of_this_caller) = state.callers.get_mut(caller)
            {
                *of_this_caller -= 1;
                if *of_this_caller == 0 {
                    state.callers.remove(caller);
                }
            }
            // Only a closed limit has a task that waits, and waking costs something.
            state.closed && state.inside == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_is_not_counted_takes_room_all_the_same() {
        let in_flight = InFlightLimit::default();
        let bounds = Bounds {
            in_all: 2,
            ..Bounds::NONE
        };
        assert!(!bounds.are_of_callers());
        let inside = [
            in_flight.acquire(Occupant::Handler, None, bounds),
            in_flight.acquire(Occupant::Handler, None, bounds),
        ];
        assert!(inside.iter().all(Result::is_ok));
        assert_eq!(
            in_flight.acquire(Occupant::Handler, None, bounds).err(),
            Some(Rejected::Full)
        );
        drop(inside);
        assert!(in_flight.acquire(Occupant::Handler, None, bounds).is_ok());
    }

    #[tokio::test]
    async fn who_is_inside_is_not_shown() {
        let in_flight = InFlightLimit::default();
        let caller = Some(Arc::from(&b"7"[..]));
        let inside = in_flight
            .acquire(Occupant::Handler, caller, Bounds::NONE)
            .expect("there is room");
        for shown in [format!("{in_flight:?}"), format!("{inside:?}")] {
            assert!(!shown.contains(&format!("{}", b'7')), "{shown}");
        }
    }

    #[tokio::test]
    async fn a_door_lets_in_as_many_as_may_be_until_it_is_shut_and_forgets_who_left() {
        let in_flight = InFlightLimit::default();
        let one = || Some(Arc::from(&b"1"[..]));
        let other = || Some(Arc::from(&b"2"[..]));
        let bounds = Bounds {
            in_all: 3,
            streams: 2,
            of_one_caller: 2,
        };
        let first = in_flight
            .acquire(Occupant::Handler, one(), bounds)
            .expect("there is room");
        let second = in_flight
            .acquire(Occupant::Handler, one(), bounds)
            .expect("there is room");
        assert_eq!(
            in_flight.acquire(Occupant::Handler, one(), bounds).err(),
            Some(Rejected::FullOfThisCaller)
        );
        let third = in_flight
            .acquire(Occupant::Handler, other(), bounds)
            .expect("there is room");
        assert_eq!(
            in_flight.acquire(Occupant::Handler, other(), bounds).err(),
            Some(Rejected::Full)
        );
        drop((first, second));
        in_flight
            .acquire(Occupant::Handler, one(), bounds)
            .expect("there is room again");
        drop(third);
        in_flight.close();
        assert_eq!(
            in_flight.acquire(Occupant::Handler, one(), bounds).err(),
            Some(Rejected::Closed)
        );
        in_flight.empty().await;
        assert!(in_flight.0.borrow().callers.is_empty());
    }
}

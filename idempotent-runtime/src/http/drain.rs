//! Ends a service without cutting off what it is doing, and bounds how much it does at once.

use std::{collections::HashMap, fmt, sync::Arc};

use tokio::sync::watch;

/// Counts the handlers that run and the bodies that arrive, in all and for each caller that it is
/// told of, and is shut once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    /// The handlers.
    inside: usize,
    /// The bodies.
    arriving: usize,
    /// By what tells callers apart.
    callers: HashMap<Arc<[u8]>, usize>,
    shut: bool,
}

impl fmt::Debug for State {
    /// Without the callers, whose names are nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("inside", &self.inside)
            .field("shut", &self.shut)
            .finish_non_exhaustive()
    }
}

/// What takes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// A handler that runs.
    Handler,
    /// The body of a request that is waited for.
    Body,
}

impl State {
    fn number_of(&mut self, occupant: Occupant) -> &mut usize {
        match occupant {
            Occupant::Handler => &mut self.inside,
            Occupant::Body => &mut self.arriving,
        }
    }
}

/// How many handlers may run at once, and bodies be waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) in_all: usize,
    pub(crate) of_one_caller: usize,
}

impl Bounds {
    pub(crate) const NONE: Self = Self {
        in_all: usize::MAX,
        of_one_caller: usize::MAX,
    };

    /// Whether it matters whose handlers run.
    pub(crate) fn are_of_callers(self) -> bool {
        self.of_one_caller != usize::MAX
    }
}

/// Why none is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    Shut,
    Full,
    FullOfThisCaller,
}

/// A handler that runs, or a body that arrives.
pub(crate) struct Inside {
    door: Door,
    occupant: Occupant,
    caller: Option<Arc<[u8]>>,
}

impl Door {
    /// Lets in what is of this caller where callers are counted, unless the door is shut or as many
    /// as may be are inside already. Whoever finds the door [`empty`](Self::empty) after shutting
    /// it knows that it stays so.
    pub(crate) fn enter(
        &self,
        occupant: Occupant,
        caller: Option<Arc<[u8]>>,
        bounds: Bounds,
    ) -> Result<Inside, Barred> {
        let mut answer = Ok(());
        self.0.send_if_modified(|state| {
            let counted = caller.as_ref().and_then(|caller| state.callers.get(caller));
            let of_this_caller = counted.copied().unwrap_or_default();
            answer = match () {
                () if state.shut => Err(Barred::Shut),
                () if state.inside + state.arriving >= bounds.in_all => Err(Barred::Full),
                () if of_this_caller >= bounds.of_one_caller => Err(Barred::FullOfThisCaller),
                () => Ok(()),
            };
            if answer.is_ok() {
                *state.number_of(occupant) += 1;
                if let Some(caller) = &caller {
                    state.callers.insert(Arc::clone(caller), of_this_caller + 1);
                }
            }
            // Nobody waits for what is let in.
            false
        });
        answer.map(|()| Inside {
            door: self.clone(),
            occupant,
            caller,
        })
    }

    pub(crate) fn shut(&self) {
        self.0.send_modify(|state| state.shut = true);
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.0.borrow().shut
    }

    /// Resolves when no handler runs, once the door is shut.
    pub(crate) async fn empty(&self) {
        let mut states = self.0.subscribe();
        // The sender is this very door, so it cannot be gone.
        let _ = states
            .wait_for(|state| state.shut && state.inside == 0)
            .await;
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.door.0.send_if_modified(|state| {
            *state.number_of(self.occupant) -= 1;
            if let Some(caller) = &self.caller
                && let Some(of_this_caller) = state.callers.get_mut(caller)
            {
                *of_this_caller -= 1;
                if *of_this_caller == 0 {
                    state.callers.remove(caller);
                }
            }
            // Only who waits for a shut door is woken, because waking costs something even where nobody waits.
            state.shut && state.inside == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_is_not_counted_takes_room_all_the_same() {
        let door = Door::default();
        let bounds = Bounds {
            in_all: 2,
            ..Bounds::NONE
        };
        assert!(!bounds.are_of_callers());
        let inside = [
            door.enter(Occupant::Handler, None, bounds),
            door.enter(Occupant::Handler, None, bounds),
        ];
        assert!(inside.iter().all(Result::is_ok));
        assert_eq!(
            door.enter(Occupant::Handler, None, bounds).err(),
            Some(Barred::Full)
        );
        drop(inside);
        assert!(door.enter(Occupant::Handler, None, bounds).is_ok());
    }

    #[tokio::test]
    async fn who_is_inside_is_not_shown() {
        let door = Door::default();
        let caller = Some(Arc::from(&b"7"[..]));
        let inside = door
            .enter(Occupant::Handler, caller, Bounds::NONE)
            .expect("there is room");
        for shown in [format!("{door:?}"), format!("{inside:?}")] {
            assert!(!shown.contains(&format!("{}", b'7')), "{shown}");
        }
    }

    #[tokio::test]
    async fn a_door_lets_in_as_many_as_may_be_until_it_is_shut_and_forgets_who_left() {
        let door = Door::default();
        let one = || Some(Arc::from(&b"1"[..]));
        let other = || Some(Arc::from(&b"2"[..]));
        let bounds = Bounds {
            in_all: 3,
            of_one_caller: 2,
        };
        let first = door
            .enter(Occupant::Handler, one(), bounds)
            .expect("there is room");
        let second = door
            .enter(Occupant::Handler, one(), bounds)
            .expect("there is room");
        assert_eq!(
            door.enter(Occupant::Handler, one(), bounds).err(),
            Some(Barred::FullOfThisCaller)
        );
        let third = door
            .enter(Occupant::Handler, other(), bounds)
            .expect("there is room");
        assert_eq!(
            door.enter(Occupant::Handler, other(), bounds).err(),
            Some(Barred::Full)
        );
        drop((first, second));
        door.enter(Occupant::Handler, one(), bounds)
            .expect("there is room again");
        drop(third);
        door.shut();
        assert_eq!(
            door.enter(Occupant::Handler, one(), bounds).err(),
            Some(Barred::Shut)
        );
        door.empty().await;
        assert!(door.0.borrow().callers.is_empty());
    }
}

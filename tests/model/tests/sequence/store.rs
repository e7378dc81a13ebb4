//! The store: a versioned cell with a clock.

use idempotent_runtime::protocol::sequence::{StreamDraft, StreamMeaning};

use crate::{
    driver::Protocol,
    faults::Fault,
    pack::{NOW, is_new},
    world::{Cell, End, Owner, Seen, World},
};

/// A request, as the store gets it.
pub(crate) struct Write {
    pub(crate) draft: StreamDraft,
    pub(crate) kind: Kind,
    /// Whether the record stood for the claim of the sender, as far as it is still known.
    pub(crate) owns: bool,
    /// The sender, where it claims.
    pub(crate) by: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Claim(StreamMeaning),
    GiveUp,
    Beat,
    /// The number that is ended, and how.
    End(u8, End),
    Settle,
}

/// Whether a claim of this meaning holds nothing.
pub(crate) fn leaves(meaning: StreamMeaning) -> bool {
    matches!(meaning, StreamMeaning::LeaveUncertain | StreamMeaning::Park)
}

/// Whether what was seen is what stands.
pub(crate) fn stands(cell: Option<Cell>, seen: Seen) -> bool {
    match seen {
        Seen::Nothing => cell.is_none(),
        Seen::Current => cell.is_some(),
        Seen::Stale => false,
    }
}

/// Puts the draft where the version that was seen stands, and tells whether it did.
pub(crate) fn swap(world: &mut World, protocol: &Protocol, seen: Seen, write: &Write) -> bool {
    let is_unchecked = protocol.fault == Fault::CompletionUnchecked
        && matches!(write.kind, Kind::End(_, End::Done));
    if !stands(world.cell, seen) && !is_unchecked {
        return false;
    }
    let previous = world.cell;
    let stood = previous.map(Cell::stream);
    let stream = write.draft.apply(stood.as_ref(), NOW);
    let next = Cell::of(&stream);
    world.witness_write(protocol, previous, write, next);
    world.cell = Some(next);
    world.outdate();
    if is_new(write.draft.attempt_id) || next.owner != Owner::Somebody {
        let straggles = write.by.is_some_and(|by| world.workers[by].straggles);
        let is_claimed = next.owner == Owner::Somebody;
        for (worker, state) in world.workers.iter_mut().enumerate() {
            state.owns = is_claimed && Some(worker) == write.by;
        }
        if let Some(straggler) = &mut world.straggler {
            straggler.owns = is_claimed && straggles;
        }
    }
    true
}

impl World {
    /// Every version that was seen stands no more.
    fn outdate(&mut self) {
        let requests = self
            .workers
            .iter_mut()
            .filter_map(|worker| worker.seen_mut());
        let straggler = self
            .straggler
            .iter_mut()
            .map(|straggler| &mut straggler.seen);
        requests
            .chain(straggler)
            .for_each(|seen| *seen = Seen::Stale);
        if let Some((_, stands)) = &mut self.copy {
            *stands = false;
        }
    }
}

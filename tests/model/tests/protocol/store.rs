//! The store: a versioned cell with a clock, as every store has to be, and the ways in which one
//! could get it wrong.

use crate::{
    faults::Fault,
    pack::NOW,
    world::{Cell, End, Kind, Request, TICK, World},
};

/// Puts the draft where the version that was seen stands, and tells whether it did.
pub(crate) fn swap(world: &mut World, request: &Request, fault: Fault) -> bool {
    let previous = world.cell;
    let seen_stands = request.seen == previous.map(|cell| cell.version);
    if !seen_stands && !ignores_version(request, previous, fault) {
        return false;
    }
    if previous.is_none() && request.draft.begins.is_none() {
        return false;
    }
    let stood = previous.map(Cell::record);
    let mut next = Cell::of(&request.draft.draft().apply(stood.as_ref(), NOW));
    if fault == Fault::TokenRestartsAfterPurge && previous.is_none() && world.watch.purged {
        next.token = 0;
    }
    if fault == Fault::LeaseOutlastsItsPromise && request.draft.lease.is_some() {
        next.lease += TICK;
    }
    world.witness_write(previous, request, next);
    world.cell = Some(next);
    true
}

fn ignores_version(request: &Request, stands: Option<Cell>, fault: Fault) -> bool {
    match fault {
        Fault::CompletionUnchecked => request.kind == Kind::End(End::Done),
        Fault::ReleaseUnchecked => request.kind == Kind::End(End::Release),
        Fault::SettlementUnchecked => request.kind == Kind::Settle,
        Fault::HeartbeatUnchecked => request.kind == Kind::Heartbeat,
        Fault::TakeoverUnchecked => {
            request.draft.begins.is_none() && matches!(request.kind, Kind::Claim(_))
        }
        Fault::CheckThenInsert => request.seen.is_none() && stands.is_some(),
        _ => false,
    }
}

/// Tells whether a purge may delete what stands now.
pub(crate) fn is_purgeable(cell: Cell, fault: Fault) -> bool {
    match fault {
        Fault::PurgeOfRunning => cell.expires == 0,
        _ => cell.is_expired(),
    }
}

pub(crate) fn purge(world: &mut World, fault: Fault) {
    if let Some(cell) = world.cell.take() {
        world.witness_purge(cell);
        world.watch.purged = fault == Fault::TokenRestartsAfterPurge;
    }
}

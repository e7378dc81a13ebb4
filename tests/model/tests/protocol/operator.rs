//! An operator, who found out what happened, or lets a parked record be tried again.

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{Settlement, settle},
    record::State,
};

use crate::{
    driver::{Delivery, Protocol, Settled},
    faults::Fault,
    pack::{NOW, TAKEOVERS, TTL, name, outcome, version},
    store,
    world::{Draft, FRESH, Kind, NONE, Request, TOLD, World},
};

impl Protocol {
    /// The request of an operator over what stands, if there is anything to settle.
    pub(crate) fn settlement(&self, world: &World, settled: Settled) -> Option<Request> {
        let stands = world.cell.filter(|_| world.settlements_left > 0)?;
        let settlement = match settled {
            Settled::Happened => Settlement::Outcome(outcome(TOLD)),
            Settled::Resumed => Settlement::Resume {
                max_takeovers: TAKEOVERS,
            },
        };
        // The cell tells how long its outcome answers only as long as it is in use.
        let mut record = stands.record();
        if !record.is_expired(NOW) {
            record.expires = record.lease_end.plus(TTL);
        }
        if self.fault == Fault::ResumesUncertain && record.state == State::Uncertain {
            (record.state, record.on_crash) = (State::Parked, OnCrash::Rerun);
        }
        let draft = settle(
            &record,
            &settlement,
            NOW,
            std::time::Duration::ZERO,
            version(FRESH),
        )?;
        let (draft, seen) = (Draft::of(&draft), Some(name(record.version)));
        Some(Request {
            by: NONE,
            seen,
            draft,
            kind: Kind::Settle,
        })
    }

    /// Looking and writing are one step here: whatever comes between them makes the store refuse,
    /// and the operator looks again.
    pub(crate) fn settle(&self, world: &mut World, settled: Settled, delivery: Delivery) {
        let request = self.settlement(world, settled);
        let request = request.expect("there is something to settle");
        world.settlements_left -= 1;
        if delivery == Delivery::Straggles {
            world.straggler = Some(request);
            world.stragglers_left -= 1;
        } else {
            store::swap(world, &request, self.fault);
        }
    }
}

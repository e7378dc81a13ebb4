//! An operator, who tells the truth. It happened if the effect is there. It did not happen if the
//! effect is not there and no worker is alive that may still have it.

use idempotent_runtime::{
    protocol::sequence::{StreamDraft, StreamSettlement, settle, skip},
    record::OutcomeKind,
};

use crate::{
    driver::Protocol,
    faults::Fault,
    pack::{FRESH, NOW, TAKEOVERS},
    store::{self, Kind, Write},
    world::{Body, Cell, Phase, Seen, Worker, World},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Happened,
    DidNotHappen,
    TryAgain,
    Skip,
}

impl Word {
    pub(crate) const ALL: [Self; 4] = [
        Word::Happened,
        Word::DidNotHappen,
        Word::TryAgain,
        Word::Skip,
    ];
}

impl Protocol {
    /// The draft of an operator who says this, if that is true and there is something to settle.
    pub(crate) fn settlement(&self, world: &World, word: Word) -> Option<StreamDraft> {
        let cell = world.cell?;
        let number = cell.running?.number;
        let happened = world.watch.has_effect(number);
        let may_begin = |worker: &Worker| match worker.phase {
            Phase::Holding(held) => held.run.number == number && held.body != Body::Sent,
            _ => false,
        };
        let is_alive =
            world.workers.iter().any(may_begin) && self.fault != Fault::ReleasesTheLiving;
        let settlement = match word {
            Word::Happened if happened => StreamSettlement::Done(OutcomeKind::Value),
            Word::DidNotHappen if !happened && !is_alive => StreamSettlement::Released,
            Word::TryAgain => StreamSettlement::Resumed {
                max_takeovers: TAKEOVERS,
            },
            Word::Skip => return skip(&cell.stream(), number.into(), NOW, FRESH),
            _ => return None,
        };
        settle(&cell.stream(), number.into(), &settlement, NOW, FRESH)
    }

    pub(crate) fn operate(&self, world: &mut World, word: Word) {
        let Some(draft) = self.settlement(world, word) else {
            return;
        };
        // The operator's word raises no token downstream: under rerun a paused holder may still
        // send its effect.
        if word == Word::Skip || (word == Word::Happened && !self.is_strict()) {
            let number = world
                .cell
                .and_then(|cell: Cell| cell.running)
                .map(|run| run.number);
            world.watch.excuse(number.unwrap_or(0));
        }
        let write = Write {
            draft,
            kind: Kind::Settle,
            owns: false,
            by: None,
        };
        store::swap(world, self, Seen::Current, &write);
    }
}

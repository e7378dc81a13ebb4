//! A store that is out of reach for longer than a lease, and a process that lives on: it knows what became of its body.

use idempotent_runtime::{
    Step,
    testing::{Fault, Nth, Operation},
};

use crate::{
    charge::{Charge, LEASE, MODES},
    harness::{Owner, World},
};

on_every_store![a_duplicate_gets_what_could_not_be_recorded];

/// Nothing that this owner writes is taken.
fn cut_off(owner: &Owner) {
    for operation in [Operation::Ending, Operation::Heartbeat] {
        owner.store.fault(operation, Nth::Every, Fault::LoseRequest);
    }
}

async fn a_duplicate_gets_what_could_not_be_recorded(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        let key = format!("k{number}");
        let owner = world.owner().await;
        let charge = Charge::of(&world, &owner).key(&*key).mode(mode);
        cut_off(&owner);
        assert_eq!(charge.call().await, Ok("charged".into()), "{mode:?}");
        world.advance_store(LEASE * 2).await;
        owner.log.await_step(Step::NotYetRecorded).await;

        owner.store.heal();
        let again = charge.call().await;

        assert_eq!(again, Ok("charged".into()), "{mode:?}");
        assert_eq!(world.runs(&key), 1, "{mode:?}");
    }
}

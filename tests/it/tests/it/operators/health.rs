//! How the parts of a handle are that work in the background.

use std::time::Duration;

use idempotent_runtime::{
    Error, RecordChange, StoreErrorKind,
    testing::{Fault, On, StoreOperation},
};

use crate::{
    charge::{Charge, LEASE},
    harness::World,
};

on_every_store![
    heartbeats_are_counted_from_their_last_one,
    an_outage_is_a_part_of_the_answer,
    an_outcome_that_waits_to_be_written_is_counted,
    the_last_purge_is_told,
];

async fn heartbeats_are_counted_from_their_last_one(world: World) {
    let owner = world.owner().await;
    let heartbeats = || async { owner.idem.health().await.heartbeats };
    let none = heartbeats().await;
    assert_eq!((none.held, none.pending), (0, 0));
    assert_eq!((none.last, none.last_failed), (None, None));

    let (call, gate) = Charge::of(&world, &owner).begun().await;
    assert_eq!(heartbeats().await.held, 1);
    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::Heartbeat).await;
    world.advance(Duration::from_secs(2)).await;
    let one = heartbeats().await;
    assert_eq!(
        (one.last, one.last_failed),
        (Some(Duration::from_secs(2)), None)
    );

    owner.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::HeartbeatFailed).await;
    let failed = heartbeats().await;
    assert!(failed.last_failed < failed.last, "{failed:?}");
    gate.open();
    call.await.expect("no panic").expect("it ends");
    assert!(owner.idem.shutdown(Duration::from_secs(60)).await);
    assert_eq!(heartbeats().await.held, 0);
}

async fn an_outage_is_a_part_of_the_answer(world: World) {
    let owner = world.owner().await;
    let health = owner.idem.health().await;
    let pulse = health.store.expect("the store answers");
    assert!(pulse.round_trip < Duration::from_secs(60), "{pulse:?}");
    if let Some(connections) = health.connections.connections {
        assert!(connections.limit > 0, "{connections:?}");
        assert!(connections.in_use <= connections.limit, "{connections:?}");
    }
    owner.fails(StoreOperation::Load, On::Every, StoreErrorKind::Unavailable);
    let away = owner.idem.health().await.store.expect_err("it is away");
    assert_eq!(away.kind(), StoreErrorKind::Unavailable);
}

async fn an_outcome_that_waits_to_be_written_is_counted(world: World) {
    let owner = world.owner().await;
    owner.fails(
        StoreOperation::Ending,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let charged = owner
        .call("charge")
        .key("k")
        .run(async |_| Ok::<_, Error>(1));
    assert_eq!(charged.await, Ok(1));
    let waits = owner.idem.health().await.heartbeats;
    assert_eq!((waits.held, waits.pending), (1, 1));
}

async fn the_last_purge_is_told(world: World) {
    let owner = world.owner().await;
    assert_eq!(owner.idem.health().await.last_purge, None);
    owner.idem.purge().await.expect("a purge");
    let purged = owner.idem.health().await.last_purge.expect("it ended");
    assert_eq!((purged.deleted, purged.error), (0, None));

    owner.fails(
        StoreOperation::Purge,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let failed = owner.idem.purge().await.expect_err("the store is away");
    let purged = owner.idem.health().await.last_purge.expect("it ended");
    assert_eq!(purged.error, Some(failed));
}

//! Scopes: the calls of one tenant do not touch another.

use std::time::Duration;

use idempotent_runtime::{InFlight, Status, testing::Gate};

use super::*;
use crate::answers::{is_in_progress, is_uncertain};

on_every_store![
    b23_tenant_isolation,
    b23_what_one_tenant_holds_or_settles_is_its_own,
];

#[idempotent(name = "keys.scoped", key = order, scope = tenant, on_error = release, ttl = ttl, skip(world, ttl, fails))]
async fn scoped(
    world: &World,
    tenant: &str,
    order: &str,
    amount: u32,
    ttl: Duration,
    fails: bool,
) -> Result<String, Error> {
    world.happened(tenant);
    if fails {
        return Err(Error::AlreadyInstalled);
    }
    Ok(format!("{tenant}: {amount}"))
}

async fn b23_tenant_isolation(world: World) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let owner = world.owner().await;
    let status = async |tenant: &str| {
        let status = owner.idem.lookup("keys.scoped", Some(tenant), "k").await;
        match status.expect("the store answers") {
            Status::Completed(kept) => kept.decode::<String>().expect("it is text"),
            other => format!("{other:?}"),
        }
    };

    // The same key comes with other arguments. This is no mismatch across tenants.
    let first = owner.enter(scoped(&world, "t1", "k", 1, HOUR, false)).await;
    let second = owner.enter(scoped(&world, "t2", "k", 2, DAY, false)).await;
    let third = owner.enter(scoped(&world, "t3", "k", 3, DAY, true)).await;

    assert_eq!(first, Ok("t1: 1".into()));
    assert_eq!(second, Ok("t2: 2".into()));
    assert_eq!(third, Err(Error::AlreadyInstalled));
    assert_eq!(status("t1").await, "t1: 1");
    assert_eq!(status("t2").await, "t2: 2");
    assert_eq!(status("t3").await, "Unknown", "released for itself alone");
    assert_eq!(status("t4").await, "Unknown");

    world.advance(HOUR).await;
    assert_eq!(owner.idem.purge().await, Ok(world.to_purge(1)));
    assert_eq!(status("t1").await, "Unknown");
    assert_eq!(status("t2").await, "t2: 2");
    assert_eq!(world.record_keys().await, ["k", "k"]);
}

async fn b23_what_one_tenant_holds_or_settles_is_its_own(world: World) {
    let owner = world.owner().await;
    let call = |tenant: &str| {
        let call = owner.call("keys.held").key("k").scope(tenant);
        call.in_flight(InFlight::Reject)
    };
    let says = |what: &str| {
        let said = what.to_owned();
        async move { Ok::<_, Error>(said) }
    };

    // A running call holds up no other tenant.
    let gate = Gate::new();
    let held = gate.clone();
    let first = tokio::spawn(call("t1").run(|_| async move {
        held.pass().await;
        Ok::<_, Error>("t1".to_owned())
    }));
    gate.arrived(1).await;
    assert_eq!(call("t2").run(|_| says("t2")).await, Ok("t2".into()));
    let refused = call("t1").run(|_| says("another")).await;
    assert!(is_in_progress(&refused), "{refused:?}");
    gate.open();
    assert_eq!(first.await.expect("no panic"), Ok("t1".into()));

    // An operator finds out what happened to one of two.
    for tenant in ["t3", "t4"] {
        let left = call(tenant).uncertain_errors();
        let left = left.run(|_| async { Err::<(), _>(Error::AlreadyInstalled) });
        assert_eq!(left.await, Err(Error::AlreadyInstalled));
    }
    let settle = owner.idem.settle("keys.held", Some("t3"), "k");
    let settled = settle.expect("a key").with_value(&"settled").await;
    assert!(settled.is_ok());
    assert_eq!(call("t3").run(|_| says("t3")).await, Ok("settled".into()));
    let unsettled = call("t4").run(|_| says("t4")).await;
    assert!(is_uncertain(&unsettled), "{unsettled:?}");
}

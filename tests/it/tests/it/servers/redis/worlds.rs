//! A server whose disk stands still or whose clock is set back, and what it forgets. Neither comes
//! about by itself in a test.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, OnCrash, Status,
    record::FencingToken,
    testing::{Fault, FaultyStore, Gate, On, StoreOperation},
};

use super::private::Private;
use crate::servers::spare::Ending;

async fn charge(idem: &Idempotency, key: &str, runs: &AtomicU32) -> Result<u32, Error> {
    let call = idem.call("charge").key(key);
    let body = async |_| Ok(runs.fetch_add(1, Ordering::SeqCst) + 1);
    call.run(body).await
}

/// `everysec` answers while a disk is slow. It hands nothing on to the system for as long as two
/// seconds.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_synchronises_every_second_forgets_the_last_one() {
    let settings = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let stalls = [("DISK_STALLS", "{}/stalls")];
    let mut server = Private::deceived(&settings, "servers/spare/disk.c", &stalls).await;
    let idem = Idempotency::new(server.store().await);
    let (earlier, last) = (AtomicU32::new(0), AtomicU32::new(0));
    assert_eq!(charge(&idem, "earlier", &earlier).await, Ok(1));
    handed_on(&server).await;
    server.spare().write("stalls", "");
    server.tell("SET other 1").await;
    server.spare().taken("stalls").await;
    assert_eq!(charge(&idem, "last", &last).await, Ok(1));

    server.restart(Ending::Killed).await;

    assert_eq!(charge(&idem, "earlier", &earlier).await, Ok(1), "a replay");
    assert_eq!(charge(&idem, "last", &last).await, Ok(2), "it is forgotten");
}

/// Resolves when the system has all that the server answered, and is not synchronising.
async fn handed_on(server: &Private) {
    let is_idle = |said: &str| {
        let fields = ["aof_buffer_length:0\r", "aof_pending_bio_fsync:0\r"];
        fields.iter().all(|field| said.contains(field))
    };
    let idle = async {
        while !is_idle(&server.ask::<String>("INFO persistence").await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    crate::harness::in_time(idle).await;
}

const HOUR: Duration = Duration::from_secs(3600);

/// The token of a call that runs now.
async fn token(idem: &Idempotency, key: &str) -> FencingToken {
    let mut token = None;
    let call = idem.call("charge").key(key).run(async |attempt| {
        token = attempt.fencing_token();
        Ok::<_, Error>(1)
    });
    call.await.expect("it runs");
    token.expect("it has one")
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_whose_clock_is_set_back_forgets_nothing_and_lets_leases_last() {
    let settings = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Private::deceived(&settings, "processes/clock.c", &[]).await;
    let store = FaultyStore::new(server.store().await);
    let idem = Idempotency::new(store.clone());
    let runs = AtomicU32::new(0);
    assert_eq!(charge(&idem, "done", &runs).await, Ok(1));
    let before = token(&idem, "before").await;
    let gate = Gate::new();
    let held = tokio::spawn({
        let (idem, gate) = (idem.clone(), gate.clone());
        async move {
            let call = idem.call("charge").key("held").on_crash(OnCrash::Rerun);
            call.run(async |_| {
                gate.pass().await;
                Ok::<_, Error>(1)
            })
            .await
        }
    });
    gate.arrived(1).await;
    // Its process is gone, and its heartbeats with it.
    store.fault(StoreOperation::Swap, On::Every, Fault::LoseRequest);
    held.abort();
    assert!(held.await.is_err());

    server.spare().set("CLOCK_OFF_BY", "-3600");
    server.restart(Ending::Orderly).await;
    let idem = Idempotency::new(server.store().await);

    assert_eq!(charge(&idem, "done", &runs).await, Ok(1), "a replay");
    let status = idem.lookup("charge", None::<&str>, "held").await;
    let Ok(Status::Processing { lease_left, .. }) = status else {
        panic!("{status:?}")
    };
    assert!(
        lease_left > HOUR / 2,
        "it goes by the server: {lease_left:?}"
    );
    assert!(token(&idem, "after").await < before, "so do tokens");
}

//! Until when a duplicate waits: one moment, wherever it waits.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency, InFlight,
    testing::{Gate, ManualClock},
    transaction::{SqlDatabase, Transact},
};

use tokio::time::timeout;

use super::{Placed, begin_outside, ours, place};
use crate::{
    cancellation::polled,
    harness::in_time,
    transactions::shop::{Shop, SqliteShop},
};

on_every_database![mend_18_the_wait_in_the_process_counts_for_the_wait_outside];

const SECOND: Duration = Duration::from_secs(1);

fn by<S: Shop>(shop: &S, clock: &ManualClock) -> Idempotency {
    let idem = Idempotency::builder(shop.store()).timer(clock.clone());
    idem.build().expect("a handle")
}

#[track_caller]
fn assert_in_progress(placed: Placed) {
    let refused = ours(placed);
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
}

/// The end of a call. A server that refuses a connection is asked again after a pause by this
/// clock.
async fn ends<F: Future + Unpin>(clock: &ManualClock, call: &mut F) -> F::Output {
    loop {
        match timeout(Duration::from_millis(50), &mut *call).await {
            Ok(ended) => return ended,
            Err(_) => clock.advance(Duration::from_millis(20)),
        }
    }
}

async fn mend_18_the_wait_in_the_process_counts_for_the_wait_outside<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let clock = ManualClock::new();
    let idem = by(&shop, &clock);
    let (gate, running) = begin_outside(&Idempotency::new(shop.store())).await;
    // This one waits for the call outside, and the next one for this one.
    let mut first = Box::pin(place(&shop, &idem, "k", 7));
    assert!(polled(&mut first, 1).await.is_none());
    clock.advance(4 * SECOND);
    let mut second = Box::pin(place(&shop, &idem, "k", 7));
    assert!(polled(&mut second, 1).await.is_none());

    // Ten seconds are the default.
    clock.advance(6 * SECOND);
    assert_in_progress(ends(&clock, &mut first).await);
    clock.advance(4 * SECOND);
    assert_in_progress(ends(&clock, &mut second).await);

    gate.open();
    assert_eq!(running.await.expect("no panic").ok(), Some(1));
}

/// A transaction of another handle that has the file until the gate is open.
async fn place_at(shop: &SqliteShop, gate: &Gate) -> Placed {
    let idem = Idempotency::new(shop.store());
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    call.transact(shop.pool(), async |tx| {
        shop.order(tx, 7).await?;
        gate.pass().await;
        Ok(7)
    })
    .await
}

/// A shop whose next connections give up soon or late where the file is locked.
async fn busy_for(busy: Duration) -> SqliteShop {
    let shop = SqliteShop::new().await;
    let options = (*shop.pool().connect_options()).clone();
    shop.pool().set_connect_options(options.busy_timeout(busy));
    shop
}

async fn ends_in_time(busy: Duration, in_flight: InFlight, at_most: Duration) {
    let (shop, gate, clock) = (busy_for(busy).await, Gate::new(), ManualClock::new());
    let idem = by(&shop, &clock);
    let (first, ()) = tokio::join!(place_at(&shop, &gate), async {
        gate.arrived(1).await;
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let waiting = call
            .in_flight(in_flight)
            .transact(shop.pool(), async |_| Ok(2));
        let (refused, ()) = tokio::join!(waiting, async {
            clock.await_sleepers(1).await;
            clock.advance(at_most);
        });
        assert_in_progress(refused);
        gate.open();
    });
    assert_eq!(ours(first), Ok(7));
    assert_eq!(shop.orders().await, [7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_18_a_duplicate_waits_for_a_locked_file_as_long_as_it_may() {
    let (short, long) = (SECOND / 20, 60 * SECOND);
    for busy in [short, long] {
        in_time(ends_in_time(busy, InFlight::Wait(4 * SECOND), 4 * SECOND)).await;
        in_time(ends_in_time(busy, InFlight::Reject, SECOND)).await;
    }
}

/// No try is refused for that, however often the file is found locked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_18_a_locked_file_is_waited_for_until_the_deadline() {
    let (shop, gate, clock) = (
        busy_for(Duration::ZERO).await,
        Gate::new(),
        ManualClock::new(),
    );
    let idem = by(&shop, &clock);
    let (first, ()) = tokio::join!(place_at(&shop, &gate), async {
        gate.arrived(1).await;
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let how = Transact::new(shop.pool()).retry_for(Duration::ZERO);
        let waiting = call
            .in_flight(InFlight::Wait(3_600 * SECOND))
            .transact(how, async |_| Ok(2));
        let time = async {
            for looks in 1_u64.. {
                // A short sleep follows a look that found the file locked. The limit of a look is
                // the deadline.
                let pause = loop {
                    clock.await_sleepers(1).await;
                    match clock.until_next() {
                        Some(pause) if !pause.is_zero() && pause < SECOND => break pause,
                        _ => tokio::task::yield_now().await,
                    }
                };
                if looks == 16 {
                    gate.open();
                }
                clock.advance(pause);
            }
        };
        let placed: Placed = tokio::select! {
            placed = waiting => placed,
            () = time => unreachable!("time goes on"),
        };
        assert_eq!(ours(placed), Ok(7), "the outcome of the first one");
    });
    assert_eq!(ours(first), Ok(7));
    assert_eq!(shop.orders().await, [7]);
}

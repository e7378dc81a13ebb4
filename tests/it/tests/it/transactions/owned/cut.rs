//! Connections that are cut under a transaction of the library's.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    CallOutcome, Error, Idempotency, InFlight, RecordChange,
    testing::{Disconnect, Proxy},
    transaction::SqlDatabase,
};

use super::{Placed, ours, place};
use crate::{
    harness::Log,
    transactions::shop::{MariaDbShop, PostgresShop, Remote, Shop},
};

/// The connection is cut at each message of the call, before the server has it and before its
/// answer.
async fn tells_the_truth_whatever_is_cut<S: Remote + Shop<Database: SqlDatabase>>() {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through(proxy.address()).await;
    let log = Log::new();
    let idem = Idempotency::builder(shop.store()).observer(log.clone());
    let idem = idem.build().expect("a handle");
    let mut item = 0;
    for cut in [Disconnect::BeforeRequest, Disconnect::BeforeAnswer] {
        let mut runs_seen = Vec::new();
        for message in 0..16 {
            item += 1;
            let key = item.to_string();
            let (runs, mut calls) = (AtomicU32::new(0), 0);
            until_all_are_back(&shop).await;
            proxy.cut_after(message, cut);
            let placed = loop {
                calls += 1;
                let call = idem.call("orders.place").key(&key).arguments(&item);
                let placed: Placed = call
                    .transact(shop.pool(), async |tx| {
                        runs.fetch_add(1, Ordering::SeqCst);
                        shop.order(tx, item).await?;
                        Ok(item)
                    })
                    .await;
                match ours(placed) {
                    Err(error) if error.is_retryable() && calls < 3 => {}
                    placed => break placed,
                }
            };
            assert_eq!(placed, Ok(item), "{cut:?} at message {message}");
            let recorded = log.count(RecordChange::Recorded);
            assert_eq!(recorded as i64, item, "{cut:?} at message {message}");
            runs_seen.push(runs.into_inner());
        }
        assert!(
            runs_seen.contains(&1) && runs_seen.contains(&2),
            "{cut:?}: {runs_seen:?}"
        );
    }
    proxy.cancel_cut();
    assert_eq!(shop.orders().await, Vec::from_iter(1..=item));
    shop.pool().close().await;
}

/// A connection comes back a moment after its call, and until then it may still send a message.
async fn until_all_are_back<S: Shop<Database: SqlDatabase>>(shop: &S) {
    while shop.pool().num_idle() < shop.pool().size() as usize {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_a_transaction_of_postgres_that_is_cut_is_found_out() {
    crate::harness::in_time(tells_the_truth_whatever_is_cut::<PostgresShop>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_a_transaction_of_mariadb_that_is_cut_is_found_out() {
    crate::harness::in_time(tells_the_truth_whatever_is_cut::<MariaDbShop>()).await;
}

/// How many messages come between a body that writes an order and the commit: the body runs again
/// where any of them is cut.
pub(super) async fn commit_message<S: Shop<Database: SqlDatabase>>(shop: &S, proxy: &Proxy) -> u64 {
    let idem = Idempotency::new(shop.store());
    for commit in 0.. {
        let runs = AtomicU32::new(0);
        let call = idem.call("orders.counted").key(&commit);
        let placed: Placed = call
            .transact(shop.pool(), async |tx| {
                shop.order(tx, 1).await?;
                if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                    proxy.cut_after(commit, Disconnect::BeforeAnswer);
                }
                Ok(1)
            })
            .await;
        assert_eq!(ours(placed), Ok(1));
        if runs.into_inner() == 1 {
            return commit;
        }
    }
    unreachable!("some message is the commit")
}

/// The commit has no answer, and the server is away for longer than the call waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_a_commit_that_cannot_be_found_out_in_time_is_unknown() {
    let server = crate::servers::address(&crate::servers::url(PostgresShop::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = PostgresShop::through(proxy.address()).await;
    let log = Log::new();
    let idem = Idempotency::builder(shop.store()).observer(log.clone());
    let idem = idem.build().expect("a handle");
    let place = async |key: &str, item: i64, last: &dyn Fn()| -> Result<i64, Error> {
        let call = idem.call("orders.place").key(key).arguments(&item);
        let call = call.in_flight(InFlight::Wait(Duration::from_secs(2)));
        let placed: Placed = call
            .transact(shop.pool(), async |tx| {
                shop.order(tx, item).await?;
                last();
                Ok(item)
            })
            .await;
        ours(placed)
    };
    let commit = commit_message(&shop, &proxy).await;
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nowhere = nowhere.local_addr().expect("an address");
    // A connection that is open already goes by no new address.
    until_all_are_back(&shop).await;
    let open: Vec<_> = std::iter::from_fn(|| shop.pool().try_acquire()).collect();
    let cut = || {
        proxy.cut_after(commit, Disconnect::BeforeAnswer);
        proxy.move_to(nowhere);
    };
    let unknown = place("b", 2, &cut).await.expect_err("nobody knows");
    assert!(
        matches!(unknown, Error::CommitUnknown { .. }),
        "{unknown:?}"
    );
    assert!(unknown.is_retryable());
    assert_eq!(log.steps(), [], "it is not told as recorded");
    assert_eq!(log.answers(), [CallOutcome::StoreFailed]);

    drop(open);
    proxy.move_to(server);
    assert_eq!(place("b", 2, &|| ()).await, Ok(2));
    assert_eq!(shop.orders().await.last(), Some(&2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_of_mariadb_goes_back_with_autocommit() {
    let shop = MariaDbShop::new().await;
    let idem = Idempotency::new(shop.store());
    for key in ["a", "b"] {
        assert_eq!(ours(place(&shop, &idem, key, 7).await), Ok(7));
        let mut connection = shop.pool().acquire().await.expect("a connection");
        let query = "SELECT @@autocommit".to_owned();
        let numbers = MariaDbShop::numbers(&mut connection, query).await;
        assert_eq!(numbers.expect("it is told"), [1]);
    }
}

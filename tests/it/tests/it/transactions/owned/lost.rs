//! Commits whose answer is lost, while others use the key, time goes by, or every commit is lost.

use std::{
    net::{SocketAddr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    sequence::{Decision, FromFirst, Sequence},
    testing::{Disconnect, Proxy},
    transaction::{SqlDatabase, Transact, transaction},
};
use sqlx::Connection as _;

use super::{PlaceError, Placed, cut::commit_message, ours};
use crate::transactions::{
    attribute,
    shop::{MariaDbShop, PostgresShop, Remote, Shop},
};

macro_rules! on_both_servers {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn postgres() {
                let away = super::Away::<super::PostgresShop>::new().await;
                crate::harness::in_time(super::$test(away)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn mariadb() {
                let away = super::Away::<super::MariaDbShop>::new().await;
                crate::harness::in_time(super::$test(away)).await;
            }
        }
    )* };
}
on_both_servers![
    g10_another_call_s_uncertainty_is_not_taken_for_a_commit,
    g10_a_record_that_has_expired_still_tells,
    g10_a_record_that_may_be_gone_tells_nothing,
    g10_an_outcome_that_a_savepoint_took_back_tells_nothing,
    mend_01_a_commit_whose_outcomes_savepoints_took_back_is_not_run_again,
    g10_a_number_that_was_passed_keeps_a_transaction_around_from_running_again,
    g08_a_commit_that_is_always_lost_is_tried_no_longer_than_said,
];

/// The same where no call is around the body, whose record would be written first.
const BARE_COMMIT: u64 = 1;

/// A shop whose connections go by a proxy.
struct Away<S> {
    shop: S,
    server: SocketAddr,
    proxy: Proxy,
    /// How many messages come between the body and the commit.
    commit: u64,
    /// How many orders were placed to find that out.
    counted: usize,
}

impl<S: Remote + Shop<Database: SqlDatabase>> Away<S> {
    async fn new() -> Self {
        let server = crate::servers::address(&crate::servers::url(S::URL));
        let proxy = Proxy::to(server).await.expect("a proxy");
        let shop = S::through_uncached(proxy.address()).await;
        let commit = commit_message(&shop, &proxy).await;
        let counted = shop.orders().await.len();
        Self {
            shop,
            server,
            proxy,
            commit,
            counted,
        }
    }

    /// Cuts the connection at the next commit.
    fn cut(&self, cut: Disconnect) {
        self.proxy.cut_after(self.commit, cut);
    }

    /// Loses the answer to the next commit, and keeps the server out of reach for so long.
    async fn lose<T>(&self, away: Duration, call: impl AsyncFnOnce(&dyn Fn()) -> T) -> T {
        self.lose_after(self.commit, away, call).await
    }

    /// The same where so many messages come before the commit.
    async fn lose_after<T>(
        &self,
        messages: u64,
        away: Duration,
        call: impl AsyncFnOnce(&dyn Fn()) -> T,
    ) -> T {
        let nowhere = TcpListener::bind("127.0.0.1:0").expect("a port");
        let nowhere = nowhere.local_addr().expect("an address");
        let pool = self.shop.pool();
        while pool.num_idle() < pool.size() as usize {
            tokio::task::yield_now().await;
        }
        // A connection that is open already goes by no new address.
        let open: Vec<_> = std::iter::from_fn(|| pool.try_acquire()).collect();
        let first = AtomicU32::new(0);
        let lose = || {
            if first.fetch_add(1, Ordering::SeqCst) == 0 {
                self.proxy.cut_after(messages, Disconnect::BeforeAnswer);
                self.proxy.move_to(nowhere);
            }
        };
        let (answer, ()) = tokio::join!(call(&lose), async {
            while first.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(away).await;
            self.proxy.move_to(self.server);
        });
        drop(open);
        answer
    }

    /// The orders beside those that were counted.
    async fn orders(&self) -> Vec<i64> {
        let orders = self.shop.orders().await;
        orders.into_iter().skip(self.counted).collect()
    }
}

async fn g10_another_call_s_uncertainty_is_not_taken_for_a_commit<
    S: Remote + Shop<Database: SqlDatabase>,
>(
    away: Away<S>,
) {
    let runs = AtomicU32::new(0);
    let place = async || -> Placed {
        let idem = Idempotency::new(away.shop.store());
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        call.uncertain_errors()
            .transact(away.shop.pool(), async |tx| {
                away.shop.order(tx, 7).await?;
                // The first one is never committed, and the other one, which waits for it, fails.
                if runs.fetch_add(1, Ordering::SeqCst) > 0 {
                    return Err(PlaceError::SoldOut);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                away.cut(Disconnect::BeforeRequest);
                Ok(7)
            })
            .await
    };
    let (one, other) = tokio::join!(place(), place());
    for answer in [one, other] {
        assert!(answer.is_err(), "nothing stands: {answer:?}");
    }
    assert_eq!(away.orders().await, [0_i64; 0]);
}

/// Places an order under a short ttl, and the server is away until that is over.
async fn place_and_expire<S: Remote + Shop<Database: SqlDatabase>>(
    away: &Away<S>,
    idem: &Idempotency,
    meanwhile: impl AsyncFn(),
) -> (Result<i64, Error>, u32) {
    let runs = AtomicU32::new(0);
    let placed = away.lose(Duration::from_millis(1_500), async |lose| {
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        let placed = call.ttl("1s").transact(away.shop.pool(), async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            away.shop.order(tx, 7).await?;
            lose();
            Ok(7)
        });
        let (placed, ()) = tokio::join!(placed, async {
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            meanwhile().await;
        });
        placed
    });
    let placed: Placed = placed.await;
    (ours(placed), runs.into_inner())
}

async fn g10_a_record_that_has_expired_still_tells<S: Remote + Shop<Database: SqlDatabase>>(
    away: Away<S>,
) {
    let idem = Idempotency::new(away.shop.store());
    let placed = place_and_expire(&away, &idem, async || ()).await;
    assert_eq!(placed, (Ok(7), 1));
    assert_eq!(away.orders().await, [7]);
}

async fn g10_a_record_that_may_be_gone_tells_nothing<S: Remote + Shop<Database: SqlDatabase>>(
    away: Away<S>,
) {
    let idem = Idempotency::new(away.shop.store());
    let purge = async || {
        let store = idem.store();
        let purged = store.purge(100, Duration::ZERO).await;
        purged.expect("expired records go");
    };
    let (placed, runs) = place_and_expire(&away, &idem, purge).await;
    let unknown = placed.expect_err("nobody knows");
    assert!(
        matches!(unknown, Error::CommitUnknown { .. }),
        "{unknown:?}"
    );
    assert!(!unknown.is_retryable());
    assert_eq!(runs, 1);
    assert_eq!(away.orders().await, [7]);
}

async fn g10_an_outcome_that_a_savepoint_took_back_tells_nothing<
    S: Remote + Shop<Database: SqlDatabase>,
>(
    away: Away<S>,
) {
    let (idem, shop) = (Idempotency::new(away.shop.store()), &away.shop);
    let runs = AtomicU32::new(0);
    let placed: Placed = transaction(shop.pool(), async |tx| {
        let mut inner = tx.begin().await?;
        attribute::place(&idem, shop, &mut inner, "a", 1).await?;
        inner.rollback().await?;
        attribute::place(&idem, shop, tx, "b", 2).await?;
        shop.order(tx, 3).await?;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            away.proxy.cut_after(BARE_COMMIT, Disconnect::BeforeAnswer);
        }
        Ok(3)
    })
    .await;
    assert_eq!(ours(placed), Ok(3));
    assert_eq!(away.orders().await, [2, 3]);
}

/// Every outcome was taken back, by a savepoint of the driver's or by one that it does not know.
async fn mend_01_a_commit_whose_outcomes_savepoints_took_back_is_not_run_again<
    S: Remote + Shop<Database: SqlDatabase>,
>(
    away: Away<S>,
) {
    let (idem, shop) = (Idempotency::new(away.shop.store()), &away.shop);
    let runs = AtomicU32::new(0);
    let placed: Placed = transaction(shop.pool(), async |tx| {
        let mut inner = tx.begin().await?;
        attribute::place(&idem, shop, &mut inner, "a", 1).await?;
        inner.rollback().await?;
        S::run(tx, "SAVEPOINT by_hand".to_owned()).await?;
        attribute::place(&idem, shop, tx, "b", 2).await?;
        S::run(tx, "ROLLBACK TO SAVEPOINT by_hand".to_owned()).await?;
        shop.order(tx, 3).await?;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            away.proxy.cut_after(BARE_COMMIT, Disconnect::BeforeAnswer);
        }
        Ok(3)
    })
    .await;
    let unknown = ours(placed).expect_err("no record tells");
    assert!(
        matches!(unknown, Error::CommitUnknown { .. }),
        "{unknown:?}"
    );
    assert!(!unknown.is_retryable());
    assert_eq!((runs.into_inner(), away.orders().await), (1, vec![3]));
}

fn stream(idem: &Idempotency) -> Sequence<FromFirst> {
    idem.sequence("orders", "customer-7").first(1)
}

/// Applies number 2 as soon as number 1 is committed.
async fn pass(idem: &Idempotency) {
    loop {
        let position = stream(idem).position().await.expect("the store answers");
        if position.last == Some(1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let next = stream(idem).number(2).run(async |_| Ok::<_, Error>(8));
    assert_eq!(next.await, Ok(Decision::Applied(8)));
}

/// Its record takes as many messages on Postgres as that of a call without a number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_a_number_that_its_stream_has_passed_tells_nothing() {
    let away = Away::<PostgresShop>::new().await;
    let (idem, shop) = (Idempotency::new(away.shop.store()), &away.shop);
    let runs = AtomicU32::new(0);
    let placed = away.lose(Duration::from_secs(1), async |lose| {
        let call = stream(&idem).number(1).transact(shop.pool(), async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            shop.order(tx, 7).await?;
            lose();
            Ok(7)
        });
        let (placed, ()) = tokio::join!(call, pass(&idem));
        placed
    });
    let placed: Result<Decision<i64>, PlaceError> = placed.await;
    let Err(PlaceError::Idempotency(unknown)) = placed else {
        panic!("{placed:?}")
    };
    assert!(
        matches!(unknown, Error::CommitUnknown { .. }),
        "{unknown:?}"
    );
    assert!(unknown.is_retryable());
    let again = stream(&idem).number(1).run(async |_| Ok::<i64, Error>(0));
    assert_eq!(again.await, Ok(Decision::Past { last: 2 }));
    assert_eq!((runs.into_inner(), away.orders().await), (1, vec![7]));
}

async fn g10_a_number_that_was_passed_keeps_a_transaction_around_from_running_again<
    S: Remote + Shop<Database: SqlDatabase>,
>(
    away: Away<S>,
) {
    let (idem, shop) = (Idempotency::new(away.shop.store()), &away.shop);
    let runs = AtomicU32::new(0);
    let placed = away.lose_after(BARE_COMMIT, Duration::from_secs(1), async |lose| {
        let around = transaction(shop.pool(), async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            shop.order(tx, 77).await?;
            let call = stream(&idem).number(1);
            let staged = call.record_errors().run_in(tx, async |tx| {
                shop.order(tx, 7).await?;
                Ok::<i64, PlaceError>(7)
            });
            assert!(matches!(staged.await.decision(), Ok(Decision::Applied(7))));
            lose();
            Ok(77)
        });
        let (placed, ()) = tokio::join!(around, pass(&idem));
        placed
    });
    let placed: Placed = placed.await;
    let unknown = ours(placed).expect_err("nobody knows");
    assert!(
        matches!(unknown, Error::CommitUnknown { .. }),
        "{unknown:?}"
    );
    assert_eq!((runs.into_inner(), away.orders().await), (1, vec![7, 77]));
}

async fn g08_a_commit_that_is_always_lost_is_tried_no_longer_than_said<
    S: Remote + Shop<Database: SqlDatabase>,
>(
    away: Away<S>,
) {
    let (idem, shop) = (Idempotency::new(away.shop.store()), &away.shop);
    let runs = AtomicU32::new(0);
    let how = || Transact::new(shop.pool()).retry_for(Duration::ZERO);
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    let owned: Placed = call
        .transact(how(), async |tx| {
            shop.order(tx, 7).await?;
            runs.fetch_add(1, Ordering::SeqCst);
            away.cut(Disconnect::BeforeRequest);
            Ok(7)
        })
        .await;
    let around: Placed = transaction(how(), async |tx| {
        attribute::place(&idem, shop, tx, "around", 8).await?;
        runs.fetch_add(1, Ordering::SeqCst);
        let cut = Disconnect::BeforeRequest;
        away.proxy.cut_after(BARE_COMMIT, cut);
        Ok(8)
    })
    .await;
    for lost in [owned, around] {
        let lost = ours(lost).expect_err("nothing was committed");
        assert!(lost.is_retryable(), "{lost:?}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(away.orders().await, [0_i64; 0]);
}

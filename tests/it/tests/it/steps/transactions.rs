//! Steps in a transaction: their rows and their record stand together.

use std::sync::atomic::{AtomicBool, Ordering};

use idempotent_runtime::{
    Error, Idempotency, StepContext, StoreErrorKind, Verdict,
    outbox::Message,
    record::State,
    step,
    step::in_transaction,
    step_in,
    testing::{Disconnect, Fault, FaultyStore, Gate, On, Proxy, StoreOperation},
    transaction::SqlDatabase,
};

use crate::transactions::{
    PlaceError,
    shop::{MariaDbShop, PostgresShop, Remote, Shop},
};

on_every_database![
    j04_rows_and_record_of_a_step_stand_together,
    j04_an_error_rolls_back_rows_and_record,
    j04_a_recorded_error_leaves_no_rows,
    j04_a_step_in_a_transaction_costs_two_statements,
    j04_a_step_with_other_arguments_is_refused,
    a_step_in_a_transaction_of_an_unprotected_call_commits,
    a_step_in_a_body_that_shares_a_transaction_is_refused,
];

/// Posts one order in a step, which then ends so.
async fn post<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    item: i64,
    ends: Result<(), PlaceError>,
) -> Result<i64, PlaceError> {
    let is_sold_out = ends.is_err();
    step_in("ledger", shop.pool(), async |tx, _: StepContext| {
        shop.order(tx, item).await?;
        match is_sold_out {
            true => sold_out(),
            false => Ok(item),
        }
    })
    .await
}

/// A call whose body is this.
async fn call<T>(
    idem: &Idempotency,
    body: impl AsyncFnOnce() -> Result<T, PlaceError>,
) -> Result<T, PlaceError>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let call = idem.call("orders.post").key("k").release_errors();
    call.run(async |_| body().await).await
}

/// An error that the library does not know.
fn sold_out<T>() -> Result<T, PlaceError> {
    Err(PlaceError::SoldOut)
}

async fn j04_rows_and_record_of_a_step_stand_together<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let first = call(&idem, async || {
        assert_eq!(post(&shop, 7, Ok(())).await.expect("it is posted"), 7);
        sold_out::<i64>()
    });
    assert!(first.await.is_err());
    assert_eq!(shop.orders().await, [7]);
    let again = call(&idem, async || post(&shop, 8, Ok(())).await).await;
    assert_eq!(again.expect("it is replayed"), 7);
    assert_eq!(shop.orders().await, [7]);
}

async fn j04_an_error_rolls_back_rows_and_record<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let answer = call(&idem, async || {
        let refused = post(&shop, 7, sold_out()).await;
        assert!(matches!(refused, Err(PlaceError::SoldOut)), "{refused:?}");
        post(&shop, 8, Ok(())).await
    });
    assert_eq!(answer.await.expect("it may run again"), 8);
    assert_eq!(shop.orders().await, [8]);
}

async fn j04_a_recorded_error_leaves_no_rows<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let refuse = async || {
        in_transaction("ledger", shop.pool())
            .on_error(|_: &PlaceError| Verdict::Replay)
            .run(async |tx, _| {
                shop.order(tx, 7).await?;
                sold_out::<i64>()
            })
            .await
    };
    for _ in 0..2 {
        let answer = call(&idem, refuse).await;
        assert!(matches!(answer, Err(PlaceError::SoldOut)), "{answer:?}");
    }
    assert_eq!(shop.orders().await, [0; 0]);
}

async fn j04_a_step_in_a_transaction_costs_two_statements<S: Shop<Database: SqlDatabase>>(shop: S) {
    let store = FaultyStore::new(shop.store());
    let idem = Idempotency::new(store.clone());
    let answer = call(&idem, async || post(&shop, 7, Ok(())).await).await;
    assert_eq!(answer.expect("it is posted"), 7);
    let calls = [StoreOperation::LoadSteps, StoreOperation::WriteStep].map(|of| store.calls(of));
    assert_eq!(calls, [0, 2]);
}

async fn j04_a_step_with_other_arguments_is_refused<S: Shop<Database: SqlDatabase>>(shop: S) {
    let idem = Idempotency::new(shop.store());
    let posts = async |item: i64, ends: Result<(), PlaceError>| {
        let posted = in_transaction("ledger", shop.pool())
            .arguments(&item)
            .run(async |tx, _| Ok(shop.order(tx, item).await.map(|()| item)?))
            .await;
        ends.and(posted)
    };
    assert!(
        call(&idem, async || posts(7, sold_out()).await)
            .await
            .is_err()
    );
    let answer = call(&idem, async || posts(8, Ok(())).await).await;
    let changed = Err(PlaceError::Idempotency(Error::InvalidPolicy("")));
    let Err(PlaceError::Idempotency(Error::StepChanged { differing, .. })) = answer else {
        panic!("{:?}", answer.or(changed));
    };
    assert_eq!(differing, ["arguments"]);
    assert_eq!(shop.orders().await, [7]);
}

async fn a_step_in_a_transaction_of_an_unprotected_call_commits<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    for item in [7, 8] {
        let call = idem
            .call("orders.post")
            .key("k")
            .release_errors()
            .unprotected();
        let answer = call.run(async |_| post(&shop, item, Ok(())).await).await;
        assert_eq!(answer.expect("it is posted"), item);
    }
    assert_eq!(shop.orders().await, [7, 8]);
}

async fn a_step_in_a_body_that_shares_a_transaction_is_refused<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    let idem = Idempotency::new(shop.store());
    let call = idem.call("orders.post").key("k").release_errors();
    let answer = call
        .transact(shop.pool(), async |_| post(&shop, 7, Ok(())).await)
        .await;
    let refused = matches!(
        answer,
        Err(PlaceError::Idempotency(Error::StepInTransaction { .. }))
    );
    assert!(refused, "{answer:?}");
    assert_eq!(shop.orders().await, [0; 0]);
}

/// A twin waits at the step's row, and the fence stops the one that was overtaken.
async fn the_stale_one_rolls_back<S: Shop<Database: SqlDatabase>>(shop: S) {
    let (gate, shop) = (Gate::new(), &shop);
    let held = &gate;
    let (first, second) = (
        Idempotency::new(shop.store()),
        Idempotency::new(shop.store()),
    );
    let stale = call(&first, async || {
        step_in("ledger", shop.pool(), async |tx, _| {
            shop.order(tx, 1).await?;
            held.pass().await;
            Ok::<_, PlaceError>(1)
        })
        .await
    });
    let twin = async {
        gate.arrived(1).await;
        let mut connection = shop.pool().acquire().await.expect("a connection");
        let over = format!("UPDATE {}records SET lease_end = 0", shop.prefix());
        S::run(&mut connection, over)
            .await
            .expect("its lease is over");
        let taken = async {
            let attempts = format!("SELECT attempt FROM {}records", shop.prefix());
            loop {
                let attempt = S::numbers(&mut connection, attempts.clone()).await;
                if attempt.expect("it is read") == [2] {
                    break gate.open();
                }
                tokio::task::yield_now().await;
            }
        };
        let posts = call(&second, async || post(shop, 2, Ok(())).await);
        tokio::join!(posts, taken).0
    };
    let (refused, twin) = tokio::join!(stale, twin);
    let lost = matches!(
        refused,
        Err(PlaceError::Idempotency(Error::LeaseLost { .. })) | Ok(2)
    );
    assert!(lost, "{refused:?}");
    assert_eq!(twin.expect("it takes over"), 2);
    assert_eq!(shop.orders().await, [2]);
}

/// An attempt that could not record a step sends nothing.
#[tokio::test]
async fn an_attempt_that_cannot_record_a_step_sends_no_message() {
    let shop = crate::transactions::shop::SqliteShop::new().await;
    let outbox = idempotent_runtime::outbox::Outbox::new(shop.pool());
    outbox.migrate().await.expect("the tables are made");
    let store = FaultyStore::new(shop.store());
    let idem = Idempotency::new(store.clone());
    let answer = call(&idem, async || {
        let denied = Fault::Fail(StoreErrorKind::Denied);
        store.fault(StoreOperation::WriteStep, On::Every, denied);
        let lost = step("charge", async |_| Ok::<_, PlaceError>(())).await;
        assert!(
            matches!(lost, Err(PlaceError::Idempotency(Error::Store(_)))),
            "{lost:?}"
        );
        let mut tx = shop.begin().await?;
        let message = Message::new("orders.placed", &7).expect("it is JSON");
        let sent = outbox.send(&mut tx, message).await;
        assert!(matches!(sent, Err(Error::LeaseLost { .. })), "{sent:?}");
        Ok(7)
    });
    let answer = answer.await;
    let lost = matches!(
        answer,
        Err(PlaceError::Idempotency(Error::LeaseLost { .. }))
    );
    assert!(lost, "{answer:?}");
}

/// A step in a transaction may stand in a handler, whose future has to be `Send`.
#[tokio::test]
async fn a_step_in_a_transaction_of_an_annotated_function_is_send() {
    #[idempotent_runtime::idempotent(name = "orders.post", key = item, on_error = release, skip(pool))]
    async fn annotated(pool: sqlx::SqlitePool, item: i64) -> Result<i64, PlaceError> {
        step_in("ledger", &pool, async |tx, _| {
            let insert = sqlx::query("INSERT INTO ledger (item) VALUES (?)");
            insert.bind(item).execute(tx).await?;
            Ok(item)
        })
        .await
    }
    let shop = crate::transactions::shop::SqliteShop::new().await;
    let create = sqlx::query("CREATE TABLE ledger (item BIGINT)");
    create.execute(shop.pool()).await.expect("a table");
    let idem = Idempotency::new(shop.store());
    let posted = idem.enter(annotated(shop.pool().clone(), 7));
    let posted = tokio::spawn(posted).await.expect("no panic");
    assert_eq!(posted.expect("it is posted"), 7);
}

/// Cuts each message behind the body, before and after the server has it, until the call is
/// answered without one.
async fn every_cut_leaves_both_or_neither<S: Remote + Shop<Database: SqlDatabase>>() {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    for cut in [Disconnect::BeforeRequest, Disconnect::BeforeAnswer] {
        for message in 0..4 {
            let proxy = Proxy::to(server).await.expect("a proxy");
            let shop = S::through(proxy.address()).await;
            let idem = Idempotency::new(shop.store());
            let is_first = AtomicBool::new(true);
            let posts = async || {
                step_in("ledger", shop.pool(), async |tx, _| {
                    shop.order(tx, 7).await?;
                    if is_first.swap(false, Ordering::SeqCst) {
                        proxy.cut_after(message, cut);
                    }
                    Ok::<_, PlaceError>(7)
                })
                .await
            };
            let first = call(&idem, async || posts().await).await;
            proxy.cancel_cut();
            let answer = match first {
                Ok(item) => item,
                // A commit whose answer was lost is found out.
                Err(_) if !shop.orders().await.is_empty() => panic!("{message}, {cut:?}: it stood"),
                Err(_) => loop {
                    if let Ok(item) = call(&idem, async || posts().await).await {
                        break item;
                    }
                },
            };
            assert_eq!(answer, 7);
            assert_eq!(shop.orders().await, [7], "{message}, {cut:?}");
            let records = shop.store().scan(None, 10).await.expect("they are listed");
            assert_eq!(records[0].1.state, State::Done);
        }
    }
}

macro_rules! on_both_servers {
    ($($test:ident: $of:ident),* $(,)?) => { $(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn postgres() {
                crate::harness::in_time($of!(PostgresShop)).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn mariadb() {
                crate::harness::in_time($of!(MariaDbShop)).await;
            }
        }
    )* };
}
macro_rules! twins {
    ($shop:ident) => {
        super::the_stale_one_rolls_back(super::$shop::new().await)
    };
}
macro_rules! cuts {
    ($shop:ident) => {
        super::every_cut_leaves_both_or_neither::<super::$shop>()
    };
}
on_both_servers![j04_a_twin_waits_and_the_stale_one_rolls_back: twins, j04_every_cut_leaves_both_or_neither: cuts];

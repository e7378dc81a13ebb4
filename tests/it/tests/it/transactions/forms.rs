//! One table for every form of a transaction that the library owns: `transact`, `transaction` and
//! `step_in`.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, InFlight, step_in,
    testing::{Disconnect, Proxy},
    transaction::{SqlDatabase, transaction},
};
use sqlx::Database;

use super::{
    PlaceError, Placed, ours,
    shop::{MariaDbShop, PostgresShop, Remote, Shop},
};

on_every_database![
    each_form_commits_its_row_once,
    each_form_undoes_the_rows_of_an_error,
    each_form_refuses_a_transaction_that_its_body_has_ended,
];

#[derive(Clone, Copy, Debug)]
enum Form {
    Transact,
    Transaction,
    StepIn,
}

const FORMS: [Form; 3] = [Form::Transact, Form::Transaction, Form::StepIn];

/// Runs the body in a transaction of this form, as a part of the call for this item.
async fn place<S, F>(form: Form, shop: &S, item: i64, body: F) -> Placed
where
    S: Shop<Database: SqlDatabase>,
    F: AsyncFn(&mut <S::Database as Database>::Connection) -> Placed,
{
    let builder = Idempotency::builder(shop.store()).lease(Duration::from_secs(1));
    let idem = builder.build().expect("it can be built");
    let call = idem.call("orders.place").key(&item).release_errors();
    let call = call.in_flight(InFlight::Wait(Duration::from_secs(5)));
    let body = &body;
    match form {
        Form::Transact => call.transact(shop.pool(), async |tx| body(tx).await).await,
        Form::Transaction => {
            let call = &|| idem.call("orders.place").key(&item).release_errors();
            transaction(shop.pool(), async |tx| {
                call().run_in(tx, async |tx| body(tx).await).await
            })
            .await
        }
        Form::StepIn => {
            call.run(async |_| step_in("order", shop.pool(), async |tx, _| body(tx).await).await)
                .await
        }
    }
}

async fn each_form_commits_its_row_once<S: Shop<Database: SqlDatabase>>(shop: S) {
    for (item, form) in (0..).zip(FORMS) {
        for _ in 0..2 {
            let placed = place(form, &shop, item, async |tx| {
                shop.order(tx, item).await?;
                Ok(item)
            });
            assert_eq!(ours(placed.await), Ok(item), "{form:?}");
        }
    }
    assert_eq!(shop.orders().await, [0, 1, 2]);
}

async fn each_form_undoes_the_rows_of_an_error<S: Shop<Database: SqlDatabase>>(shop: S) {
    for (item, form) in (0..).zip(FORMS) {
        let runs = AtomicU32::new(0);
        for _ in 0..2 {
            let placed = place(form, &shop, item, async |tx| {
                shop.order(tx, item).await?;
                runs.fetch_add(1, Ordering::SeqCst);
                Err(PlaceError::SoldOut)
            });
            let placed = placed.await;
            assert!(
                matches!(placed, Err(PlaceError::SoldOut)),
                "{form:?}: {placed:?}"
            );
        }
        assert_eq!(runs.into_inner(), 2, "{form:?}");
    }
    assert_eq!(shop.orders().await, [0; 0]);
}

async fn each_form_refuses_a_transaction_that_its_body_has_ended<S: Shop<Database: SqlDatabase>>(
    shop: S,
) {
    for (item, form) in (0..).zip(FORMS) {
        let placed = place(form, &shop, item, async |tx| {
            shop.order(tx, item).await?;
            S::run(tx, "ROLLBACK".to_owned()).await?;
            Ok(item)
        });
        let ended = ours(placed.await);
        assert!(
            matches!(ended, Err(Error::TransactionEnded { .. })),
            "{form:?}: {ended:?}"
        );
    }
    assert_eq!(shop.orders().await, [0; 0]);
}

/// The connection is cut at each message, before the server has it and before its answer. Called
/// again until it has its answer, each form leaves one row.
async fn each_form_finds_out_what_a_cut_has_left<S: Remote + Shop<Database: SqlDatabase>>() {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through(proxy.address()).await;
    let mut item = 0;
    for form in FORMS {
        let mut most = 0;
        for cut in [Disconnect::BeforeRequest, Disconnect::BeforeAnswer] {
            for message in 0..14 {
                item += 1;
                let runs = AtomicU32::new(0);
                proxy.cut_after(message, cut);
                let placed = until_answered(form, &shop, item, &runs).await;
                proxy.cancel_cut();
                assert_eq!(placed, Ok(item), "{form:?}, {cut:?} at message {message}");
                most = most.max(runs.into_inner());
            }
        }
        assert_eq!(
            most, 2,
            "{form:?}: some cut has the body run again, and none twice"
        );
    }
    assert_eq!(shop.orders().await, Vec::from_iter(1..=item));
    shop.pool().close().await;
}

async fn until_answered<S: Shop<Database: SqlDatabase>>(
    form: Form,
    shop: &S,
    item: i64,
    runs: &AtomicU32,
) -> Result<i64, Error> {
    let mut calls = 0;
    loop {
        calls += 1;
        let placed = place(form, shop, item, async |tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            shop.order(tx, item).await?;
            Ok(item)
        });
        match ours(placed.await) {
            Err(error) if error.is_retryable() && calls < 4 => {}
            placed => return placed,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn each_form_finds_out_what_a_cut_has_left_on_postgres() {
    crate::harness::in_time(each_form_finds_out_what_a_cut_has_left::<PostgresShop>()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn each_form_finds_out_what_a_cut_has_left_on_mariadb() {
    crate::harness::in_time(each_form_finds_out_what_a_cut_has_left::<MariaDbShop>()).await;
}

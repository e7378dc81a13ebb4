//! Calls without a record: the end of their transaction is looked at as that of any other.

use std::sync::atomic::{AtomicU32, Ordering};

use idempotent_runtime::{
    Error, Idempotency, StepContext, step_in,
    transaction::{SqlDatabase, transaction},
};

use super::{PlaceError, Placed, ours};
use crate::transactions::shop::{Shop, SqliteShop};

on_every_database![
    mend_07_an_unprotected_call_tells_of_a_statement_that_failed,
    mend_07_an_unprotected_call_tells_of_a_transaction_that_ended,
    mend_05_a_transaction_that_stands_takes_no_other_s_refusal_back,
];

/// The forms of a call that has no record.
#[derive(Clone, Copy, Debug)]
enum Form {
    Own,
    Joined,
    Around,
    Step,
}

/// Writes an order in the transaction of this form, and then something that fails or ends it.
async fn swallows<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    idem: &Idempotency,
    form: Form,
    statement: &str,
) -> Placed {
    let call = idem.call("orders.place").key(&format!("{form:?}"));
    let body = async |tx: &mut <S::Database as sqlx::Database>::Connection| -> Placed {
        shop.order(tx, 7).await?;
        let _swallowed = S::run(tx, statement.to_owned()).await;
        Ok(7)
    };
    match form {
        Form::Own => call.transact(shop.pool(), body).await,
        Form::Around => transaction(shop.pool(), body).await,
        Form::Step => {
            let in_step = async |tx: &mut _, _: StepContext| body(tx).await;
            let call = call.run(async |_| step_in("ledger", shop.pool(), in_step).await);
            call.await
        }
        Form::Joined => {
            let mut connection = shop.pool().acquire().await?;
            // After a ROLLBACK that sqlx knows nothing of, it would begin no other transaction.
            connection.close_on_drop();
            let mut tx = S::begin_on(&mut connection).await?;
            let placed = call.record_errors().run_in(&mut *tx, body).await?;
            tx.commit().await?;
            Ok(placed)
        }
    }
}

/// An `Ok` says that the rows stand, and an error that they do not.
async fn tells_what_stands<S: Shop<Database: SqlDatabase>>(shop: &S, statement: &str) {
    for is_on in [true, false] {
        let builder = Idempotency::builder(shop.store()).enabled(is_on);
        let idem = builder.build().expect("a handle");
        for form in [Form::Own, Form::Joined, Form::Around, Form::Step] {
            let before = shop.orders().await.len();
            let placed = swallows(shop, &idem, form, statement).await;
            let placed: Result<i64, Error> = ours(placed);
            let rows = shop.orders().await.len() - before;
            assert_eq!(
                usize::from(placed.is_ok()),
                rows,
                "{form:?}, {is_on}: {placed:?}"
            );
        }
    }
}

async fn mend_07_an_unprotected_call_tells_of_a_statement_that_failed<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    tells_what_stands(&shop, "SELECT * FROM no_such_table").await;
}

async fn mend_07_an_unprotected_call_tells_of_a_transaction_that_ended<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    tells_what_stands(&shop, "ROLLBACK").await;
}

/// One transaction is refused, and another one beside it stands.
async fn mend_05_a_transaction_that_stands_takes_no_other_s_refusal_back<
    S: Shop<Database: SqlDatabase>,
>(
    shop: S,
) {
    let idem = Idempotency::memory();
    let away = SqliteShop::new().await;
    away.pool().close().await;
    let (form, runs) = (Form::Around, AtomicU32::new(0));
    for _ in 0..2 {
        let call = idem.call("orders.report").key("k");
        let reported: Placed = call
            .run(async |_| {
                runs.fetch_add(1, Ordering::SeqCst);
                let off = Idempotency::builder(shop.store()).enabled(false);
                let off = off.build().expect("a handle");
                let refused = swallows(&away, &off, form, "SELECT 1").await;
                let stands = swallows(&shop, &off, form, "SELECT 1").await;
                assert_eq!(stands.ok(), Some(7));
                refused.map_err(|refusal| PlaceError::Database(refusal.to_string()))
            })
            .await;
        assert!(reported.is_err(), "{reported:?}");
    }
    assert_eq!(runs.into_inner(), 2);
}

//! Calls without a record: the end of their transaction is looked at as that of any other.

use idempotent_runtime::{
    Error, Idempotency, StepContext, step_in,
    transaction::{SqlDatabase, transaction},
};

use super::{Placed, ours};
use crate::transactions::shop::Shop;

on_every_database![
    mend_07_an_unprotected_call_tells_of_a_statement_that_failed,
    mend_07_an_unprotected_call_tells_of_a_transaction_that_ended,
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
            let mut tx = shop.begin().await?;
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

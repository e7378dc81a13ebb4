//! Calls in a transaction of the application's: record and rows commit together, or neither does.

/// Makes a test of each of these on each database.
macro_rules! on_every_database {
    ($($test:ident),* $(,)?) => {
        on_every_database! { @on sqlite SqliteShop [] [$($test)*] }
        on_every_database! { @on postgres PostgresShop [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
        on_every_database! { @on mariadb MariaDbShop [#[ignore = "needs a server: cargo xtask test"]] [$($test)*] }
    };
    (@on $name:ident $shop:ident $attributes:tt [$($test:ident)*]) => {
        mod $name {
            on_every_database! { @each $shop [$([$test $attributes])*] }
        }
    };
    (@each $shop:ident [$([$test:ident [$($attribute:tt)*]])*]) => {
        $(
            $($attribute)*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let shop = crate::transactions::shop::$shop::new().await;
                crate::harness::in_time(super::$test(shop)).await;
            }
        )*
    };
}
mod around;
mod attribute;
mod commits;
mod discarded;
mod elsewhere;
mod forms;
mod isolation;
mod leftovers;
mod meetings;
mod outcomes;
mod owned;
mod refusals;
mod runtimes;
mod savepoints;
mod shapes;
pub(crate) mod shop;
mod unkept;

use idempotent_runtime::{Error, Idempotency, testing::Gate};
use serde::{Deserialize, Serialize};
use sqlx::Database;
use tokio::task::JoinHandle;

use self::shop::Shop;
use crate::answers::is_uncertain;

#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub(crate) enum PlaceError {
    #[error("sold out")]
    SoldOut,
    #[error(transparent)]
    Idempotency(#[from] Error),
    #[error("{0}")]
    Database(String),
}

impl From<sqlx::Error> for PlaceError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.to_string())
    }
}

pub(crate) type Placed = Result<i64, PlaceError>;

/// The same of a call that got no error of its body's.
pub(crate) fn ours(placed: Placed) -> Result<i64, Error> {
    placed.map_err(|error| match error {
        PlaceError::Idempotency(error) => error,
        other => panic!("{other}"),
    })
}

/// Whether a call was refused that is no part of a transaction, or cannot be.
fn is_refused(placed: &Placed) -> bool {
    matches!(
        placed,
        Err(PlaceError::Idempotency(Error::InvalidPolicy(_)))
    )
}

#[track_caller]
fn assert_ended(placed: Placed) {
    let placed = ours(placed);
    assert!(
        matches!(placed, Err(Error::TransactionEnded { .. })),
        "{placed:?}"
    );
}

/// Places an order in the transaction that is open on a connection.
async fn place_in<S: Shop>(
    shop: &S,
    idem: &Idempotency,
    connection: &mut <S::Database as Database>::Connection,
    key: &str,
    item: i64,
) -> Placed {
    let call = idem.call("orders.place").key(key).arguments(&item);
    call.record_errors()
        .run_in(connection, async |connection| {
            shop.order(connection, item).await?;
            Ok(item)
        })
        .await
}

/// Places an order in a transaction of its own.
async fn place<S: Shop>(shop: &S, idem: &Idempotency, key: &str, item: i64) -> Placed {
    let mut transaction = shop.begin().await?;
    let placed = place_in(shop, idem, &mut transaction, key, item).await?;
    transaction.commit().await?;
    Ok(placed)
}

/// The answer to a call outside a transaction, whose body places nothing.
async fn outside(idem: &Idempotency, key: &str, item: i64) -> Placed {
    let call = idem.call("orders.place").key(key).arguments(&item);
    call.run(async |_| Ok(-1)).await
}

/// A call outside a transaction, whose body runs until the gate is open.
async fn begin_outside(idem: &Idempotency) -> (Gate, JoinHandle<Placed>) {
    let (gate, idem) = (Gate::new(), idem.clone());
    let its = gate.clone();
    let running = tokio::spawn(async move {
        let call = idem.call("orders.place").key("k").arguments(&7_i64);
        call.run(async |_| {
            its.pass().await;
            Ok(1)
        })
        .await
    });
    gate.arrived(1).await;
    (gate, running)
}

/// Writes an order and finds that nothing is left.
async fn sold_out<S: Shop>(
    shop: &S,
    idem: &Idempotency,
    connection: &mut <S::Database as Database>::Connection,
) -> Placed {
    let call = idem.call("orders.place").key("k").arguments(&7_i64);
    call.record_errors()
        .run_in(connection, async |connection| {
            shop.order(connection, 7).await?;
            Err(PlaceError::SoldOut)
        })
        .await
}

fn assert_uncertain(placed: Placed) {
    let placed = ours(placed);
    assert!(is_uncertain(&placed), "{placed:?}");
}

//! The forms of functions that `tx` goes with: their futures are `Send`, as those of plain
//! functions are.

use std::sync::Arc;

use async_trait::async_trait;
use idempotent_runtime::{Idempotency, idempotent, store::SqlConnection};
use sqlx::{Connection as _, Transaction};

use super::{
    PlaceError,
    shop::{Shop, SqliteShop},
};

type Posted = Result<u64, PlaceError>;

/// Arguments that borrow, beside the transaction.
struct Transfer<'a> {
    id: &'a str,
}

/// A type parameter stands for a connection or a transaction.
#[idempotent(name = "shapes.generic", key = transfer.id, tx = tx, handle = idem, skip(idem, transfer))]
async fn generic<C: SqlConnection>(
    idem: &Idempotency,
    tx: &mut C,
    transfer: &Transfer<'_>,
) -> Posted {
    let _ = tx;
    Ok(1)
}

/// Spans around the call, and inside it.
#[tracing::instrument(skip_all)]
#[idempotent(name = "shapes.outside", key = id, tx = tx, handle = idem, skip(idem))]
async fn instrumented(idem: &Idempotency, tx: &mut sqlx::SqliteConnection, id: &str) -> Posted {
    tx.ping().await?;
    Ok(6)
}

#[idempotent(name = "shapes.inside", key = id, tx = tx, handle = idem, skip(idem))]
#[tracing::instrument(skip_all)]
async fn instruments(idem: &Idempotency, tx: &mut sqlx::SqliteConnection, id: &str) -> Posted {
    tx.ping().await?;
    Ok(7)
}

#[tokio::test]
async fn a_function_with_a_span_joins_a_transaction() {
    let shop = SqliteShop::new().await;
    let idem = Idempotency::new(shop.store());
    for _ in 0..2 {
        let mut tx = shop.begin().await.expect("a transaction");
        let idem = idem.clone();
        let task = tokio::spawn(async move {
            let answers = [
                instrumented(&idem, &mut tx, "k").await.ok(),
                instruments(&idem, &mut tx, "k").await.ok(),
            ];
            tx.commit().await.expect("it is committed");
            answers
        });
        assert_eq!(task.await.expect("no panic"), [Some(6), Some(7)]);
    }
}

/// The functions for a connection and for a transaction of one database.
macro_rules! shapes {
    ($module:ident, $connection:ty, $transaction:ty, $database:ident) => {
        mod $module {
            use super::*;
            use sqlx::$database;

            pub(super) struct Ledger {
                pub(super) idem: Idempotency,
            }

            impl Ledger {
                #[idempotent(name = "shapes.method", key = id, tx = tx, handle = self.idem)]
                pub(super) async fn method(&self, tx: &mut $connection, id: &str) -> Posted {
                    tx.ping().await?;
                    Ok(2)
                }

                #[idempotent(name = "shapes.mutable", key = id, tx = tx, handle = self.idem)]
                pub(super) async fn mutable(&self, id: &str, mut tx: &mut $transaction) -> Posted {
                    let _again: &mut &mut $transaction = &mut tx;
                    Ok(3)
                }
            }

            #[async_trait]
            pub(super) trait Posts {
                async fn posts(&self, tx: &mut $connection, id: &str) -> Posted;
                async fn posted(&self, tx: &mut Transaction<'_, $database>, id: &str) -> Posted;
            }

            #[async_trait]
            impl Posts for Ledger {
                #[idempotent(name = "shapes.boxed", key = id, tx = tx, handle = self.idem)]
                async fn posts(&self, tx: &mut $connection, id: &str) -> Posted {
                    tx.ping().await?;
                    Ok(4)
                }

                #[idempotent(name = "shapes.posted", key = id, tx = tx, handle = self.idem)]
                async fn posted(
                    &self,
                    mut tx: &mut Transaction<'_, $database>,
                    id: &str,
                ) -> Posted {
                    let _again = &mut tx;
                    Ok(5)
                }
            }

            /// Every one in a task, which takes what is `Send` alone.
            pub(super) async fn all(
                ledger: Arc<Ledger>,
                mut tx: Transaction<'static, $database>,
            ) -> Vec<Option<u64>> {
                let task = async move {
                    let id = String::from("t");
                    let transfer = Transfer { id: &id };
                    let answers = vec![
                        generic(&ledger.idem, &mut tx, &transfer).await.ok(),
                        generic(&ledger.idem, &mut *tx, &transfer).await.ok(),
                        ledger.method(&mut tx, &id).await.ok(),
                        ledger.mutable(&id, &mut tx).await.ok(),
                        ledger.posts(&mut tx, &id).await.ok(),
                        ledger.posted(&mut tx, &id).await.ok(),
                    ];
                    tx.commit().await.expect("it is committed");
                    answers
                };
                tokio::spawn(task).await.expect("no panic")
            }
        }
    };
}

shapes!(
    sqlite,
    sqlx::SqliteConnection,
    Transaction<'_, Sqlite>,
    Sqlite
);
shapes!(
    postgres,
    sqlx::PgConnection,
    Transaction<'_, Postgres>,
    Postgres
);
shapes!(mysql, sqlx::MySqlConnection, Transaction<'_, MySql>, MySql);

#[tokio::test]
async fn every_form_of_function_joins_a_transaction() {
    let shop = SqliteShop::new().await;
    let ledger = Arc::new(sqlite::Ledger {
        idem: Idempotency::new(shop.store()),
    });
    for _ in 0..2 {
        let tx = shop.begin().await.expect("a transaction");
        let answers = sqlite::all(Arc::clone(&ledger), tx).await;
        assert_eq!(answers, [1, 1, 2, 3, 4, 5].map(Some));
    }
    // The same functions for the servers compile, and their futures can be sent.
    let _: fn(_, _) -> _ = postgres::all;
    let _: fn(_, _) -> _ = mysql::all;
}

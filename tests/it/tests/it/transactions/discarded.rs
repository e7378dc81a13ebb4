//! Connections of the application's that forget what was prepared on them.

use idempotent_runtime::Idempotency;
use sqlx::{PgConnection, Postgres, pool::PoolConnection};

use super::{
    PlaceError, Placed, place_in,
    shop::{PostgresShop, Shop},
};
use crate::harness::in_time;

/// The statements that make a connection of Postgres forget.
const WORDS: [&str; 2] = ["DISCARD ALL", "DEALLOCATE ALL"];

async fn run(connection: &mut PgConnection, statement: &str) -> sqlx::Result<()> {
    PostgresShop::run(connection, statement.to_owned()).await
}

/// Places an order in a transaction of its own on this connection.
async fn place_on(
    shop: &PostgresShop,
    idem: &Idempotency,
    connection: &mut PgConnection,
    key: &str,
    item: i64,
) -> Placed {
    let mut transaction = PostgresShop::begin_on(connection).await?;
    let placed = place_in(shop, idem, &mut transaction, key, item).await?;
    transaction.commit().await?;
    Ok(placed)
}

/// A shop, a handle, and a connection on which the first order was placed.
async fn placed_one() -> (PostgresShop, Idempotency, PoolConnection<Postgres>) {
    let shop = PostgresShop::new().await;
    let idem = Idempotency::new(shop.store());
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let first = in_time(place_on(&shop, &idem, &mut connection, "first", 1)).await;
    assert_eq!(first.ok(), Some(1));
    (shop, idem, connection)
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn first_hour_19_a_connection_that_forgot_its_statements_takes_the_next_call() {
    let (shop, idem, mut connection) = placed_one().await;
    in_time(async {
        for (word, item) in WORDS.into_iter().zip(2..) {
            run(&mut connection, word).await.expect("it forgets");
            let next = place_on(&shop, &idem, &mut connection, word, item).await;
            assert_eq!(next.ok(), Some(item), "{word}");

            run(&mut connection, word).await.expect("it forgets");
            let again = place_on(&shop, &idem, &mut connection, word, item).await;
            assert_eq!(again.ok(), Some(item), "{word}");
        }
    })
    .await;
    assert_eq!(shop.orders().await, [1, 2, 3]);
}

/// Postgres refuses one of the words inside a transaction, and the body goes on behind its
/// savepoint.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn first_hour_19_a_body_that_makes_its_connection_forget_is_recorded() {
    let (shop, idem, mut connection) = placed_one().await;
    in_time(async {
        for (word, item) in WORDS.into_iter().zip(2..) {
            let mut transaction = PostgresShop::begin_on(&mut connection).await?;
            let call = idem.call("orders.place").key(word).arguments(&item);
            let placed: Placed = call
                .record_errors()
                .run_in(&mut *transaction, async |connection| {
                    run(connection, "SAVEPOINT before").await?;
                    if run(connection, word).await.is_err() {
                        run(connection, "ROLLBACK TO SAVEPOINT before").await?;
                    }
                    shop.order(connection, item).await?;
                    Ok(item)
                })
                .await;
            assert_eq!(placed.ok(), Some(item), "{word}");
            transaction.commit().await?;

            let again = place_on(&shop, &idem, &mut connection, word, item).await;
            assert_eq!(again.ok(), Some(item), "{word}");
        }
        Ok::<_, PlaceError>(())
    })
    .await
    .expect("the database answers");
    assert_eq!(shop.orders().await, [1, 2, 3]);
}

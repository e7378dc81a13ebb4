//! The cost of `transact`, counted on the wire beside the same transaction without us.

use idempotent_runtime::{Idempotency, testing::Proxy, transaction::SqlDatabase};

use super::{PlaceError, Placed, ours};
use crate::transactions::shop::{MariaDbShop, PostgresShop, Remote, Shop};

/// The round trips of a transaction that only writes an order, and how many more a call has whose
/// errors are released, and one whose errors are recorded.
async fn round_trips<S: Remote + Shop<Database: SqlDatabase>>() -> [u64; 3] {
    let server = crate::servers::address(&crate::servers::url(S::URL));
    let proxy = Proxy::to(server).await.expect("a proxy");
    let shop = S::through(proxy.address()).await;
    let idem = Idempotency::new(shop.store());
    let mut counted = [0; 3];
    // The first time around makes the connection.
    for _ in 0..2 {
        for (kind, count) in counted.iter_mut().enumerate() {
            let before = proxy.round_trips();
            let call = idem.call("orders.place").key(&before).arguments(&kind);
            let placed: Placed = match kind {
                0 => bare(&shop).await,
                1 => {
                    let call = call.release_errors();
                    call.transact(shop.pool(), async |tx| {
                        Ok(shop.order(tx, 7).await.map(|()| 7)?)
                    })
                    .await
                }
                _ => {
                    call.transact(shop.pool(), async |tx| {
                        Ok(shop.order(tx, 7).await.map(|()| 7)?)
                    })
                    .await
                }
            };
            assert_eq!(ours(placed), Ok(7));
            *count = proxy.round_trips() - before;
        }
    }
    [counted[0], counted[1] - counted[0], counted[2] - counted[0]]
}

async fn bare<S: Shop>(shop: &S) -> Result<i64, PlaceError> {
    let mut tx = shop.begin().await?;
    shop.order(&mut tx, 7).await?;
    tx.commit().await?;
    Ok(7)
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_of_postgres_has_two_statements_more_and_a_savepoint() {
    let [_, released, recorded] = round_trips::<PostgresShop>().await;
    assert_eq!((released, recorded), (2, 3));
}

/// Two of them set `autocommit`, and set it back.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_of_mariadb_has_four_statements_more_beside_autocommit() {
    let [_, released, recorded] = round_trips::<MariaDbShop>().await;
    assert!(
        released <= 4 + 2 && recorded <= 5 + 2,
        "{released}, {recorded}"
    );
}

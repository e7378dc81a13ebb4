//! Tables that a test suite empties between its tests, those of ours among them.

use async_trait::async_trait;
use idempotent_runtime::{
    Error, Idempotency, StoreError,
    outbox::OutboxDatabase,
    store::{MySqlStore, PostgresStore, SqliteStore, Store},
};

use crate::{
    outbox::{
        broker::{Broker, drained, send},
        outbox, placed, prefix,
    },
    transactions::{
        Placed, ours,
        shop::{MariaDbShop, PostgresShop, Shop, SqliteShop},
    },
};

on_every_database![
    mend_32_the_next_start_works_where_all_tables_were_emptied,
    mend_32_a_store_whose_tables_were_emptied_asks_for_a_migration,
    mend_32_records_outlive_the_versions_of_their_tables,
    mend_32_an_outbox_takes_messages_where_its_tables_were_emptied,
];

/// A store over the pool of its shop, which is migrated by itself.
#[async_trait]
trait Migrates: Shop<Database: OutboxDatabase> {
    type Store: Store + Clone + 'static;

    fn beside(&self) -> Self::Store;

    async fn migrate(store: &Self::Store) -> Result<(), StoreError>;

    /// A process that starts.
    async fn start(&self) -> (Self::Store, Idempotency) {
        let store = self.beside();
        Self::migrate(&store).await.expect("it starts");
        (store.clone(), Idempotency::new(store))
    }
}

macro_rules! migrates {
    ($($shop:ident $store:ident $open:expr;)*) => { $(
        #[async_trait]
        impl Migrates for $shop {
            type Store = $store;

            fn beside(&self) -> $store {
                let open: fn(&$shop) -> $store = $open;
                open(self)
            }

            async fn migrate(store: &$store) -> Result<(), StoreError> {
                store.migrate().await
            }
        }
    )* };
}

migrates! {
    SqliteShop SqliteStore |shop| SqliteStore::new(shop.pool().clone());
    PostgresShop PostgresStore |shop| {
        let builder = PostgresStore::builder().table_prefix(shop.prefix());
        builder.pool(shop.pool().clone()).expect("a store")
    };
    MariaDbShop MySqlStore |shop| {
        let builder = MySqlStore::builder().table_prefix(shop.prefix());
        builder.pool(shop.pool().clone()).expect("a store")
    };
}

async fn empties<S: Shop>(shop: &S, prefix: &str, tables: &[&str]) {
    let mut connection = shop.pool().acquire().await.expect("a connection");
    for table in tables {
        let delete = format!("DELETE FROM {prefix}{table}");
        let deleted = S::run(&mut connection, delete).await;
        deleted.expect("it is emptied");
    }
}

/// The prefix of the tables of the store.
fn of_store<S: Migrates>(shop: &S) -> &str {
    match shop.prefix() {
        "" => "idempotent_",
        prefix => prefix,
    }
}

async fn empties_all<S: Migrates>(shop: &S) {
    empties(shop, of_store(shop), &["schema", "records", "steps"]).await;
    empties(shop, shop.prefix(), &["orders"]).await;
}

async fn own<S: Migrates>(shop: &S, idem: &Idempotency, item: i64) -> Placed {
    let call = idem.call("orders.own").key("k").arguments(&item);
    let own = call.transact(shop.pool(), async |tx| {
        shop.order(tx, item).await?;
        Placed::Ok(item)
    });
    own.await
}

async fn joined<S: Migrates>(shop: &S, idem: &Idempotency, item: i64) -> Placed {
    let mut tx = shop.begin().await?;
    let call = idem.call("orders.joined").key("k").arguments(&item);
    let joined = call.run_in(&mut *tx, async |tx| {
        shop.order(tx, item).await?;
        Placed::Ok(item)
    });
    let joined = joined.await?;
    tx.commit().await?;
    Ok(joined)
}

/// Both forms run once, and are replayed.
async fn works<S: Migrates>(shop: &S, idem: &Idempotency) {
    for _ in 0..2 {
        assert_eq!(ours(own(shop, idem, 1).await), Ok(1));
        assert_eq!(ours(joined(shop, idem, 2).await), Ok(2));
    }
    assert_eq!(shop.orders().await, [1, 2]);
}

async fn mend_32_the_next_start_works_where_all_tables_were_emptied<S: Migrates>(shop: S) {
    let (_, first) = shop.start().await;
    works(&shop, &first).await;
    for _ in 0..2 {
        empties_all(&shop).await;
        let (store, next) = shop.start().await;
        works(&shop, &next).await;
        S::migrate(&store).await.expect("there is nothing to do");
    }
}

/// The process goes on without a new start, and another one may have migrated before it.
async fn mend_32_a_store_whose_tables_were_emptied_asks_for_a_migration<S: Migrates>(shop: S) {
    let (store, idem) = shop.start().await;
    works(&shop, &idem).await;
    for is_migrated in [false, true] {
        empties_all(&shop).await;
        if is_migrated {
            shop.start().await;
        }
        let refused = ours(own(&shop, &idem, 1).await).expect_err("the store is another one");
        let Error::Store(error) = &refused else {
            panic!("{refused:?}");
        };
        let says = std::error::Error::source(error).map(ToString::to_string);
        let says = says.unwrap_or_default();
        assert!(
            says.contains("emptied") && says.contains("`migrate()`"),
            "{says}"
        );
        assert_eq!(shop.orders().await, [0_i64; 0]);

        S::migrate(&store).await.expect("it is migrated");
        works(&shop, &idem).await;
    }
}

async fn mend_32_records_outlive_the_versions_of_their_tables<S: Migrates>(shop: S) {
    let (_, first) = shop.start().await;
    works(&shop, &first).await;
    empties(&shop, of_store(&shop), &["schema"]).await;
    let (_, next) = shop.start().await;
    works(&shop, &next).await;
}

async fn mend_32_an_outbox_takes_messages_where_its_tables_were_emptied<S: Migrates>(shop: S) {
    const TABLES: [&str; 7] = [
        "schema", "messages", "counters", "claims", "relays", "rejected", "history",
    ];
    let tables = TABLES.map(|table| format!("outbox_{table}"));
    let tables = tables.each_ref().map(|table| &**table);
    let (first, broker) = (outbox(&shop).await, Broker::willing());
    send(&shop, &first, [placed(1).key("a"), placed(2)]).await;
    empties(&shop, &prefix(&shop), &tables).await;

    send(&shop, &first, [placed(3).key("a"), placed(4)]).await;
    let refused = first.relay(broker.clone()).start().await;
    let refused = refused.map(drop).expect_err("no version is noted");
    assert!(refused.to_string().contains("`migrate()`"), "{refused}");

    let next = outbox(&shop).await;
    send(&shop, &next, [placed(5).key("a")]).await;
    let relay = next.relay(broker.clone()).start().await;
    let relay = relay.expect("it starts");
    drained(&shop).await;
    assert_eq!(broker.by_key()["a"], [3, 5]);
    empties(&shop, &prefix(&shop), &tables).await;
    send(&shop, &next, [placed(6).key("a")]).await;
    relay.wake();
    drained(&shop).await;
    assert_eq!(broker.by_key()["a"], [3, 5, 6]);
    relay.stop().await;
}

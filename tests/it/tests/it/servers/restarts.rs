//! A server that is restarted in the middle of traffic.

use idempotent_runtime::OnCrash;

use super::{
    spare::{Ending, Product, Spare},
    traffic::Traffic,
};

/// A caller that was answered gets no other answer afterwards. No body that must run at most once
/// runs twice.
async fn is_survived(product: Product, ending: Ending) {
    let mut server = Spare::new(product).await;
    let store = server.store().await;
    let traffic = Traffic::around(store, OnCrash::Uncertain, async |mut progress| {
        server.end(ending).await;
        progress.refused(64).await;
        server.start().await;
    });
    traffic.await.assert_kept(server.store().await).await;
}

macro_rules! restarts {
    ($($name:ident: $product:ident, $ending:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a server: cargo xtask test"]
            async fn $name() {
                let survived = is_survived(Product::$product, Ending::$ending);
                crate::harness::in_time(survived).await;
            }
        )*
    };
}

restarts! {
    e16_postgres_killed_in_the_middle_of_a_thousand_calls: Postgres, Killed;
    e16_postgres_restarted_in_the_middle_of_a_thousand_calls: Postgres, Orderly;
    e16_mariadb_killed_in_the_middle_of_a_thousand_calls: MariaDb, Killed;
    e16_mariadb_restarted_in_the_middle_of_a_thousand_calls: MariaDb, Orderly;
    e16_redis_killed_in_the_middle_of_a_thousand_calls: Redis, Killed;
    e16_redis_restarted_in_the_middle_of_a_thousand_calls: Redis, Orderly;
}

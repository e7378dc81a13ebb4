//! Updates that write no index: the next version of a row stays on its page.

use idempotent_runtime::{Error, Idempotency};
use sqlx::AssertSqlSafe;

use super::{Postgres, URL, side};
use crate::{
    harness::in_time,
    servers::{prefix, url},
};

/// A call has one update, its completion. No index holds a column that this changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_thousand_completions_write_no_index() {
    const CALLS: i64 = 1_000;
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    let idem = Idempotency::new(store);
    for key in 0..CALLS {
        let call = idem.call("charge").key(&key);
        let charged = call.run(async move |_| Ok::<_, Error>(key)).await;
        assert_eq!(charged.ok(), Some(key));
    }
    drop(idem);
    let mut side = side(&url(URL)).await;
    let look = format!(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = '{prefix}records'"
    );
    // The server counts a while after a session has ended, or has rested.
    let counted = async {
        loop {
            let looked = sqlx::query_as(AssertSqlSafe(look.clone()));
            let counts: (i64, i64) = looked.fetch_one(&mut side).await.expect("it counts");
            if counts.0 >= CALLS {
                return counts;
            }
        }
    };
    let (updates, hot) = in_time(counted).await;
    assert_eq!((updates, hot), (CALLS, CALLS), "each stays on its page");
}

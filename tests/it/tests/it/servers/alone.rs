//! The writes of a call on a Postgres without other writers.

use idempotent_runtime::{Error, Idempotency, store::PostgresStore};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{prefix, url};

const URL: &str = "IDEMPOTENT_TEST_POSTGRES_ALONE_URL";

async fn charge(idem: &Idempotency, key: u32) -> Result<u32, Error> {
    idem.call("charge").key(&key).run(|_| async { Ok(1) }).await
}

async fn number(side: &mut PgConnection, query: String) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_one(side)
        .await
        .expect("a number")
}

/// One test, because any test beside it writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_replay_writes_nothing_and_a_completion_writes_no_index() {
    let (url, prefix) = (url(URL), prefix());
    let process = async || {
        let store = PostgresStore::builder().table_prefix(&prefix).connect(&url);
        Idempotency::new(store.await.expect("the server answers"))
    };
    let idem = process().await;
    let mut side = PgConnection::connect(&url).await.expect("a connection");

    for key in 0..500 {
        charge(&idem, key).await.expect("an answer");
    }

    // The place in the log is where it was. So nothing was written, and nothing had to be
    // synchronised. The server itself writes now and then, though not always while we look.
    let log = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let (mut by_itself, mut by_another) = (i64::MAX, i64::MAX);
    for _ in 0..10 {
        // It knows of no record, so each of its calls is a claim that is refused.
        let another = process().await;
        for (idem, written) in [(&idem, &mut by_itself), (&another, &mut by_another)] {
            let before = number(&mut side, log.into()).await;
            for key in 0..200 {
                charge(idem, key).await.expect("a replay");
            }
            *written = (number(&mut side, log.into()).await - before).min(*written);
        }
    }
    assert_eq!(
        (by_itself, by_another),
        (0, 0),
        "bytes of log for 200 replays"
    );

    // The server counts with a delay.
    let counts =
        |what| format!("SELECT {what} FROM pg_stat_user_tables WHERE relname = '{prefix}records'");
    while number(&mut side, counts("n_tup_upd")).await < 500 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let elsewhere = number(&mut side, counts("n_tup_upd - n_tup_hot_upd")).await;
    assert_eq!(elsewhere, 0, "updates that wrote an index");
}

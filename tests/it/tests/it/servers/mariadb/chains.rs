//! Servers on which the end of one transaction begins another one, which is never ended.

use idempotent_runtime::{identity::RecordId, store::mysql::as_mysql};

use super::{Duration, MySqlStore, Store, side, text};
use crate::{
    harness::{applied, claim, completion},
    servers::{
        prefix,
        spare::{Product, Spare},
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn what_is_answered_after_a_purge_is_committed() {
    let server = Spare::with(Product::MariaDb, &["--completion-type=CHAIN"]).await;
    let default = "SELECT @@session.completion_type".to_owned();
    let default = text(&mut side(&server.url()).await, default, 0).await;
    assert_eq!(default, "CHAIN", "by default");

    for builder in [MySqlStore::builder(), as_mysql(MySqlStore::builder())] {
        // There is one connection, so that the writes come over the one that has purged.
        let builder = builder.table_prefix(&prefix()).max_connections(1);
        let store = builder.clone().connect(&server.url()).await;
        let store = store.expect("the server answers");
        let elsewhere = builder.connect(&server.url()).await;
        let elsewhere = elsewhere.expect("the server answers");
        let (id, draft) = (RecordId::from_bytes([7; 32]), claim());
        let ending = completion(&draft, b"v".to_vec());
        for (seen, draft) in [(None, &draft), (Some(draft.version), &ending)] {
            assert_eq!(store.purge(100, Duration::ZERO).await, Ok(0));
            applied(&store, &id, seen, draft).await;
            let snapshot = elsewhere.load(&id).await.expect("an answer");
            let version = snapshot.record.map(|record| record.version);
            assert_eq!(version, Some(draft.version), "what others see");
        }
    }
}

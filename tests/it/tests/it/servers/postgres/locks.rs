//! Records that somebody else has locked.

use std::time::Duration;

use idempotent_runtime::{
    identity::RecordId,
    record::{Draft, Moment},
    store::{Store, Swap},
};

use super::{Postgres, URL, run, side};
use crate::{
    harness::{claim, completion, in_time},
    servers::{prefix, url},
};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f19_a_purge_leaves_alone_what_somebody_has_locked() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    let ids = [1, 2, 3, 4, 5].map(|number| RecordId::from_bytes([number; 32]));
    for id in &ids {
        let draft = claim();
        let expired = Draft {
            expires: Moment::In(Duration::ZERO),
            ..completion(&draft, Vec::new())
        };
        for (seen, draft) in [(None, &draft), (Some(draft.version), &expired)] {
            let swap = store.swap(id, seen, draft).await;
            assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
        }
    }
    let mut side = side(&url(URL)).await;
    let locked = ids[2].to_hex();
    let lock = format!("BEGIN; SELECT FROM {prefix}records WHERE id = '\\x{locked}' FOR UPDATE");
    run(&mut side, lock).await;

    let purged = in_time(store.purge(10, Duration::ZERO)).await;

    assert_eq!(purged, Ok(4), "it does not wait");
    run(&mut side, "COMMIT".to_owned()).await;
    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(1));
}

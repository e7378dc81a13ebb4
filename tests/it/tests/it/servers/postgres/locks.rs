//! Records that another session has locked.

use std::time::Duration;

use idempotent_runtime::{
    identity::RecordId,
    record::{Draft, Moment},
    store::{Store, StoreErrorKind},
};

use sqlx::{AssertSqlSafe, PgConnection};

use super::{Postgres, URL, run, side};
use crate::{
    harness::{applied, claim, completion, in_time},
    servers::{
        prefix,
        purges::what_a_purge_goes_by_stays,
        together::{heartbeats_pass_a_locked_record, one_refused_record_fails_alone},
        url,
    },
};

/// Five records that have expired.
async fn expired(store: &dyn Store) -> [RecordId; 5] {
    let ids = [1, 2, 3, 4, 5].map(|number| RecordId::from_bytes([number; 32]));
    for id in &ids {
        let draft = claim();
        let expired = Draft {
            expires: Moment::In(Duration::ZERO),
            ..completion(&draft, Vec::new())
        };
        for (seen, draft) in [(None, &draft), (Some(draft.version), &expired)] {
            applied(store, id, seen, draft).await;
        }
    }
    ids
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f19_a_purge_leaves_alone_what_somebody_has_locked() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    let ids = expired(&store).await;
    let mut side = side(&url(URL)).await;
    let locked = ids[2].to_hex();
    let lock = format!("BEGIN; SELECT FROM {prefix}records WHERE id = '\\x{locked}' FOR UPDATE");
    run(&mut side, lock).await;

    let purged = in_time(store.purge(10, Duration::ZERO)).await;

    assert_eq!(purged, Ok(4), "it does not wait");
    run(&mut side, "COMMIT".to_owned()).await;
    assert_eq!(store.purge(10, Duration::ZERO).await, Ok(1));
}

/// Under a stricter isolation, a purge fails over what another one has deleted. A trigger stands in
/// for that other purge, and counts in a sequence, which is no part of any transaction.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_purge_that_meets_another_one_is_tried_again_and_busy_at_last() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    expired(&store).await;
    let meets = format!(
        "CREATE SEQUENCE {prefix}met;
         CREATE TABLE {prefix}meetings AS SELECT 3 AS n;
         CREATE FUNCTION {prefix}meets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('{prefix}met') <= (SELECT n FROM {prefix}meetings) THEN
                 RAISE EXCEPTION 'somebody was quicker' USING ERRCODE = 'serialization_failure';
             END IF;
             RETURN OLD;
         END $$;
         CREATE TRIGGER {prefix}meets BEFORE DELETE ON {prefix}records FOR EACH ROW
             EXECUTE FUNCTION {prefix}meets()"
    );
    let mut side = side(&url(URL)).await;
    run(&mut side, meets).await;

    assert_eq!(in_time(store.purge(10, Duration::ZERO)).await, Ok(5));

    expired(&store).await;
    let statement = format!("UPDATE {prefix}meetings SET n = 1000000");
    run(&mut side, statement).await;
    let purged = in_time(store.purge(10, Duration::ZERO)).await;
    let kind = purged.map_err(|error| error.kind());
    assert_eq!(kind, Err(StoreErrorKind::Busy));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn only_a_claim_writes_what_a_purge_goes_by() {
    let server = Postgres::new().await;
    let purge_from = format!("SELECT purge_from FROM {}records", server.prefix);
    let purge_from = async || {
        let query = sqlx::query_scalar(AssertSqlSafe(purge_from.clone()));
        let said = query.fetch_one(&mut side(&server.url).await).await;
        said.expect("one record")
    };
    what_a_purge_goes_by_stays(&server, purge_from).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_16_no_heartbeat_waits_for_a_record_of_another() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    let lock = async |id: &RecordId| {
        let (mut side, id) = (side(&url(URL)).await, id.to_hex());
        let lock = format!("BEGIN; SELECT FROM {prefix}records WHERE id = '\\x{id}' FOR UPDATE");
        run(&mut side, lock).await;
        side
    };
    let unlock = async |side: &mut PgConnection| run(side, "COMMIT".to_owned()).await;
    in_time(heartbeats_pass_a_locked_record(&store, lock, unlock)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_16_a_heartbeat_that_the_server_refuses_fails_alone() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    let refuse = async |id: &RecordId| {
        let guard = format!(
            "CREATE FUNCTION {prefix}guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'it stays';
             END $$;
             CREATE TRIGGER {prefix}guard BEFORE UPDATE ON {prefix}records FOR EACH ROW
                 WHEN (OLD.id = '\\x{id}') EXECUTE FUNCTION {prefix}guard()",
            id = id.to_hex()
        );
        run(&mut side(&url(URL)).await, guard).await;
    };
    in_time(one_refused_record_fails_alone(&store, refuse)).await;
}

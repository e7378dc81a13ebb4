//! Records that row-level security keeps from a user: a typed error each, at once.

use std::time::{Duration, Instant};

use idempotent_runtime::{
    CallReport, Error, Idempotency, OnOutage,
    identity::RecordId,
    outbox::Outbox,
    store::{PostgresStore, Store, StoreErrorKind},
};
use sqlx::PgPool;
use tokio::time::timeout;

use super::{URL, places::user, run, side};
use crate::{
    answers::failed_as,
    harness::claim,
    outbox,
    servers::{prefix, url},
    transactions::shop::PostgresShop,
};

/// More than a call takes that is told at once, or when the lease is over that it waits for.
const IN_TIME: Duration = Duration::from_secs(10);

/// As by a policy of row-level security: an insert meets the record, and no look shows it.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_record_that_a_user_is_not_shown_is_denied_at_once_and_runs_no_body() {
    let mut side = side(&url(URL)).await;
    let prefix = prefix();
    let builder = || PostgresStore::builder().table_prefix(&prefix);
    let owner = builder().connect(&url(URL)).await.expect("the tables");
    let owner = Idempotency::new(owner);
    let charged = owner.call("charge").key("k").run(async |_| Ok(7));
    let charged: Result<u32, Error> = charged.await;
    assert_eq!(charged.ok(), Some(7));
    let rights = format!(
        "GRANT ALL ON {prefix}records, {prefix}schema TO USER;
         ALTER TABLE {prefix}records ENABLE ROW LEVEL SECURITY;
         CREATE POLICY unfinished ON {prefix}records USING (finished IS NULL)"
    );
    let tenant = user(&mut side, &rights).await;
    let tenant = builder().connect(&tenant).await;
    let tenant = tenant.expect("the tables are there");
    let idem = Idempotency::new(tenant);

    let began = Instant::now();
    let refused = idem
        .call("charge")
        .key("k")
        .on_outage(OnOutage::Open)
        .run(|_| async { panic!("the body runs") as Result<u32, Error> })
        .await;

    assert!(failed_as(&refused, StoreErrorKind::Denied), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// As by row-level security with policies for `SELECT` and `INSERT` alone: an update finds nothing,
/// and every look shows what it was to write over.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_record_that_a_user_may_not_update_is_denied_and_keeps_nobody_waiting() {
    let mut side = side(&url(URL)).await;
    let prefix = prefix();
    let builder = || PostgresStore::builder().table_prefix(&prefix);
    builder().connect(&url(URL)).await.expect("the tables");
    let rights = format!(
        "GRANT ALL ON {prefix}records, {prefix}schema TO USER;
         ALTER TABLE {prefix}records ENABLE ROW LEVEL SECURITY;
         CREATE POLICY shown ON {prefix}records FOR SELECT USING (true);
         CREATE POLICY begun ON {prefix}records FOR INSERT WITH CHECK (true)"
    );
    let tenant = user(&mut side, &rights).await;
    let process = async || {
        let store = builder().connect(&tenant).await;
        Idempotency::new(store.expect("the tables are there"))
    };
    let (idem, elsewhere) = (process().await, process().await);

    let call = idem.call("charge").key("k").lease("1s");
    let call = call.run_detailed(async |_| Ok::<_, Error>(7));
    let (answer, how) = timeout(IN_TIME, call).await.expect("in time");

    assert_eq!(answer, Ok(7));
    let CallReport::Executed { recorded, .. } = how else {
        panic!("its body ran: {how:?}")
    };
    assert!(!recorded, "the outcome cannot stand");
    let takeover = elsewhere.call("charge").key("k");
    let takeover = takeover.run(async |_| Ok::<_, Error>(8));
    let refused = timeout(IN_TIME, takeover).await.expect("in time");
    assert!(failed_as(&refused, StoreErrorKind::Denied), "{refused:?}");
}

const ID: RecordId = RecordId::from_bytes([7; 32]);

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_27_an_error_of_the_store_says_its_cause_and_no_password() {
    let elsewhere = url(URL).replace("idempotent@", "idempotent:hush-hush@");
    let (server, _) = elsewhere.rsplit_once('/').expect("a database");
    let elsewhere = format!("{server}/shop");
    let refused = PostgresStore::builder().connect(&elsewhere).await;
    let said = Error::from(refused.expect_err("no database")).to_string();
    assert!(
        said.ends_with(": database \"shop\" does not exist"),
        "{said}"
    );
    assert!(!said.contains("hush"), "{said}");
}

/// The code of the error is the application's: here that of a constraint.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_27_a_trigger_and_a_policy_that_refuse_are_not_answered_by_a_migration() {
    let mut side = side(&url(URL)).await;
    let prefix = prefix();
    let builder = || PostgresStore::builder().table_prefix(&prefix);
    let store = builder().connect(&url(URL)).await.expect("the tables");
    let rights = format!(
        "GRANT ALL ON {prefix}records, {prefix}schema TO USER;
         ALTER TABLE {prefix}records ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON {prefix}records USING (current_setting('app.tenant') = 'me')"
    );
    let tenant = user(&mut side, &rights).await;
    let tenant = builder().connect(&tenant).await.expect("the tables");
    let refused = tenant.swap(&ID, None, &claim()).await;
    let said = refused.expect_err("no tenant is set").to_string();
    assert!(said.contains("app.tenant"), "{said}");
    assert!(!said.contains("migrate"), "{said}");

    let trigger = format!(
        "CREATE FUNCTION {prefix}closes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'closed for the night' USING ERRCODE = 'check_violation';
         END $$;
         CREATE TRIGGER {prefix}closes BEFORE INSERT ON {prefix}records FOR EACH ROW
             EXECUTE FUNCTION {prefix}closes()"
    );
    run(&mut side, trigger).await;
    let refused = store.swap(&ID, None, &claim()).await;
    let said = refused.expect_err("the trigger refuses").to_string();
    assert!(said.ends_with("closed for the night"), "{said}");
    assert!(!said.contains("migrate"), "{said}");
}

/// As where a relay deletes the message that was there in between, at each look.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_29_a_message_whose_id_is_taken_by_one_that_is_not_shown_is_refused() {
    let shop = PostgresShop::new().await;
    let made = outbox::outbox(&shop).await;
    outbox::broker::send(&shop, &made, [outbox::placed(7).id("order-7")]).await;
    let tables = format!("{}outbox_", outbox::prefix(&shop));
    let rights = format!(
        "GRANT ALL ON {tables}messages, {tables}counters, {tables}claims, {tables}relays, {tables}schema TO USER;
         ALTER TABLE {tables}messages ENABLE ROW LEVEL SECURITY;
         CREATE POLICY hidden ON {tables}messages FOR SELECT
             USING (payload <> convert_to('7', 'UTF8'));
         CREATE POLICY taken ON {tables}messages FOR INSERT WITH CHECK (TRUE)"
    );
    let mut side = side(&url(URL)).await;
    let tenant = user(&mut side, &rights).await;
    let tenant = PgPool::connect(&tenant).await.expect("a connection");
    let theirs = Outbox::postgres(tenant.clone()).prefix(&outbox::prefix(&shop));
    let theirs = theirs.expect("a prefix");

    let mut tx = tenant.begin().await.expect("a transaction");
    let sent = theirs.send(&mut tx, outbox::placed(8).id("order-7")).await;

    let Err(Error::Store(error)) = &sent else {
        panic!("{sent:?}")
    };
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error:?}");
    assert!(error.to_string().contains("may not see it"), "{error}");
}

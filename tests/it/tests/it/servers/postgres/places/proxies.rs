//! Proxies that pool transactions.

use super::*;

/// The same behind the proxy.
fn proxied(database: &str) -> String {
    there(&url("IDEMPOTENT_TEST_PGBOUNCER_URL"), database)
}

/// One client finds in a connection what another one has prepared there.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_proxy_that_pools_transactions_unsaid_is_a_matter_of_configuration() {
    let mut side = side(&url(URL)).await;
    let database = database(&mut side).await;
    let proxied = proxied(&database);
    let said = PostgresStore::builder().transaction_pooling();
    said.connect(&proxied).await.expect("the tables are made");

    let mut kinds = Vec::new();
    for _ in 0..2 {
        let unsaid = PostgresStore::builder().options(proxied.parse().expect("a URL"));
        let unsaid = unsaid.expect("the options can be used");
        kinds.push(kind(unsaid.load(&RecordId::from_bytes([1; 32])).await));
    }

    gone(&mut side, database).await;
    assert_eq!(kinds, [None, Some(StoreErrorKind::Configuration)]);
}

/// As `load` of the second store, sent to where the first one has prepared its own under the same
/// name.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_proxy_that_pools_transactions_unsaid_never_answers_with_the_record_of_another_store() {
    let mut side = side(&url(URL)).await;
    let database = database(&mut side).await;
    let proxied = proxied(&database);
    let id = RecordId::from_bytes([1; 32]);
    let mut stores = Vec::new();
    for prefix in ["first_", "second_"] {
        let builder = || PostgresStore::builder().table_prefix(prefix);
        let said = builder().transaction_pooling().connect(&proxied).await;
        let said = said.expect("the tables are made");
        applied(&said, &id, None, &claim()).await;
        let unsaid = builder().options(proxied.parse().expect("a URL"));
        stores.push(unsaid.expect("the options can be used"));
    }
    let [first, second] = stores.try_into().expect("two stores");
    let mut holders = Vec::new();
    for _ in 0..2 {
        let holder = PgConnection::connect(&proxied).await;
        holders.push(holder.expect("the proxy answers"));
    }
    let [mut one, mut other] = <[_; 2]>::try_from(holders).expect("two connections");

    // The proxy gives out what came back last.
    run(&mut one, "BEGIN".to_owned()).await;
    let prepared = first.load(&id).await;
    run(&mut other, "BEGIN".to_owned()).await;
    run(&mut one, "COMMIT".to_owned()).await;
    let prepared = (prepared, second.load(&id).await);
    run(&mut other, "COMMIT".to_owned()).await;
    let answer = second.load(&id).await;

    gone(&mut side, database).await;
    assert!(matches!(prepared, (Ok(_), Ok(_))), "{prepared:?}");
    let error = answer.map(|snapshot| snapshot.record);
    let error = error.expect_err("what was sent is not what was prepared there");
    assert_eq!(error.kind(), StoreErrorKind::Other);
}

/// Behind a proxy the store can set nothing, and reads what comes as text.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_29_bytes_are_read_in_either_form() {
    let mut side = side(&url(URL)).await;
    let database = database(&mut side).await;
    let form = format!("ALTER DATABASE {database} SET bytea_output = 'escape'");
    run(&mut side, form).await;

    let direct = PostgresStore::connect(&there(&url(URL), &database)).await;
    let direct = direct.expect("the server answers");
    let loaded = kind(direct.load(&RecordId::from_bytes([1; 32])).await);
    let pooled = PostgresStore::builder().transaction_pooling();
    let pooled = pooled.connect(&proxied(&database)).await;
    let pooled = pooled.expect("the server answers");
    let id = RecordId::from_bytes([2; 32]);
    applied(&pooled, &id, None, &claim()).await;
    let read = pooled.load(&id).await;
    let written = direct.load(&id).await.map(|snapshot| snapshot.record);

    gone(&mut side, database).await;
    assert_eq!(loaded, None, "without a proxy they do not come as text");
    let read = read.map(|snapshot| snapshot.record);
    assert_eq!(read, written);
    assert!(matches!(read, Ok(Some(_))), "{read:?}");
}

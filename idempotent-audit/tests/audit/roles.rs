//! An application that does not own its tables can write records, and change no entry.

use idempotent_audit::Audit;
use idempotent_runtime::{
    Error, Idempotency,
    store::{MySqlStore, PostgresStore},
};
use sqlx::{MySql, MySqlPool, PgPool, Pool, Postgres};

use crate::{
    harness::{Place, Shop, url},
    made::{arguments_of_mariadb, run_by},
};

/// The address of a server for another user.
fn as_user(server: &str, user: &str) -> String {
    server.replacen("idempotent@", &format!("{user}@"), 1)
}

async fn refuses<DB: Place>(pool: &Pool<DB>, shop: &Shop<DB>, statements: &[&str]) {
    for statement in statements {
        let mut connection = pool.acquire().await.expect("a connection");
        let text = statement.replace("{p}", &shop.prefix);
        let refused = DB::query(&mut connection, text, "trying").await.map(drop);
        let refused = refused.expect_err(statement);
        let said = refused.to_string();
        assert!(
            said.contains("denied") || said.contains("must be owner"),
            "{statement}: {said}"
        );
    }
}

/// The statements that neither of them may run.
const OF_BOTH: [&str; 6] = [
    "DELETE FROM {p}audit",
    "UPDATE {p}audit SET holder = 'other'",
    "INSERT INTO {p}audit (written, source, kind) VALUES (7, 'event', 'event')",
    "DELETE FROM {p}audit_seals",
    "UPDATE {p}audit_seals SET sealed = 7",
    "UPDATE {p}audit_events SET event = 'other'",
];

async fn holds<DB: Place>(
    shop: &Shop<DB>,
    (idem, application, of_app): (Idempotency, Audit, Pool<DB>),
    (sealer, of_sealer): (Audit, Pool<DB>),
    user: &str,
) {
    application
        .check()
        .await
        .expect("the application sees the trail");
    let call = idem.call("payments.charge").key("k");
    let paid = call.run(async |_| Ok::<_, Error>(7_u64)).await;
    assert_eq!(paid.expect("the application may call"), 7);
    assert_eq!(sealer.seal().await, Ok(3), "start and two writes");
    let report = sealer.verify().run().await.expect("the sealer reads it");
    assert_eq!((report.entries, report.divergence), (3, None));
    let entries = shop.entries().await;
    let users = entries
        .iter()
        .map(|entry| entry.db_user.clone().unwrap_or_default());
    assert!(
        users.clone().all(|it| it.starts_with(user)),
        "{:?}",
        users.collect::<Vec<_>>()
    );
    refuses(&of_app, shop, &OF_BOTH).await;
    refuses(&of_sealer, shop, &OF_BOTH).await;
    refuses(
        &of_app,
        shop,
        &[
            "UPDATE {p}audit SET place = 7",
            "INSERT INTO {p}audit_seals SELECT * FROM {p}audit_seals",
        ],
    )
    .await;
    refuses(
        &of_sealer,
        shop,
        &["UPDATE {p}records SET state = 7", "DELETE FROM {p}steps"],
    )
    .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_an_application_cannot_change_its_trail() {
    let shop = Shop::<Postgres>::new().await.audited().await;
    let (app, seals) = (
        format!("{}app", shop.prefix),
        format!("{}sealer", shop.prefix),
    );
    shop.done_by_hand(&format!("CREATE USER {app}; CREATE USER {seals}"))
        .await;
    let server = url("IDEMPOTENT_TEST_POSTGRES_URL");
    let roles = shop.audit().roles(&app, &seals).expect("a prefix");
    run_by(
        "psql",
        &[&server, "--quiet", "--set=ON_ERROR_STOP=1"],
        &roles,
    );
    let connect = async |user: &str| {
        let pool = PgPool::connect(&as_user(&server, user))
            .await
            .expect("the server answers");
        let audit = Audit::postgres(pool.clone()).table_prefix(&shop.prefix);
        (audit.connect().await.expect("it stands"), pool)
    };
    let (of_app, of_sealer) = (connect(&app).await, connect(&seals).await);
    let store = PostgresStore::builder().table_prefix(&shop.prefix);
    let store = store.pool(of_app.1.clone()).expect("a store");
    let idem = Idempotency::builder(store)
        .audit(of_app.0.clone())
        .build()
        .expect("a handle");
    holds(&shop, (idem, of_app.0, of_app.1.clone()), of_sealer, &app).await;
    let triggers = [
        "ALTER TABLE {p}records DISABLE TRIGGER ALL",
        "DROP TRIGGER {p}audit_record_writes ON {p}records",
        "TRUNCATE {p}records",
    ];
    refuses(&of_app.1, &shop, &triggers).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_an_application_cannot_change_its_trail() {
    let shop = Shop::<MySql>::new().await.audited().await;
    let (app, seals) = (
        format!("{}app", shop.prefix),
        format!("{}sealer", shop.prefix),
    );
    shop.done_by_hand(&format!(
        "CREATE USER '{app}'@'%'; CREATE USER '{seals}'@'%'"
    ))
    .await;
    let server = url("IDEMPOTENT_TEST_MARIADB_URL");
    let roles = shop
        .audit()
        .roles(&format!("'{app}'@'%'"), &format!("'{seals}'@'%'"));
    let roles = roles.expect("a prefix");
    run_by(
        "mariadb",
        &arguments_of_mariadb().each_ref().map(String::as_str),
        &roles,
    );
    let connect = async |user: &str| {
        let pool = MySqlPool::connect(&as_user(&server, user))
            .await
            .expect("the server answers");
        let audit = Audit::mysql(pool.clone()).table_prefix(&shop.prefix);
        (audit.connect().await.expect("it stands"), pool)
    };
    let (of_app, of_sealer) = (connect(&app).await, connect(&seals).await);
    let store = MySqlStore::builder().table_prefix(&shop.prefix);
    let store = store.pool(of_app.1.clone()).expect("a store");
    let idem = Idempotency::builder(store)
        .audit(of_app.0.clone())
        .build()
        .expect("a handle");
    holds(&shop, (idem, of_app.0, of_app.1.clone()), of_sealer, &app).await;
    let triggers = ["DROP TRIGGER {p}audit_record_update", "TRUNCATE {p}records"];
    refuses(&of_app.1, &shop, &triggers).await;
}

//! An application that does not own its tables can write records, and change no entry.

use idempotent_audit::{Audit, Proposal};
use idempotent_runtime::{
    BoxError, Error, Idempotency,
    store::{MySqlStore, PostgresStore},
};
use sqlx::{MySql, Pool, Postgres};

use crate::{
    harness::{Place, Shop, url},
    made::{arguments_of_mariadb, run_by},
};

/// A server that has users.
pub(crate) trait Server: Place {
    const VARIABLE: &'static str;

    /// The name of a user, as SQL has it.
    fn named(user: &str) -> String;

    /// Runs a script as the owner of the tables.
    fn run(script: &str);

    /// The store as a user reaches it who may make no tables.
    fn over(pool: &Pool<Self>, prefix: &str) -> Self::Store;
}

impl Server for Postgres {
    const VARIABLE: &'static str = "IDEMPOTENT_TEST_POSTGRES_URL";

    fn named(user: &str) -> String {
        user.to_owned()
    }

    fn run(script: &str) {
        let server = url(Self::VARIABLE);
        let arguments = [&*server, "--quiet", "--set=ON_ERROR_STOP=1"];
        // Two grants on one schema at once are an error of the server.
        let script = format!("SELECT pg_advisory_lock(52);\n{script}");
        run_by("psql", &arguments, &script);
    }

    fn over(pool: &Pool<Self>, prefix: &str) -> PostgresStore {
        let store = PostgresStore::builder().table_prefix(prefix);
        store.pool(pool.clone()).expect("a store")
    }
}

impl Server for MySql {
    const VARIABLE: &'static str = "IDEMPOTENT_TEST_MARIADB_URL";

    fn named(user: &str) -> String {
        format!("'{user}'@'%'")
    }

    fn run(script: &str) {
        let arguments = arguments_of_mariadb();
        run_by("mariadb", &arguments.each_ref().map(String::as_str), script);
    }

    fn over(pool: &Pool<Self>, prefix: &str) -> MySqlStore {
        let store = MySqlStore::builder().table_prefix(prefix);
        store.pool(pool.clone()).expect("a store")
    }
}

impl<DB: Server> Shop<DB> {
    /// The names of a user of this shop, in a URL and in SQL.
    fn user(&self, name: &str) -> (String, String) {
        let user = format!("{}{name}", self.prefix);
        let named = DB::named(&user);
        (user, named)
    }

    /// Makes a user with the rights of an application, and one with those of a sealer.
    async fn give_roles(&self, application: &str, sealer: &str) {
        let [application, sealer] = [application, sealer].map(|name| self.user(name).1);
        self.done_by_hand(&format!("CREATE USER {application}; CREATE USER {sealer}"))
            .await;
        DB::run(&self.audit().roles(&application, &sealer).expect("a prefix"));
    }

    async fn pool_of(&self, name: &str) -> Pool<DB> {
        let (user, _) = self.user(name);
        let url = url(DB::VARIABLE).replacen("idempotent@", &format!("{user}@"), 1);
        Pool::connect(&url).await.expect("the server answers")
    }

    async fn audit_of(&self, pool: &Pool<DB>) -> Audit {
        let audit = DB::audit(pool.clone()).table_prefix(&self.prefix);
        audit.connect().await.expect("it stands")
    }
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
    assert_eq!(report.changeable_by, None, "the application owns nothing");
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

async fn an_application_cannot_change_its_trail<DB: Server>(triggers: &[&str]) {
    let shop = Shop::<DB>::new().await.audited().await;
    shop.give_roles("app", "sealer").await;
    let (of_app, of_sealer) = (shop.pool_of("app").await, shop.pool_of("sealer").await);
    let (application, sealer) = (
        shop.audit_of(&of_app).await,
        shop.audit_of(&of_sealer).await,
    );
    let idem = Idempotency::builder(DB::over(&of_app, &shop.prefix)).audit(application.clone());
    let idem = idem.build().expect("a handle");
    let user = shop.user("app").0;
    holds(
        &shop,
        (idem, application, of_app.clone()),
        (sealer, of_sealer),
        &user,
    )
    .await;
    refuses(&of_app, &shop, triggers).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_an_application_cannot_change_its_trail() {
    an_application_cannot_change_its_trail::<Postgres>(&[
        "ALTER TABLE {p}records DISABLE TRIGGER ALL",
        "DROP TRIGGER {p}audit_record_writes ON {p}records",
        "TRUNCATE {p}records",
    ])
    .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_an_application_cannot_change_its_trail() {
    an_application_cannot_change_its_trail::<MySql>(&[
        "DROP TRIGGER {p}audit_record_update",
        "TRUNCATE {p}records",
    ])
    .await;
}

/// A wall for people with users of their own, whatever name they sign with.
async fn a_person_with_a_user_needs_another_one<DB: Server>() {
    let shop = Shop::<DB>::new().await;
    let guarded = shop.audit().four_eyes(&["idempotent"]);
    guarded.migrate().await.expect("the trail is made");
    shop.give_roles("anna", "one").await;
    shop.give_roles("ben", "two").await;
    let call = shop
        .idem
        .call("payments.charge")
        .key("k")
        .uncertain_errors();
    let failed = call
        .run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")))
        .await;
    failed.expect_err("it fails");
    let page = shop.idem.records().page(1).await.expect("a page");
    let id = page.rows[0].id;

    let (of_anna, of_ben) = (shop.pool_of("anna").await, shop.pool_of("ben").await);
    let (anna, ben) = (shop.audit_of(&of_anna).await, shop.audit_of(&of_ben).await);
    let idem = Idempotency::builder(DB::over(&of_anna, &shop.prefix))
        .build()
        .expect("a handle");
    let settle = async |value: u64| -> Result<(), BoxError> {
        // She signs with no name.
        idem.settle_id(id)
            .await
            .expect("a record")
            .with_value(&value)
            .await
    };
    let refused = settle(7).await.expect_err("she needs another one");
    let proposal = Proposal::refused(&*refused).expect("a proposal");
    for by_hand in [
        "UPDATE {p}records SET state = 2",
        "UPDATE {p}records SET version = attempt_id",
        "DELETE FROM {p}records",
    ] {
        let mut connection = of_anna.acquire().await.expect("a connection");
        let text = by_hand.replace("{p}", &shop.prefix);
        let refused = DB::query(&mut connection, text, "trying").await.map(drop);
        let said = refused.expect_err(by_hand).to_string();
        assert!(said.contains("four eyes: "), "{said}");
    }

    let propose = anna.propose(id, proposal.clone()).by("anna");
    propose.because("dashboard").await.expect("she may propose");
    let number = anna.proposals().await.expect("they can be read")[0].number;
    anna.approve(number, "ben")
        .await
        .map(drop)
        .expect_err("she is one person, whatever name she says");
    let approved = format!(
        "INSERT INTO {}audit_events (event, detail, person) VALUES ('approve', '{proposal} {} r', 'ben')",
        shop.prefix,
        id.to_hex()
    );
    let mut connection = of_anna.acquire().await.expect("a connection");
    DB::query(&mut connection, approved, "approving")
        .await
        .expect("she may write events");
    settle(7).await.expect_err("she approved it herself");
    let forged = format!(
        "INSERT INTO {}audit_events (event, detail, db_user) VALUES ('approve', '{proposal} {} r', 'ben')",
        shop.prefix,
        id.to_hex()
    );
    let forged = DB::query(&mut connection, forged, "forging")
        .await
        .map(drop);
    forged.expect_err("nobody writes the name of a user");

    // An approval of yesterday is none.
    let detail = format!("{proposal} {} r", id.to_hex());
    shop.done_by_hand(&format!(
        "INSERT INTO {{p}}audit_events (event, detail, db_user, written) VALUES ('approve', '{detail}', 'carl', {} - 86400000000)",
        match DB::NAME {
            "PostgreSQL" => "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
            _ => "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
        }
    ))
    .await;
    settle(7).await.expect_err("it is too old");

    let approve = ben.approve(number, "ben").await.expect("another person");
    approve
        .because("I saw it, too")
        .await
        .expect("it is approved");
    settle(8).await.expect_err("another outcome");
    settle(7).await.expect("it is approved");
    let entries = shop.entries().await;
    let mut acts = entries.iter().rev();
    let last = acts.find(|it| it.label.as_deref() == Some("approve"));
    let last = last.expect("an entry").db_user.clone().expect("a user");
    assert!(last.starts_with(&shop.user("ben").0), "{last}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_a_person_with_a_user_needs_another_one() {
    a_person_with_a_user_needs_another_one::<Postgres>().await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_a_person_with_a_user_needs_another_one() {
    a_person_with_a_user_needs_another_one::<MySql>().await;
}

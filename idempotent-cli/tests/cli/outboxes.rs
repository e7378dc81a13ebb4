//! `outbox`, over the stores that have one.

use std::sync::Arc;

use expect_test::expect;
use idempotent_runtime::{
    Idempotency, MemoryStore, Observer, OutboxEvent,
    outbox::{Envelope, Message, Outbox, OutboxDatabase, PublishError, Publisher},
};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, Pool, SqlitePool};
use tokio::sync::Semaphore;

use crate::shop::Shop;

/// Refuses every message.
struct Refuses;

impl Publisher for Refuses {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let refuse = |_| Err(PublishError::Rejected("no such customer".to_owned()));
        batch.iter().map(refuse).collect()
    }
}

/// Has a permit for each key that is parked.
struct ParkedKeys(Arc<Semaphore>);

impl Observer for ParkedKeys {
    fn outbox(&self, event: &OutboxEvent<'_>) {
        if let OutboxEvent::Parked { .. } = event {
            self.0.add_permits(1);
        }
    }
}

/// Sends two messages of one key and one of another, and has both keys parked.
async fn parked<DB: OutboxDatabase>(shop: &Shop, outbox: Outbox<DB>, pool: &Pool<DB>)
where
    for<'c> &'c mut DB::Connection: sqlx::Executor<'c, Database = DB>,
{
    let outbox = match shop.prefix() {
        Some(prefix) => outbox.prefix(prefix).expect("a prefix"),
        None => outbox,
    };
    let missing = shop.run(&["outbox", "topics"]);
    assert!(
        missing.code == 1 && missing.err.contains("--outbox"),
        "{}",
        missing.all()
    );
    let made = shop.run(&["migrate", "--outbox"]);
    assert_eq!(made.code, 0, "{}", made.all());
    let mut tx = pool.begin().await.expect("a transaction");
    for (id, key) in [
        ("m-1", "customer 7"),
        ("m-2", "customer 7"),
        ("m-3", "customer 8"),
    ] {
        let message = Message::new("orders.placed", &7).expect("it is JSON");
        let message = message.key(key).id(id);
        outbox.send(&mut *tx, message).await.expect("it is sent");
    }
    tx.commit().await.expect("it commits");
    let keys = Arc::new(Semaphore::new(0));
    let observed = Idempotency::builder(MemoryStore::new()).observer(ParkedKeys(Arc::clone(&keys)));
    let observed = observed.build().expect("a handle");
    let relay = outbox.relay(Refuses).budget(1).idempotency(&observed);
    let relay = relay.start().await.expect("it starts");
    let _both = keys.acquire_many(2).await.expect("it is open");
    relay.stop().await;
}

/// Looks at the outbox and has it go on, as an operator does.
fn operated(shop: &Shop) {
    const SIGNED: [&str; 3] = ["--reason", "the customer is known now", "--yes"];
    expect![[r#"
        TOPIC  WAITING  OLDEST  PARKED KEYS
        orders.placed  3  AGE  2
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["outbox", "topics"]).all());
    expect![[r#"
        KEY  TOPIC  PARKED FOR  MESSAGES  OLDEST  REASON
        customer 7  orders.placed  AGE  2  m-1  it was refused: no such customer
        customer 8  orders.placed  AGE  1  m-3  it was refused: no such customer
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["outbox", "parked"]).all());
    let other = shop.run(&["outbox", "parked", "--reason-has", "timeout"]);
    assert_eq!(other.code, 3, "{}", other.all());

    let discard = [
        "outbox",
        "discard",
        "--key",
        "customer 7",
        "--message",
        "m-1",
    ];
    expect![[r#"
        The message "m-1" will be set aside, and the key "customer 7" will go on behind it.
        By anna@HOST because: the customer is known now
        Done: the key goes on behind the message.
        exit code 0
    "#]]
    .assert_eq(&shop.run(&[&discard[..], &SIGNED].concat()).all());
    let again = shop.run(&[&discard[..], &SIGNED].concat());
    assert_eq!(again.code, 3, "another message is first: {}", again.all());
    expect![[r#"
        ID  TOPIC  KEY  BYTES  SET ASIDE  REASON
        m-1  orders.placed  customer 7  1  TIME  the customer is known now
        exit code 0
    "#]]
    .assert_eq(&shop.run(&["outbox", "rejected"]).all());

    let resume = shop.run(
        &[
            &["outbox", "resume", "--topic", "orders.placed"][..],
            &SIGNED,
        ]
        .concat(),
    );
    assert!(resume.out.contains("1 keys go on"), "{}", resume.all());
    let resend = shop.run(&[&["outbox", "resend", "m-1"][..], &SIGNED].concat());
    assert_eq!(resend.code, 0, "{}", resend.all());
    let gone = shop.run(&[&["outbox", "discard", "--rejected", "m-1"][..], &SIGNED].concat());
    assert_eq!(gone.code, 3, "it waits again: {}", gone.all());
    let json = shop.run(&["outbox", "topics", "--json"]);
    assert!(json.out.contains(r#""pending":3"#), "{}", json.all());
}

#[tokio::test]
async fn an_outbox_in_a_file_is_operated() {
    let shop = Shop::sqlite().await;
    let pool = SqlitePool::connect(shop.url()).await.expect("a file");
    parked(&shop, Outbox::sqlite(pool.clone()), &pool).await;
    operated(&shop);
    // Bytes of another program move no terminal.
    let text = "UPDATE idempotent_outbox_claims SET reason = X'1B5B324AFF'";
    let changed = sqlx::query(AssertSqlSafe(text.to_owned()))
        .execute(&pool)
        .await;
    changed.expect("it is written");
    assert!(!shop.run(&["outbox", "parked"]).all().contains('\u{1b}'));
}

#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn an_outbox_in_postgres_is_operated() {
    let shop = Shop::postgres().await;
    let pool = PgPool::connect(shop.url()).await.expect("a server");
    parked(&shop, Outbox::postgres(pool.clone()), &pool).await;
    operated(&shop);
}

#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn an_outbox_in_mariadb_is_operated() {
    let shop = Shop::mariadb().await;
    let pool = MySqlPool::connect(shop.url()).await.expect("a server");
    parked(&shop, Outbox::mysql(pool.clone()), &pool).await;
    operated(&shop);
}

#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn redis_has_no_outbox() {
    let topics = Shop::redis().await.run(&["outbox", "topics"]);
    assert_eq!(topics.code, 2, "{}", topics.all());
}

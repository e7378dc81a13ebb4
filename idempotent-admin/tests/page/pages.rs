//! Each page shows what it is for, and leads to the others.

use http::StatusCode;
use idempotent_admin::{CallChart, Page};
use idempotent_runtime::{
    Error, Idempotency,
    outbox::{Message, Outbox},
    store::SqliteStore,
};
use sqlx::SqlitePool;

use crate::shop::{app, by_header, charged, get, uncertain};

#[tokio::test]
async fn the_overview_shows_what_needs_a_person() {
    let idem = Idempotency::memory();
    let page = app(&idem);
    get(&page, "/ops/overview").await.has("Nothing does.");

    let other = app(&idem);
    charged(&idem, "k").await;
    for key in ["a", "b"] {
        uncertain(&idem, "payments.charge", key).await;
    }
    uncertain(&idem, "mails.send", "a").await;
    let overview = get(&other, "/ops/overview").await;
    assert_eq!(overview.status, StatusCode::OK);
    overview.has("<td class=\"number\">2</td>");
    let list = overview.link("mails.send");
    assert_eq!(list, "records?state=uncertain&operation=mails.send");
    let list = get(&other, &format!("/ops/{list}")).await;
    list.has("mails.send");
    list.lacks("payments.charge");
}

#[tokio::test]
async fn an_overview_is_read_once_in_five_seconds() {
    let idem = Idempotency::memory();
    let page = app(&idem);
    uncertain(&idem, "payments.charge", "a").await;
    tokio::time::pause();
    get(&page, "/ops/overview")
        .await
        .has("<td class=\"number\">1</td>");
    uncertain(&idem, "payments.charge", "b").await;
    get(&page, "/ops/overview")
        .await
        .has("<td class=\"number\">1</td>");
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    get(&page, "/ops/overview")
        .await
        .has("<td class=\"number\">2</td>");
}

#[tokio::test]
async fn the_calls_of_this_process_are_drawn() {
    let chart = CallChart::default();
    let store = idempotent_runtime::MemoryStore::new();
    let idem = Idempotency::builder(store).observer(chart.clone());
    let idem = idem.build().expect("a handle");
    for _ in 0..3 {
        charged(&idem, "order-1").await;
    }
    uncertain(&idem, "payments.charge", "order-2").await;
    let page = Page::new(idem.clone(), by_header).chart(&chart).router();
    let overview = get(&page, "/overview").await;
    overview.has("Calls of this process in the last hour");
    let row = |name: &str, count: u64| format!("{name}</td><td class=\"number\">{count}</td>");
    for (name, count) in [
        ("ran", 1),
        ("replayed", 2),
        ("refused", 0),
        ("not recorded", 1),
    ] {
        overview.has(&row(name, count));
    }
    for kind in ["k0", "k1", "k3"] {
        overview.has(&format!("<rect class=\"{kind}\""));
    }
    overview.lacks("<rect class=\"k2\"");
    let without = Page::new(idem, by_header).router();
    get(&without, "/overview").await.lacks("last hour");
}

#[tokio::test]
async fn an_outbox_is_shown_by_topic() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let idem = Idempotency::new(store);
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display()))
        .await
        .expect("a file");
    let outbox = Outbox::sqlite(pool.clone());
    let router = || Page::new(idem.clone(), by_header).outbox(&outbox).router();
    let away = get(&router(), "/overview").await;
    away.has("The outbox did not answer");

    outbox.migrate().await.expect("tables");
    get(&router(), "/overview").await.has("No message waits.");
    let mut transaction = pool.begin().await.expect("a transaction");
    let message = Message::new("orders.placed", &1)
        .expect("a message")
        .key("a");
    outbox
        .send(&mut transaction, message)
        .await
        .expect("it waits");
    transaction.commit().await.expect("it stands");
    get(&router(), "/overview").await.has("orders.placed");
}

#[tokio::test]
async fn a_list_is_searched_and_goes_on() {
    let idem = Idempotency::memory();
    for number in 0..60 {
        let call = idem.call("reports.make").key(&number);
        call.run(async |_| Ok::<_, Error>(()))
            .await
            .expect("it is made");
    }
    let page = app(&idem);
    let first = get(&page, "/ops/records?operation=reports.make").await;
    assert_eq!(first.text.matches("href=\"records/").count(), 50);
    let next = first.link("Next page");
    let second = get(&page, &format!("/ops/{next}")).await;
    assert_eq!(second.text.matches("href=\"records/").count(), 10);
    second.lacks("Next page");
    assert_eq!(second.link("First page"), "records?operation=reports.make");

    let key = get(&page, "/ops/records?key=7").await;
    assert_eq!(key.text.matches("href=\"records/").count(), 1);
    let none = get(&page, "/ops/records?state=parked").await;
    none.has("No record is like that");
    let young = get(&page, "/ops/records?older_than=2h").await;
    young.has("No record is like that");
    young.has("value=\"2h\"");
}

#[tokio::test]
async fn a_record_tells_its_story_and_hides_its_outcome() {
    let idem = Idempotency::memory();
    let id = charged(&idem, "order-1").await.to_hex();
    let settled = uncertain(&idem, "payments.charge", "order-2").await;
    let settle = idem.settle_id(settled).await.expect("a record");
    settle
        .by("anna")
        .because("dashboard, row 7")
        .as_done()
        .await
        .expect("it is settled");
    let page = app(&idem);
    let list = get(&page, "/ops/records").await;
    let link = list.link(&id);
    let record = get(&page, &format!("/ops/{link}")).await;
    for text in ["order-1", "Value, ", "gateway", "payments.charge", &id] {
        record.has(text);
    }
    record.lacks("secret");
    record.lacks("receipt-99");
    assert_eq!(record.link("Overview"), "../overview");
    let settled = get(&page, &format!("/ops/records/{}", settled.to_hex())).await;
    settled.has("anna: dashboard, row 7");
}

#[tokio::test]
async fn no_such_record_is_no_failure() {
    let page = app(&Idempotency::memory());
    for id in ["7".repeat(64), "x".to_owned(), "%00".to_owned()] {
        let none = get(&page, &format!("/ops/records/{id}")).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "{id}");
        none.has("No record has this id.");
    }
}

//! An outbox: parked keys, messages that were set aside, and acts on them.

use axum::Router;
use http::{StatusCode, request::Parts};
use idempotent_admin::{Act, Page, Person};
use idempotent_runtime::{
    Idempotency,
    outbox::{Envelope, Message, Outbox, PublishError, Publisher},
    store::SqliteStore,
};
use sqlx::{Sqlite, SqlitePool};
use tempfile::TempDir;

use crate::{
    forms::Form,
    shop::{Answer, get},
};

/// It refuses every message.
struct Unwilling;

impl Publisher for Unwilling {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let refused = |_: &Envelope| Err(PublishError::Rejected("<b>unlucky</b>".to_owned()));
        batch.iter().map(refused).collect()
    }
}

/// Anna may do everything, and ben may only resume keys.
fn access(request: &Parts) -> Option<Person> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    let acts: &[Act] = match name {
        "anna" => &Act::ALL,
        _ => &[Act::OutboxResume],
    };
    Some(Person::reader(name).with(acts.iter().copied()))
}

struct Post {
    app: Router,
    outbox: Outbox<Sqlite>,
    _folder: TempDir,
}

/// Runs a relay whose publisher refuses everything, until the key is parked.
async fn park(outbox: &Outbox<Sqlite>) {
    let relay = outbox.relay(Unwilling).budget(1).start().await;
    let relay = relay.expect("it starts");
    while outbox.parked().await.expect("a list").is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    relay.stop().await;
}

/// An outbox with two messages of one key, of which the first one is refused.
async fn post() -> Post {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("shop.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let idem = Idempotency::new(store);
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await;
    let pool = pool.expect("a file");
    let outbox = Outbox::sqlite(pool.clone());
    outbox.migrate().await.expect("tables");
    let mut transaction = pool.begin().await.expect("a transaction");
    for number in 1..3 {
        let message = Message::new("orders.placed", &number).expect("a message");
        let message = message.key("a&b=\"c");
        outbox
            .send(&mut transaction, message)
            .await
            .expect("it waits");
    }
    transaction.commit().await.expect("it stands");
    park(&outbox).await;
    let app = Page::new(idem, access).outbox(&outbox).router();
    Post {
        app,
        outbox,
        _folder: folder,
    }
}

async fn opened(post: &Post, list: &Answer, act: &str) -> Form {
    let link = list.link(&format!("outbox/{act}"));
    Form::opened(&post.app, &format!("/{link}")).await
}

#[tokio::test]
async fn a_parked_key_goes_on_or_its_message_is_set_aside() {
    let post = post().await;
    let list = get(&post.app, "/outbox").await;
    list.has("a&amp;b=&quot;c");
    list.has("&lt;b&gt;unlucky");
    let form = opened(&post, &list, "resume").await;
    let none = form.send(&post.app).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST, "without a reason");
    assert_eq!(post.outbox.parked().await.expect("a list").len(), 1);
    let form = form.with("reason", "it is set up now");
    let done = form.send(&post.app).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert!(post.outbox.parked().await.expect("a list").is_empty());
    let again = form.send(&post.app).await;
    assert_eq!(
        again.status,
        StatusCode::CONFLICT,
        "it is not parked there any more"
    );

    let post = self::post().await;
    let list = get(&post.app, "/outbox").await;
    let form = opened(&post, &list, "discard")
        .await
        .with("reason", "it is broken");
    let done = form.send(&post.app).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert_eq!(post.outbox.rejected().await.expect("a list").len(), 1);
    let again = form.send(&post.app).await;
    assert_eq!(
        again.status,
        StatusCode::CONFLICT,
        "another message is first"
    );
}

#[tokio::test]
async fn a_key_is_resumed_only_at_the_message_that_was_seen() {
    let post = post().await;
    let list = get(&post.app, "/outbox").await;
    let form = opened(&post, &list, "resume").await.with("reason", "r");
    let first = post.outbox.parked().await.expect("a list").remove(0);
    let discard = post.outbox.discard(&first.key, &first.id);
    assert_eq!(discard.because("r").await, Ok(true));
    park(&post.outbox).await;
    let moved = form.send(&post.app).await;
    assert_eq!(
        moved.status,
        StatusCode::CONFLICT,
        "another message is first"
    );
    assert_eq!(post.outbox.parked().await.expect("a list").len(), 1);
}

#[tokio::test]
async fn a_message_that_was_set_aside_is_sent_again_or_deleted() {
    for (act, waiting) in [("resend", 2), ("delete", 1)] {
        let post = post().await;
        let parked = post.outbox.parked().await.expect("a list");
        let discard = post.outbox.discard(&parked[0].key, &parked[0].id);
        assert_eq!(discard.because("r").await, Ok(true));
        let list = get(&post.app, "/outbox").await;
        let form = opened(&post, &list, act).await.with("reason", "r");
        let done = form.send(&post.app).await;
        assert_eq!(done.status, StatusCode::OK, "{act}: {}", done.text);
        assert!(
            post.outbox.rejected().await.expect("a list").is_empty(),
            "{act}"
        );
        let topics = post.outbox.topics().await.expect("a list");
        assert_eq!(topics[0].pending, waiting, "{act}");
    }
}

#[tokio::test]
async fn a_form_is_for_one_time_that_a_message_was_set_aside() {
    let post = post().await;
    let set_aside = async || {
        let parked = post.outbox.parked().await.expect("a list").remove(0);
        let discard = post.outbox.discard(&parked.key, &parked.id);
        assert_eq!(discard.because("r").await, Ok(true));
        parked.id
    };
    let message = set_aside().await;
    let list = get(&post.app, "/outbox").await;
    let old = opened(&post, &list, "delete").await.with("reason", "r");
    let rejected = post.outbox.rejected().await.expect("a list").remove(0);
    assert_eq!(post.outbox.send_again(&rejected).await, Ok(true));
    // The other message of the key is first, until it is set aside, too.
    for _ in 0..2 {
        park(&post.outbox).await;
        set_aside().await;
    }
    let has = async || {
        let messages = post.outbox.rejected().id(&message).await;
        messages.expect("a list").len()
    };
    assert_eq!(has().await, 1);
    let moved = old.send(&post.app).await;
    assert_eq!(moved.status, StatusCode::CONFLICT, "{}", moved.text);
    assert_eq!(has().await, 1, "it is still there");
}

#[tokio::test]
async fn a_form_shows_no_key_but_that_of_its_message() {
    let post = post().await;
    let parked = post.outbox.parked().await.expect("a list").remove(0);
    let discard = post.outbox.discard(&parked.key, &parked.id);
    assert_eq!(discard.because("r").await, Ok(true));
    let list = get(&post.app, "/outbox").await;
    let link = list.link("outbox/delete");
    let (before, rest) = link.split_once("key=").expect("a key");
    let (_, rest) = rest.split_once('&').expect("the message");
    let other = get(
        &post.app,
        &format!("/{before}key=checked%20by%20the%20owner&{rest}"),
    )
    .await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
    other.lacks("checked by the owner");
    for act in ["resume", "discard"] {
        let path = format!("/outbox/{act}?key=other&message={}", parked.id);
        let other = get(&post.app, &path).await;
        assert_eq!(other.status, StatusCode::NOT_FOUND, "{act}");
    }
}

#[tokio::test]
async fn an_act_on_an_outbox_needs_the_right_and_its_own_form() {
    let post = post().await;
    let list = get(&post.app, "/outbox").await;
    let form = opened(&post, &list, "discard").await.with("reason", "r");
    let resume = opened(&post, &list, "resume").await;
    for (form, why) in [
        (
            form.clone().header("sec-fetch-site", Some("cross-site")),
            "another site",
        ),
        (form.clone().header("x-user", Some("ben")), "no right"),
        (
            form.clone().with("token", resume.field("token")),
            "a token of another act",
        ),
        (form.clone().with("key", "other"), "another key"),
        (form.clone().with("message", "other"), "another message"),
    ] {
        let refused = form.send(&post.app).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{why}");
    }
    assert_eq!(post.outbox.parked().await.expect("a list").len(), 1);
    let request = http::Request::get("/outbox").header("x-user", "ben");
    let of_ben = crate::shop::ask(&post.app, request).await;
    of_ben.has("outbox/resume");
    of_ben.lacks("outbox/discard");
    let none = Page::new(Idempotency::memory(), access).router();
    assert_eq!(get(&none, "/outbox").await.status, StatusCode::NOT_FOUND);
}

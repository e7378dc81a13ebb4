//! Each act on an outbox is done by hand.

use browser::{Browser, Post, Records, Site, page_of, scenario};

async fn act(browser: &Browser, site: &Site, act: &str) {
    browser.visit(&site.at("/ops/overview")).await;
    browser
        .follow("Parked keys, and messages that were set aside", "Outbox")
        .await;
    browser.follow(act, act).await;
    browser.is_sound(act).await;
    browser.fill("reason", "the exchange is there").await;
    browser.send("Done. The outbox has the reason.").await;
    browser.follow("Back to the outbox", "Outbox").await;
}

/// The parked keys, the messages that were set aside, and those that wait.
async fn counts(post: &Post) -> (usize, usize, u64) {
    let parked = post.outbox.parked().await.expect("a list").len();
    let set_aside = post.outbox.rejected().await.expect("a list").len();
    let topics = post.outbox.topics().await.expect("a list");
    (parked, set_aside, topics.iter().map(|it| it.pending).sum())
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_key_goes_on_and_a_message_is_set_aside_sent_again_or_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let post = Post::create(&folder.path().join("post.db")).await;
    let records = Records::default();
    let page = page_of("anna", &records.idem).outbox(&post.outbox);
    let site = Site::pages([("/ops", page)]).await;
    post.park("orders.placed", "order-1", "no such exchange")
        .await;
    assert_eq!(counts(&post).await, (1, 0, 2));
    scenario(async |browser| {
        act(browser, &site, "Set aside").await;
        assert_eq!(counts(&post).await, (0, 1, 1));
        act(browser, &site, "Send again").await;
        assert_eq!(counts(&post).await, (0, 0, 2));
        post.park("orders.placed", "order-2", "no such exchange")
            .await;
        let (parked, ..) = counts(&post).await;
        act(browser, &site, "Resume").await;
        assert_eq!(counts(&post).await.0, parked - 1);
        post.park("orders.placed", "order-3", "no such exchange")
            .await;
        post.set_aside("order-3").await;
        let (_, set_aside, waiting) = counts(&post).await;
        act(browser, &site, "Delete").await;
        let (_, left, still) = counts(&post).await;
        assert_eq!((left, still), (set_aside - 1, waiting));
        browser.has("None was.").await;
    })
    .await;
}

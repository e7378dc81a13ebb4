//! Takes the pictures of the operators' page for the documentation, from a store with something of
//! everything: `cargo run --package browser --bin screenshots`.

use std::{fs, path::Path, time::Duration};

use browser::{Browser, Failed, Post, Records, Site, in_doubt, page_of, scenario, trip, uncertain};
use idempotent_admin::CallChart;
use idempotent_runtime::{Error, Idempotency};

/// The height of a picture, at most.
const HIGHEST: u64 = 1020;

#[tokio::main]
async fn main() {
    let chart = CallChart::default();
    let records = Records::new(|builder| builder.observer(chart.clone()));
    let folder = tempfile::tempdir().expect("a folder");
    let post = Post::create(&folder.path().join("post.db")).await;
    fill(&records, &post).await;
    let page = page_of("anna", &records.idem).chart(&chart);
    let site = Site::pages([("/admin", page.outbox(&post.outbox))]).await;
    scenario(async |browser| {
        browser.hide_scrollbars().await;
        browser.colors("light").await;
        browser.visit(&site.at("/admin")).await;
        browser.has_title("Overview").await;
        take(browser, "admin-overview.png").await;
        browser.follow("trips.book", "Records").await;
        browser.follow_to("records/", "Record").await;
        take(browser, "admin-record.png").await;
        browser.follow("Settle", "Settle").await;
        browser.choose("value").await;
        browser.fill("value", "\"receipt-99\"").await;
        browser
            .fill("reason", "The gateway's dashboard has it in row 7.")
            .await;
        take(browser, "admin-settle.png").await;
    })
    .await;
}

/// Writes a picture of the page that is open, as high as its content.
async fn take(browser: &Browser, name: &str) {
    browser.size(1280, 100).await;
    let height = "return document.querySelector('main').getBoundingClientRect().bottom";
    let height = browser.script(height).await.as_f64().expect("a height");
    let height = (height.ceil() as u64).min(HIGHEST);
    browser
        .size(1280, u32::try_from(height).unwrap_or(u32::MAX))
        .await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate");
    let written = fs::write(folder.join(name), browser.picture().await);
    written.expect("the folder of the documentation");
}

/// Calls that are done, replayed, in doubt or parked, a stream, and an outbox.
async fn fill(records: &Records, post: &Post) {
    let idem = &records.idem;
    records.parked("reports.make", "2026-12").await;
    records.parked_number("ledger.apply", "eur").await;
    records.advance(Duration::from_secs(50 * 60));
    for order in ["order-61", "order-62", "order-63"] {
        uncertain(idem, "payments.charge", order).await;
    }
    in_doubt(idem, "trips.book", "trip-42").await;
    let room = async || Ok::<_, Failed>("room 7".to_owned());
    let booked = trip(idem, "trips.book", "trip-41", room).await;
    booked.expect("it is booked");
    for order in 0..40 {
        charge(idem, order % 25).await;
    }
    records.advance(Duration::from_secs(7 * 60));
    post.park(
        "orders.placed",
        "order-17",
        "the exchange `orders` is not there",
    )
    .await;
    post.park("orders.paid", "order-12", "larger than the broker takes")
        .await;
    post.set_aside("order-12").await;
}

async fn charge(idem: &Idempotency, order: u32) {
    let call = idem.call("payments.charge").key(&order);
    let charged = call.run(async |_| Ok::<_, Error>(order)).await;
    charged.expect("it is charged");
}

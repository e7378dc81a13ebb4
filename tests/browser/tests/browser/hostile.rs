//! Names that are meant to do harm, or are only long.

use browser::{Post, Records, Site, page_of, scenario, uncertain};
use serde_json::Value;

const SCRIPT: &str = "\"><script>window.harmed = true</script><img src=x onerror='harmed = true'>";

fn long(letter: &str) -> String {
    format!("{SCRIPT}{}", letter.repeat(300))
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn hostile_names_neither_run_nor_widen_a_page() {
    let records = Records::default();
    let folder = tempfile::tempdir().expect("a folder");
    let post = Post::create(&folder.path().join("post.db")).await;
    post.park("orders.placed", &long("k")[..200], SCRIPT).await;
    let (operation, key) = (long("o"), long("k"));
    let id = uncertain(&records.idem, &operation, &key).await.to_hex();
    let page = page_of("anna", &records.idem).outbox(&post.outbox);
    let site = Site::pages([("/ops", page)]).await;
    let record = format!("/ops/records/{id}");
    let settle = format!("{record}/settle");
    scenario(async |browser| {
        let paths = [
            "/ops/overview",
            "/ops/records",
            &record,
            &settle,
            "/ops/outbox",
        ];
        for path in paths {
            browser.visit(&site.at(path)).await;
            browser.has("window.harmed").await;
            browser.is_sound(path).await;
            let harmed = browser.script("return window.harmed ?? null").await;
            assert_eq!(harmed, Value::Null, "{path}");
        }
        browser.visit(&site.at(&settle)).await;
        browser.choose("done").await;
        browser.fill("reason", &long("r")).await;
        browser.send("Done.").await;
        browser.follow("Back to the record", "Record").await;
        browser.has("rrrrrrrr").await;
        browser.is_sound("the record with its note").await;
        let harmed = browser.script("return window.harmed ?? null").await;
        assert_eq!(harmed, Value::Null);
    })
    .await;
}

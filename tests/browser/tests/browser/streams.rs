//! The number at which a stream stops is settled or skipped by hand.

use browser::{Records, Site, page_of, scenario};
use idempotent_runtime::Error;

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_number_is_settled_or_skipped() {
    let records = Records::default();
    let idem = &records.idem;
    for operation in ["ledger.apply", "ledger.close"] {
        records.parked_number(operation, "eur").await;
    }
    let site = Site::pages([("/ops", page_of("anna", idem))]).await;
    scenario(async |browser| {
        for (operation, how) in [("ledger.apply", "value"), ("ledger.close", "skip")] {
            browser.visit(&site.at("/ops/overview")).await;
            let link = format!("sequence:{operation}");
            browser.follow(&link, "Records").await;
            browser.follow_to("records/", "Record").await;
            browser
                .follow("Settle the number", "Settle the number")
                .await;
            browser.choose(how).await;
            if how == "value" {
                browser.fill("value", "7").await;
            }
            browser.fill("reason", "row 7 of the ledger").await;
            browser.send("Done.").await;
        }
    })
    .await;
    for (operation, value) in [("ledger.apply", Some(7)), ("ledger.close", None)] {
        let stream = || idem.sequence(operation, "eur").first(1);
        let position = stream().position().await.expect("a position");
        assert_eq!(
            (position.last, position.running),
            (Some(1), None),
            "{operation}"
        );
        let again = stream().number(1).run(async |_| Ok::<_, Error>(8_u64));
        let known = again.await.expect("it has ended").into_value();
        assert_eq!(known, value, "{operation}");
        let next = stream()
            .number(2)
            .run(async |_| Ok::<_, Error>(2_u64))
            .await;
        assert_eq!(next.expect("it is applied").into_value(), Some(2));
    }
}

//! The checks themselves can fail.

use browser::{Browser, Records, Site, page_of, scenario};

/// Opens the list, and changes it by a script.
async fn changed(browser: &Browser, site: &Site, script: &str) {
    browser.visit(&site.at("/ops/records")).await;
    browser.has_title("Records").await;
    browser.script(script).await;
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn what_is_wrong_with_a_page_is_seen() {
    let records = Records::default();
    let site = Site::pages([("/ops", page_of("anna", &records.idem))]).await;
    scenario(async |browser| {
        let html = "document.querySelector('main').insertAdjacentHTML('beforeend', ";
        let added = |element: &str| format!("{html}`{element}`)");

        changed(browser, &site, &added("<p style='color: red'>x</p>")).await;
        browser.until("return window.violations.length > 0").await;
        let violations = browser.violations().await;
        assert!(violations[0].contains("style-src-attr"), "{violations:?}");
        assert!(
            !browser.console().await.is_empty(),
            "the console has it, too"
        );

        let inline = "const it = document.createElement('script');
            it.textContent = 'window.ran = true'; document.body.append(it)";
        changed(browser, &site, inline).await;
        browser.until("return window.violations.length > 0").await;
        let violations = browser.violations().await;
        assert!(violations[0].contains("script-src"), "{violations:?}");

        changed(browser, &site, &added("<input type='text'>")).await;
        let barriers = browser.barriers().await;
        assert!(
            barriers.iter().any(|it| it.starts_with("label ")),
            "{barriers:?}"
        );

        changed(
            browser,
            &site,
            &added("<svg width='5000' height='1'></svg>"),
        )
        .await;
        assert!(browser.overhang().await > 0, "the page scrolls to the side");
    })
    .await;
}

//! No browser outlives its test.

use std::{fs, panic::AssertUnwindSafe, path::Path, sync::Mutex, time::Duration};

use browser::scenario;
use futures_util::FutureExt as _;

/// How many processes have this folder among their arguments.
fn processes(profile: &Path) -> usize {
    let profile = profile.display().to_string();
    let entries = fs::read_dir("/proc").expect("a list of processes");
    let arguments = entries.flatten().map(|it| it.path().join("cmdline"));
    let texts = arguments.filter_map(|it| fs::read(it).ok());
    texts
        .filter(|it| String::from_utf8_lossy(it).contains(&profile))
        .count()
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test"]
async fn a_scenario_that_panics_leaves_no_browser() {
    let profile = Mutex::new(None);
    let panics = scenario(async |browser| {
        assert!(processes(&browser.profile) > 0, "it runs");
        *profile.lock().expect("one thread") = Some(browser.profile.clone());
        panic!("on purpose");
    });
    let ended = AssertUnwindSafe(panics).catch_unwind().await;
    let why = ended.expect_err("it panics");
    assert_eq!(why.downcast_ref(), Some(&"on purpose"));
    let profile = profile.into_inner().expect("one thread");
    let profile = profile.expect("it ran");
    let ends = async {
        while processes(&profile) > 0 {
            tokio::task::yield_now().await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(240), ends).await;
    ended.expect("the browser ends");
}

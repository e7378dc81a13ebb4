//! The checks that every page passes.

use serde_json::Value;

use crate::Browser;

/// The script that looks for barriers.
pub const AXE: &str = include_str!("../axe/axe.min.js");

/// Each new document collects the violations of its policy.
pub(crate) const COLLECTOR: &str = "
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (it) => {
        window.violations.push(`${it.effectiveDirective} ${it.blockedURI} ${it.sourceFile}`);
    });";

/// The serious findings, one a line.
const FINDINGS: &str = "
    const done = arguments[0];
    axe.run(document, { resultTypes: ['violations'] }).then(
        ({ violations }) => done(violations
            .filter((it) => ['serious', 'critical'].includes(it.impact))
            .flatMap((it) => it.nodes.map((node) => `${it.id} (${it.impact}): ${node.html}`))),
        (error) => done([`axe failed: ${error}`]));";

/// From a small telephone to a wide screen.
const WIDTHS: [u32; 2] = [320, 1920];

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().expect("a list").iter();
    all.map(|it| it.as_str().unwrap_or_default().to_owned())
        .collect()
}

impl Browser {
    /// The violations of the policy that this document has met so far.
    pub async fn violations(&self) -> Vec<String> {
        texts(&self.script("return window.violations").await)
    }

    /// The errors in the console since the last look. The status of an answer is none.
    pub async fn console(&self) -> Vec<String> {
        let log = self.driver.browser_log().await.expect("a log");
        let errors = log.into_iter().filter(|it| it.level == "SEVERE");
        let messages = errors.map(|it| it.message);
        messages
            .filter(|it| !it.contains("the server responded with a status of"))
            .collect()
    }

    /// The serious findings of axe.
    pub async fn barriers(&self) -> Vec<String> {
        if self.script("return window.axe === undefined").await == true {
            self.script(AXE).await;
        }
        let found = self.driver.execute_async(FINDINGS, Vec::new()).await;
        texts(found.expect("axe runs").json())
    }

    /// How many pixels of the document lie beside the window.
    pub async fn overhang(&self) -> i64 {
        let script = "return document.documentElement.scrollWidth - window.innerWidth";
        self.script(script).await.as_i64().expect("a number").max(0)
    }

    /// Checks the page that is open, narrow and wide, light and dark.
    pub async fn is_sound(&self, name: &str) {
        assert_eq!(self.violations().await, [""; 0], "{name}: the policy");
        assert_eq!(self.console().await, [""; 0], "{name}: the console");
        for width in WIDTHS {
            self.size(width, 800).await;
            let place = format!("{name} at {width} px");
            assert_eq!(self.overhang().await, 0, "{place} scrolls to the side");
            for scheme in ["light", "dark"] {
                self.colors(scheme).await;
                let barriers = self.barriers().await;
                assert!(barriers.is_empty(), "{place}, {scheme}: {barriers:#?}");
            }
        }
    }
}

//! A browser, and the hands of a person.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use thirtyfour::{
    By, ChromiumLikeCapabilities as _, DesiredCapabilities, Key, LoggingPrefsLogLevel, WebDriver,
    WebElement,
};
use tokio::time::timeout;

use crate::{
    checks::COLLECTOR,
    driver::{Driver, program},
};

/// How long a whole scenario may take. It is reached only where something hangs.
const LIMIT: Duration = Duration::from_secs(240);

/// A browser with a fresh profile. Its methods panic where the browser does not do as it is asked.
pub struct Browser {
    pub(crate) driver: WebDriver,
    /// The folder of its profile, which its process names.
    pub profile: PathBuf,
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser").finish_non_exhaustive()
    }
}

/// Opens a browser, runs the scenario in it, and quits it, also where the scenario panics.
pub async fn scenario(work: impl AsyncFnOnce(&Browser)) {
    let profile = tempfile::tempdir().expect("a folder");
    let driver = Driver::start().await;
    let browser = Browser::open(&driver, profile.path()).await;
    let work = timeout(LIMIT, work(&browser));
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    let place = timeout(LIMIT, browser.place()).await;
    let quit = timeout(LIMIT, browser.driver.quit()).await;
    driver.end().await;
    match ended {
        Ok(Ok(())) => quit.expect("it quits in time").expect("it quits"),
        Ok(Err(_)) => panic!("the scenario took more than {LIMIT:?}, and is at {place:?}"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn is_root() -> bool {
    let id = std::process::Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

impl Browser {
    async fn open(driver: &Driver, profile: &Path) -> Self {
        let mut wanted = DesiredCapabilities::chrome();
        let binary = program("IDEMPOTENT_TEST_CHROMIUM", "chromium");
        let folder = format!("--user-data-dir={}", profile.display());
        let mut arguments = vec!["--headless=new", "--disable-dev-shm-usage", &folder];
        if is_root() {
            arguments.push("--no-sandbox");
        }
        for argument in arguments {
            wanted.add_arg(argument).expect("an argument");
        }
        if let Some(path) = found(Path::new(&binary)) {
            wanted.set_binary(&path).expect("a path");
        }
        let level = LoggingPrefsLogLevel::All;
        wanted.set_browser_log_level(level).expect("a level");
        let opened = timeout(LIMIT, WebDriver::new(&*driver.address, wanted)).await;
        let driver = opened.expect("it opens in time").expect("a browser");
        let profile = profile.to_owned();
        let browser = Self { driver, profile };
        let collector = json!({ "source": COLLECTOR });
        browser
            .devtools("Page.addScriptToEvaluateOnNewDocument", collector)
            .await;
        browser
    }

    /// Sends a command of the developer tools.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) {
        let sent = self.driver.cdp().send_raw(command, parameters).await;
        sent.unwrap_or_else(|error| panic!("{command}: {error}"));
    }

    /// Runs a script, and returns its value.
    pub async fn script(&self, script: &str) -> Value {
        let answer = self.driver.execute(script, Vec::new()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{script:.200}: {error}"));
        answer.json().clone()
    }

    /// The address and the text of the page, for messages.
    pub(crate) async fn place(&self) -> String {
        let script = "return location.href + '\\n' + document.body?.innerText";
        let place = self.driver.execute(script, Vec::new()).await;
        place.map_or_else(
            |error| error.to_string(),
            |it| it.json().as_str().unwrap_or("").to_owned(),
        )
    }

    /// Goes to an address.
    pub async fn visit(&self, address: &str) {
        let gone = self.driver.goto(address).await;
        gone.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    async fn one(&self, path: &str) -> WebElement {
        match self.driver.find(By::XPath(path)).await {
            Ok(found) => found,
            Err(_) => panic!("no {path} at {}", self.place().await),
        }
    }

    async fn click(&self, path: &str) {
        let clicked = self.one(path).await.click().await;
        clicked.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Clicks the first link with this text in the content, and waits for a page with this title.
    pub async fn follow(&self, text: &str, title: &str) {
        let link = format!("//main//a[normalize-space(.)={}]", quoted(text));
        self.click(&link).await;
        self.has_title(title).await;
    }

    /// Clicks the first link whose address contains this, and waits for a page with this title.
    pub async fn follow_to(&self, part: &str, title: &str) {
        self.click(&format!("//main//a[contains(@href, {})]", quoted(part)))
            .await;
        self.has_title(title).await;
    }

    /// Clicks a link in the row of a table that begins so, and waits for a page with this title.
    pub async fn follow_in(&self, row: &str, text: &str, title: &str) {
        let (row, text) = (quoted(row), quoted(text));
        self.click(&format!(
            "//main//tr[td[1]={row}]//a[normalize-space(.)={text}]"
        ))
        .await;
        self.has_title(title).await;
    }

    /// Fills a field in.
    pub async fn fill(&self, name: &str, text: &str) {
        let field = format!("//main//form//*[@name={}]", quoted(name));
        let typed = self.one(&field).await.send_keys(text).await;
        typed.unwrap_or_else(|error| panic!("{field}: {error}"));
    }

    /// Picks the way in which it ended.
    pub async fn choose(&self, how: &str) {
        self.click(&format!("//input[@name='how'][@value={}]", quoted(how)))
            .await;
    }

    /// Sends the form by its button, and waits for a page whose content has this text.
    pub async fn send(&self, text: &str) {
        self.click("//main//form[@method='post']//button").await;
        self.has(text).await;
    }

    /// Pushes the button with this text.
    pub async fn push(&self, text: &str) {
        let button = format!("//main//button[normalize-space(.)={}]", quoted(text));
        self.click(&button).await;
    }

    /// Waits for a page with this title.
    pub async fn has_title(&self, title: &str) {
        let script = format!(
            "return document.readyState === 'complete' && \
             document.querySelector('h1')?.textContent.startsWith({})",
            json!(title)
        );
        self.until(&script).await;
    }

    /// Waits for a page whose content has this text.
    pub async fn has(&self, text: &str) {
        let script = format!(
            "return document.readyState === 'complete' && \
             document.querySelector('main')?.innerText.includes({})",
            json!(text)
        );
        self.until(&script).await;
    }

    /// Waits until a script returns true. A page that goes away meets no condition.
    pub async fn until(&self, script: &str) {
        let holds = async || {
            let answer = self.driver.execute(script, Vec::new()).await;
            answer.is_ok_and(|it| it.json() == &Value::Bool(true))
        };
        let wait = async {
            while !holds().await {
                tokio::task::yield_now().await;
            }
        };
        if timeout(LIMIT / 2, wait).await.is_err() {
            panic!("never: {script}\n{}", self.place().await);
        }
    }

    /// Presses a key at the place of the focus.
    pub async fn press(&self, key: Key) {
        let pressed = self.driver.action_chain().send_keys(key).perform().await;
        pressed.expect("a keyboard");
    }

    /// Types at the place of the focus.
    pub async fn types(&self, text: &str) {
        let typed = self.driver.action_chain().send_keys(text).perform().await;
        typed.expect("a keyboard");
    }

    /// Sets the size of the page, in pixels.
    pub async fn size(&self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    /// Sets the scheme of colors that the person likes: `dark` or `light`.
    pub async fn colors(&self, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    /// Sets the zone of the browser's clock.
    pub async fn zone(&self, zone: &str) {
        let zone = json!({ "timezoneId": zone });
        self.devtools("Emulation.setTimezoneOverride", zone).await;
    }

    /// Hides the bars of windows that scroll.
    pub async fn hide_scrollbars(&self) {
        let hidden = json!({ "hidden": true });
        self.devtools("Emulation.setScrollbarsHidden", hidden).await;
    }

    /// Takes a picture of the page, as a PNG.
    pub async fn picture(&self) -> Vec<u8> {
        let picture = self.driver.screenshot_as_png().await;
        picture.expect("a picture")
    }
}

/// The driver wants the path of a program, and looks in no folder of the path itself.
fn found(program: &Path) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let mut files = folders.map(|folder| folder.join(program));
    let file = files.find(|file| file.is_file())?;
    Some(file.display().to_string())
}

/// A text of XPath. The tests have no text with both kinds of quotes.
fn quoted(text: &str) -> String {
    match text.contains('\'') {
        true => format!("\"{text}\""),
        false => format!("'{text}'"),
    }
}

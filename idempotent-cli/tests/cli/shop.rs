//! A store with the records of a shop, and the command line over it.

use std::{
    collections::BTreeMap,
    env,
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    Error, FencingToken, Idempotency, Undo,
    identity::RecordId,
    operate::State,
    policy::OnCrash,
    record::{AttemptId, Draft, Moment, Note, TokenRule, Version},
    step,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore},
};
use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Notify;

/// A store of one test.
pub(crate) struct Shop {
    url: String,
    prefix: Option<String>,
    pub(crate) idem: Idempotency,
    _folder: Option<TempDir>,
}

/// How one run of the program ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    /// Its output, in which what differs from run to run has a name.
    pub(crate) out: String,
    pub(crate) err: String,
}

/// It stands in no output, whatever the command.
const PASSWORD: &str = "very-secret";

pub(crate) fn server(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test`"))
}

/// A name that no other test has.
pub(crate) fn prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("cli_{}_{next}_", std::process::id())
}

fn handle(store: impl idempotent_runtime::Store) -> Idempotency {
    let builder = Idempotency::builder(store).holder_name("till-3");
    builder.build().expect("a handle")
}

impl Shop {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("shop.db");
        let store = SqliteStore::open(&file).await.expect("a file");
        Self {
            url: format!("sqlite:{}", file.display()),
            prefix: None,
            idem: handle(store),
            _folder: Some(folder),
        }
    }

    pub(crate) async fn postgres() -> Self {
        let (url, prefix) = (server("IDEMPOTENT_TEST_POSTGRES_URL"), prefix());
        let store = PostgresStore::builder().table_prefix(&prefix);
        let store = store.connect(&url).await.expect("a server");
        // The server asks for no password, and takes any.
        let url = url.replacen('@', &format!(":{PASSWORD}@"), 1);
        Self::at(url, prefix, handle(store))
    }

    pub(crate) async fn mariadb() -> Self {
        let (url, prefix) = (server("IDEMPOTENT_TEST_MARIADB_URL"), prefix());
        let store = MySqlStore::builder().table_prefix(&prefix);
        let store = store.connect(&url).await.expect("a server");
        Self::at(url, prefix, handle(store))
    }

    pub(crate) async fn redis() -> Self {
        let (url, prefix) = (server("IDEMPOTENT_TEST_REDIS_URL"), prefix());
        let store = RedisStore::builder().key_prefix(&prefix);
        let store = store.accept_at_most_once_until_failover();
        let store = store.connect(&url).await.expect("a server");
        Self::at(url, prefix, handle(store))
    }

    pub(crate) async fn cluster() -> Self {
        let (urls, prefix) = (server("IDEMPOTENT_TEST_REDIS_CLUSTER_URLS"), prefix());
        let store = RedisStore::builder().key_prefix(&prefix);
        let store = store.accept_at_most_once_until_failover();
        let store = store.connect_cluster(urls.split(',')).await;
        let nodes = urls.replace("redis://", "");
        let url = format!("redis+cluster://{nodes}");
        Self::at(url, prefix, handle(store.expect("a cluster")))
    }

    fn at(url: String, prefix: String, idem: Idempotency) -> Self {
        Self {
            url,
            prefix: Some(prefix),
            idem,
            _folder: None,
        }
    }

    /// A charge of which nobody knows whether it happened.
    pub(crate) async fn uncertain(&self, key: &str) -> RecordId {
        let call = self.idem.call("payments.charge").key(key);
        let silent = call.uncertain_errors();
        let charged = silent.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer")));
        charged.await.expect_err("the gateway is silent");
        self.id("payments.charge", key).await
    }

    /// A charge that is done.
    pub(crate) async fn charged(&self, key: &str) -> RecordId {
        let call = self.idem.call("payments.charge").key(key);
        let charged = call.run(async |_| Ok::<_, Error>(format!("receipt of {key}")));
        charged.await.expect("it is charged");
        self.id("payments.charge", key).await
    }

    /// A trip whose flight is booked, and of which nobody knows whether it went on.
    pub(crate) async fn trip(&self, key: &str) -> RecordId {
        let call = || {
            let call = self.idem.call("trips.book").key(key);
            call.on_crash(OnCrash::Uncertain).lease("300ms")
        };
        let is_booked = Notify::new();
        let booked = call().run(async |_| {
            let flight = step("flight", async |_| Ok::<_, Error>("AB 123".to_owned()));
            flight.undo(cancel).await?;
            is_booked.notify_one();
            std::future::pending::<Result<(), Error>>().await
        });
        tokio::select! {
            _ = booked => panic!("the hotel is silent"),
            () = is_booked.notified() => {}
        }
        loop {
            let again = call().run(async |_| Ok::<_, Error>(())).await;
            if let Err(Error::Uncertain { .. }) = again {
                return self.id("trips.book", key).await;
            }
        }
    }

    pub(crate) async fn id(&self, operation: &str, key: &str) -> RecordId {
        let records = self.idem.records().operation(operation).key(key);
        let rows = records.page(9).await.expect("the store answers").rows;
        rows.first().expect("it is there").id
    }

    /// Puts a record into another state, as a holder that vanishes would leave it.
    pub(crate) async fn put(&self, id: RecordId, state: State, note: Option<(&str, &str)>) {
        let store = self.idem.store();
        let record = store.load(&id).await.expect("the store answers").record;
        let record = record.expect("it is there");
        let note = note.map(|(by, text)| {
            let (by, text) = (Some(by.into()), text.into());
            Note { by, text }.into()
        });
        let draft = Draft {
            version: Version::random(),
            subject: None,
            state,
            token: TokenRule::Above(FencingToken::from_u64(0)),
            attempt: record.attempt,
            attempt_id: AttemptId::random(),
            holder: record.holder.clone(),
            on_crash: OnCrash::Rerun,
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(Duration::from_secs(3_600)),
            keep: Duration::ZERO,
            outcome: None,
            note,
        };
        let put = store.swap(&id, Some(record.version), &draft).await;
        put.expect("the store answers");
    }

    /// Runs the program with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        Ran::of(command.output().expect("it runs"))
    }

    /// Output and errors as they are.
    pub(crate) fn raw(&self, arguments: &[&str]) -> (String, String) {
        self.raw_with(arguments, |_| {})
    }

    /// The same, with settings of the process.
    pub(crate) fn raw_with(
        &self,
        arguments: &[&str],
        set: impl FnOnce(&mut Command),
    ) -> (String, String) {
        let mut command = self.command(arguments);
        set(&mut command);
        let output = command.output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    }

    pub(crate) fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.env("IDEMPOTENT_STORE", &self.url).args(arguments);
        if let Some(prefix) = &self.prefix {
            command.args(["--prefix", prefix]);
        }
        let changes = ["settle", "resume", "undo", "invalidate", "sequence"];
        if self.url.starts_with("redis") && changes.contains(&arguments[0]) {
            command.args(["--audit-retention", "0s"]);
        }
        command
    }
}

/// The program, without a store.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idempotent"));
    command
        .env_remove("IDEMPOTENT_STORE")
        .env_remove("COLUMNS")
        .env("USER", "anna");
    command
}

async fn cancel(_: Undo<String>) -> Result<(), Error> {
    Ok(())
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            assert!(!text.contains(PASSWORD), "it shows the password: {text}");
            named(&text)
        };
        Self {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Output, errors and exit code, for a comparison.
    pub(crate) fn all(&self) -> String {
        let lines = self.out.lines().map(|line| in_order(line) + "\n");
        let out: String = lines.collect();
        format!("{out}{}exit code {}\n", self.err, self.code)
    }
}

/// A line with the fields of JSON in the order of their names: a feature of another crate's sets
/// the order in which they are written.
fn in_order(line: &str) -> String {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields: BTreeMap<_, _> = fields.into_iter().collect();
                let fields = fields.into_iter().map(|(name, it)| (name, sorted(it)));
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.into_iter().map(sorted).collect(),
            value => value,
        }
    }
    match serde_json::from_str(line) {
        Ok(value @ Value::Object(_)) => sorted(value).to_string(),
        _ => line.to_owned(),
    }
}

/// A text in which what differs from run to run has a name, and columns have one width.
fn named(text: &str) -> String {
    let names = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b\d+[smhd] ago", "AGO"),
        (r"\bin \d+[smhd]\b", "SOON"),
        (r"\b\d+[smhd]\b", "AGE"),
        (r"anna@\S+", "anna@HOST"),
        (
            r#"(version"?:? *"?|version is )[0-9a-f]{32}"#,
            "${1}VERSION",
        ),
        (r"--after \S+", "--after CURSOR"),
        (r" {2,}", "  "),
    ];
    names
        .into_iter()
        .fold(text.to_owned(), |text, (pattern, name)| {
            let pattern = Regex::new(pattern).expect("a pattern");
            pattern.replace_all(&text, name).into_owned()
        })
}

/// Makes a test of each function for every store.
macro_rules! on_every_store {
    ($($test:ident)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::shop::Shop::sqlite().await).await;
            })*
        }
        $crate::shop::on_every_store! { postgres: $($test)* }
        $crate::shop::on_every_store! { mariadb: $($test)* }
        $crate::shop::on_every_store! { redis: $($test)* }
        $crate::shop::on_every_store! { cluster: $($test)* }
    };
    ($store:ident: $($test:ident)*) => {
        mod $store {
            $(#[tokio::test]
            #[ignore = "needs servers: cargo xtask test"]
            async fn $test() {
                super::$test($crate::shop::Shop::$store().await).await;
            })*
        }
    };
}
pub(crate) use on_every_store;

//! The promises that an upgrade of the schema has to keep, for the migrator of every dialect.
//! Another process brings the tables to the next release's version while this one goes on.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use tokio::{
    sync::{Barrier, oneshot, watch},
    task::JoinSet,
};

use super::super::{TablePrefix, Value, chosen, version::SchemaStep};
use crate::{
    error::Error,
    handle::Idempotency,
    policy::OnCrash,
    store::{StepStore, Store, StoreError, StoreErrorKind},
};

/// How many processes of the next release start at once.
const STARTS: usize = 8;
/// How many steps this release has.
pub(super) const KNOWN: i64 = 3;
const CALLERS: u32 = 4;
/// How often each caller goes on after the upgrade.
const AFTER: u32 = 20;

/// A dialect whose tables are upgraded to those of releases that have more steps.
pub(crate) trait Upgrade: Send + Sync + 'static {
    type Store: Store + StepStore + Clone + 'static;

    /// Starts a process of this release.
    fn open(&self) -> impl Future<Output = Result<Self::Store, StoreError>>;
    /// Whether this release can use the tables.
    fn check(&self, store: &Self::Store) -> impl Future<Output = Result<(), StoreError>>;
    /// Migrates as a start of a later release does, which has these steps behind ours.
    ///
    /// It waits for the others when it is connected.
    fn upgrade(
        &self,
        later: Vec<SchemaStep>,
        others: &Barrier,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Makes the tables of an earlier build, which has so many steps.
    fn begin(&self, steps: usize) -> impl Future<Output = ()>;
    /// Sends a statement of the [build before this one](super::earlier).
    fn write(&self, statement: &str, values: Vec<Value<'_>>) -> impl Future<Output = ()>;
    /// The one number that a query gives.
    fn count(&self, rows: String) -> impl Future<Output = i64>;
    fn prefix(&self) -> &TablePrefix;
}

/// A running call goes on and is recorded, a recorded one is replayed, and an uncertain one stays
/// so. A process of this release that is up goes on. A process that starts afterwards goes on if
/// the next release leaves it room, and is refused if a later one does not.
pub(crate) async fn keeps_every_record(next: impl Upgrade) {
    let next = Arc::new(next);
    let store = next.open().await.expect("a first start");
    let idem = Idempotency::new(store.clone());
    let runs = Arc::new(AtomicU32::new(0));
    for key in 0..50 {
        assert_eq!(charge(&idem, key, &runs).await.ok(), Some(key));
    }
    let unknown = |idem: &Idempotency| {
        let call = idem.call("unknown").key("k").on_crash(OnCrash::Uncertain);
        call.run(async |_| -> Result<(), Error> { panic!("a planned panic") })
    };
    let lost = tokio::spawn(unknown(&idem));
    assert!(lost.await.is_err_and(|ended| ended.is_panic()));
    let ((begun, has_begun), (open, opened)) = (oneshot::channel(), oneshot::channel());
    let long = {
        let idem = idem.clone();
        tokio::spawn(async move {
            let body = async |_| {
                begun.send(()).expect("the test waits");
                opened.await.expect("the test lives");
                Ok::<_, Error>(7)
            };
            idem.call("long").key("k").run(body).await
        })
    };
    has_begun.await.expect("the body runs");
    let (upgraded, is_upgraded) = watch::channel(false);
    let callers: Vec<_> = (1..=CALLERS)
        .map(|caller| {
            let (idem, runs, is_upgraded) = (idem.clone(), Arc::clone(&runs), is_upgraded.clone());
            tokio::spawn(async move {
                let (mut made, mut after) = (0, 0);
                while after < AFTER {
                    after += u32::from(*is_upgraded.borrow());
                    let key = caller * 1_000_000 + made;
                    made += 1;
                    for key in [key, key, made % 50] {
                        assert_eq!(charge(&idem, key, &runs).await.expect("an answer"), key);
                    }
                }
                made
            })
        })
        .collect();

    let step = SchemaStep {
        text: format!(
            "ALTER TABLE {}records ADD COLUMN added INTEGER NOT NULL DEFAULT 7;\n",
            next.prefix()
        ),
        usable_from: 1,
    };
    let others = Arc::new(Barrier::new(STARTS));
    let mut starts = JoinSet::new();
    for _ in 0..STARTS {
        let (next, step, others) = (Arc::clone(&next), step.clone(), Arc::clone(&others));
        starts.spawn(async move { next.upgrade(vec![step], &others).await });
    }
    for start in starts.join_all().await {
        start.expect("every start succeeds");
    }
    upgraded.send_replace(true);

    let mut expected = 50;
    for caller in callers {
        expected += caller.await.expect("every call is answered");
    }
    open.send(()).expect("the body waits");
    assert_eq!(long.await.expect("no panic").ok(), Some(7));
    let other = Idempotency::new(store.clone());
    for key in 0..50 {
        assert_eq!(charge(&other, key, &runs).await.ok(), Some(key));
    }
    assert_eq!(runs.load(Ordering::SeqCst), expected, "each body ran once");
    let answer = unknown(&other).await;
    assert!(matches!(answer, Err(Error::Uncertain { .. })), "{answer:?}");

    let table = next.prefix();
    let rows = next.count(format!(
        "SELECT count(*) FROM {table}records WHERE added = 7"
    ));
    assert_eq!(rows.await, i64::from(expected) + 2, "every record is there");
    let versions = next.count(format!("SELECT count(*) FROM {table}schema"));
    assert_eq!(versions.await, KNOWN + 1, "each step is applied once");
    next.check(&store).await.expect("it was left room");
    let begins = next.open().await.expect("it was left room");
    let begins = Idempotency::new(begins);
    assert_eq!(charge(&begins, u32::MAX, &runs).await.ok(), Some(u32::MAX));

    // The last step leaves room for builds that the step before it has shut out.
    let adds = SchemaStep {
        text: step.text.replace("added", "added_again"),
        ..step
    };
    let later = vec![step, renames(next.prefix()), adds];
    let alone = Barrier::new(1);
    let upgraded = next.upgrade(later, &alone).await;
    upgraded.expect("nobody else has the table");
    for refused in [next.check(&store).await, next.open().await.map(drop)] {
        let kind = refused.map_err(|error| error.kind());
        let why = "a newer release wrote it for its own builds";
        assert_eq!(kind, Err(StoreErrorKind::Schema), "{why}");
    }
}

/// A step after which builds of ours no longer find their columns.
fn renames(prefix: &TablePrefix) -> SchemaStep {
    SchemaStep {
        text: format!("ALTER TABLE {prefix}records RENAME COLUMN holder TO label;\n"),
        usable_from: KNOWN + 2,
    }
}

pub(crate) fn prefix() -> TablePrefix {
    let prefix = format!("t{:016x}_", rand::random::<u64>());
    chosen(&prefix, "beginning a test").expect("a prefix")
}

/// A call that counts the runs of its body.
async fn charge(idem: &Idempotency, key: u32, runs: &AtomicU32) -> Result<u32, Error> {
    let call = idem.call("charge").key(&key);
    call.run(async |_| {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok(key)
    })
    .await
}

/// Makes the test of a dialect whose server a variable names, beside its migrator.
#[cfg(any(feature = "mysql", feature = "postgres"))]
macro_rules! upgrades_on_a_server {
    ($store:ty, $database:ty, $variable:literal, |$spelled:pat_param| $spell:expr) => {
        fn url_of_server() -> String {
            std::env::var($variable).expect(concat!(
                $variable,
                " is not set: `cargo xtask test` starts it"
            ))
        }

        struct Next {
            url: String,
            prefix: TablePrefix,
        }

        impl Next {
            fn at(url: String) -> Self {
                let prefix = upgrade::prefix();
                Self { url, prefix }
            }

            async fn connection(&self) -> <$database as sqlx::Database>::Connection {
                type Connected = <$database as sqlx::Database>::Connection;
                let connected = <Connected as sqlx::Connection>::connect(&self.url).await;
                connected.expect("the server answers")
            }
        }

        impl upgrade::Upgrade for Next {
            type Store = $store;

            async fn open(&self) -> Result<$store, StoreError> {
                let builder = <$store>::builder().table_prefix(&self.prefix.to_string());
                builder.connect(&self.url).await
            }

            async fn check(&self, store: &$store) -> Result<(), StoreError> {
                store.check_schema().await
            }

            async fn upgrade(
                &self,
                later: Vec<SchemaStep>,
                others: &Barrier,
            ) -> Result<(), StoreError> {
                let mut connection = self.connection().await;
                let steps = [<$database>::steps(&self.prefix).as_slice(), &later].concat();
                others.wait().await;
                <$database>::migrate_by(&steps, &mut connection, &self.prefix).await
            }

            async fn begin(&self, steps: usize) {
                let mut connection = self.connection().await;
                let steps = &<$database>::steps(&self.prefix)[..steps];
                let begun = <$database>::migrate_by(steps, &mut connection, &self.prefix).await;
                begun.expect("the first steps are taken");
            }

            async fn write(&self, statement: &str, values: Vec<Value<'_>>) {
                let golden = include_str!("tests/golden/statements_of_step_2.sql");
                let (text, rest) = earlier::statement(golden, statement, &self.prefix);
                let mut connection = self.connection().await;
                let $spelled = (text, rest, &values[..]);
                let sent = <$database>::send(&mut connection, $spell).await;
                sent.expect("the tables are those that it knows");
            }

            async fn count(&self, rows: String) -> i64 {
                let counted = <$database>::send(&mut self.connection().await, rows).await;
                counted.expect("an answer")[0].get(0)
            }

            fn prefix(&self) -> &TablePrefix {
                &self.prefix
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "needs a server: cargo xtask test"]
        async fn an_upgrade_under_traffic_keeps_every_record() {
            upgrade::keeps_every_record(Next::at(url_of_server())).await;
        }

        #[tokio::test]
        #[ignore = "needs a server: cargo xtask test"]
        async fn f27_the_build_before_works_beside_this_one() {
            earlier::works_beside_this_build(Next::at(url_of_server())).await;
        }
    };
}
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use upgrades_on_a_server;

//! The same call on both sides: one step, which adds one to the number of an order.

use std::sync::atomic::{AtomicU64, Ordering};

use dbos::{Config, DBOS, RunOptions, WorkflowRef};
use idempotent_runtime::{Error, Idempotency, step, store::PostgresStore};
use sqlx::{AssertSqlSafe, PgPool};

/// How many connections either side may hold: one for each of the 16 callers, and a few for what
/// runs beside the calls, such as the listener of DBOS. The manual of DBOS shows this number; its
/// default is 10, as ours is.
const CONNECTIONS: u32 = 20;

/// One side of the comparison.
pub trait Side: Clone + Send + Sync + 'static {
    /// Makes a call with a fresh key, and waits for its result.
    fn call(&self) -> impl Future<Output = ()> + Send;

    /// How many calls stand as done on the server, and how many steps.
    fn recorded(&self, pool: &PgPool) -> impl Future<Output = (i64, i64)> + Send;
}

/// A handle over a Postgres store, with its defaults but for the number of connections.
#[derive(Clone)]
pub struct Ours {
    idem: Idempotency,
    name: String,
}

/// An instance of DBOS with one workflow.
#[derive(Clone)]
pub struct Theirs {
    dbos: DBOS,
    workflow: WorkflowRef<u64, u64>,
    schema: String,
}

impl Ours {
    pub async fn connect(url: &str, name: &str) -> Self {
        let store = PostgresStore::builder()
            .table_prefix(&format!("{name}_"))
            .max_connections(CONNECTIONS)
            .connect(url)
            .await;
        Self {
            idem: Idempotency::new(store.expect("the server answers")),
            name: name.to_owned(),
        }
    }
}

impl Side for Ours {
    async fn call(&self) {
        let order = fresh();
        let result = self
            .idem
            .call("peers")
            .key(&key(order))
            .arguments(&order)
            .run(async move |_| step("charge", async |_| Ok::<_, Error>(order + 1)).await);
        assert_eq!(result.await.expect("an answer"), order + 1);
    }

    async fn recorded(&self, pool: &PgPool) -> (i64, i64) {
        let Self { name, .. } = self;
        let calls = format!("SELECT count(*) FROM {name}_records WHERE finished IS NOT NULL");
        let steps = format!("SELECT count(*) FROM {name}_steps");
        (count(pool, calls).await, count(pool, steps).await)
    }
}

impl Theirs {
    /// The defaults of [`Config::new`], but for the number of connections and for a schema of its
    /// own. So it listens to notifications, recovers, and looks for work in its queues once a
    /// second, as it does in production. No logs are taken.
    pub async fn launch(url: &str, name: &str) -> Self {
        let dbos = DBOS::new(Config {
            app_version: Some("1".to_owned()),
            max_connections: CONNECTIONS,
            schema: name.to_owned(),
            ..Config::new("peers", url)
        });
        let workflow = dbos.register_workflow("peers", async |order: u64| {
            dbos::step("charge", async || Ok(order + 1)).await
        });
        let workflow = workflow.expect("a fresh registry");
        dbos.launch().await.expect("the server answers");
        Self {
            dbos,
            workflow,
            schema: name.to_owned(),
        }
    }

    pub async fn shut_down(&self) {
        self.dbos.shutdown().await;
    }
}

impl Side for Theirs {
    /// Runs the workflow in this process, which is the fastest way: the result comes from the task
    /// and not from the database. A workflow in a queue is looked for once a second.
    async fn call(&self) {
        let order = fresh();
        let id = key(order);
        let options = RunOptions {
            workflow_id: Some(&id),
            ..RunOptions::default()
        };
        let result = self.workflow.run_with(order, options);
        assert_eq!(result.await.expect("an answer"), order + 1);
    }

    async fn recorded(&self, pool: &PgPool) -> (i64, i64) {
        let Self { schema, .. } = self;
        let calls =
            format!("SELECT count(*) FROM {schema}.workflow_status WHERE status = 'SUCCESS'");
        let steps = format!("SELECT count(*) FROM {schema}.operation_outputs");
        (count(pool, calls).await, count(pool, steps).await)
    }
}

/// Drops what either side made under this name.
pub async fn clean_up(pool: &PgPool, name: &str) {
    let tables = "SELECT format('%I', tablename) FROM pg_tables
         WHERE schemaname = current_schema() AND starts_with(tablename, $1)";
    let tables: Vec<String> = sqlx::query_scalar(tables)
        .bind(name)
        .fetch_all(pool)
        .await
        .expect("the tables of ours");
    let tables = tables
        .into_iter()
        .map(|table| format!("DROP TABLE {table}"));
    let schema = format!("DROP SCHEMA IF EXISTS {name} CASCADE");
    for statement in tables.chain([schema]) {
        let dropped = sqlx::query(AssertSqlSafe(statement)).execute(pool).await;
        dropped.expect("nothing else uses it");
    }
}

async fn count(pool: &PgPool, statement: String) -> i64 {
    let counted = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(pool);
    counted.await.expect("a number")
}

/// A number that no order has had.
fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn key(order: u64) -> String {
    format!("order-{order}")
}

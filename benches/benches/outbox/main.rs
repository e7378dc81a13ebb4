//! The outbox: the cost of `send` with a key beside one without and beside the bare row, the
//! throughput of a relay, and the designs that lose messages or their order.
//! `IDEMPOTENT_TEST_POSTGRES_URL` and `IDEMPOTENT_TEST_MARIADB_URL` say where the servers are.

#![allow(clippy::print_stdout, reason = "figures for people are its purpose")]

mod designs;
mod relay;
mod send;

use idempotent_runtime::outbox::{Outbox, OutboxDatabase};
use sqlx::{
    AssertSqlSafe, MySql, Pool, Postgres, mysql::MySqlPoolOptions, postgres::PgPoolOptions,
};
use tokio::runtime::Runtime;

/// A database that is measured.
trait Measured: OutboxDatabase {
    const NAME: &'static str;
    /// The type of an id that the database counts.
    const SERIAL: &'static str;

    fn run(
        connection: &mut Self::Connection,
        text: String,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Numbers, row by row.
    fn numbers(
        connection: &mut Self::Connection,
        text: String,
    ) -> impl Future<Output = Result<Vec<Vec<i64>>, sqlx::Error>> + Send;
}

macro_rules! measured {
    ($database:ident $name:literal $serial:literal) => {
        impl Measured for $database {
            const NAME: &'static str = $name;
            const SERIAL: &'static str = $serial;

            async fn run(
                connection: &mut <Self as sqlx::Database>::Connection,
                text: String,
            ) -> Result<(), sqlx::Error> {
                let run = sqlx::raw_sql(AssertSqlSafe(text)).execute(connection);
                run.await.map(drop)
            }

            async fn numbers(
                connection: &mut <Self as sqlx::Database>::Connection,
                text: String,
            ) -> Result<Vec<Vec<i64>>, sqlx::Error> {
                use sqlx::{Column as _, Row as _};
                let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(connection);
                let numbers = |row: &<$database as sqlx::Database>::Row| {
                    row.columns()
                        .iter()
                        .map(|it| row.get(it.ordinal()))
                        .collect()
                };
                Ok(rows.await?.iter().map(numbers).collect())
            }
        }
    };
}
measured!(Postgres "Postgres" "bigserial");
measured!(MySql "MariaDB" "bigint auto_increment");

/// The tables of the application, and an outbox beside them.
async fn tables<DB: Measured>(pool: &Pool<DB>) -> Outbox<DB> {
    let mut connection = pool.acquire().await.expect("a connection");
    let statements = [
        "DROP TABLE IF EXISTS bench_orders".to_owned(),
        format!(
            "CREATE TABLE bench_orders (id {} PRIMARY KEY, customer bigint NOT NULL)",
            DB::SERIAL
        ),
    ];
    for statement in statements {
        DB::run(&mut connection, statement).await.expect("a table");
    }
    for table in [
        "schema", "messages", "counters", "claims", "relays", "rejected", "history",
    ] {
        let drop = format!("DROP TABLE IF EXISTS bench_outbox_{table}");
        DB::run(&mut connection, drop).await.expect("it drops");
    }
    let outbox = Outbox::new(pool).prefix("bench_").expect("a prefix");
    outbox.migrate().await.expect("tables");
    outbox
}

fn measure<DB: Measured>(runtime: &Runtime, pool: &Pool<DB>) {
    send::measure(runtime, pool);
    relay::measure(runtime, pool);
    designs::measure(runtime, pool);
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    if let Some(url) = benches::server("IDEMPOTENT_TEST_POSTGRES_URL") {
        let pool = PgPoolOptions::new().max_connections(24);
        let pool = runtime.block_on(pool.connect(&url));
        measure(&runtime, &pool.expect("the server answers"));
    }
    if let Some(url) = benches::server("IDEMPOTENT_TEST_MARIADB_URL") {
        let pool = MySqlPoolOptions::new().max_connections(24);
        let pool = runtime.block_on(pool.connect(&url));
        measure(&runtime, &pool.expect("the server answers"));
    }
}

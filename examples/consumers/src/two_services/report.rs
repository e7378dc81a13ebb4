//! Compares the rows of both databases.

use std::process::ExitCode;

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    plan::{ORDERS, Service, Work, committed},
    run::{KILLS, Words},
};
use crate::{Failure, broker::Broker};

/// The figures that must be zero, each with the statement that counts it.
const WRONGS: [(&str, &str); 5] = [
    (
        "committed orders have no invoice",
        "SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM invoices
         WHERE (invoices.number, invoices.customer, invoices.cents) = (orders.number, orders.customer, orders.cents))",
    ),
    (
        "committed orders have more than one invoice",
        "SELECT count(*) FROM orders WHERE 1 < (SELECT count(*) FROM invoices
         WHERE invoices.number = orders.number)",
    ),
    (
        "invoices are of orders that were rolled back",
        "SELECT count(*) FROM invoices WHERE number NOT IN (SELECT number FROM orders)",
    ),
    (
        "invoices stand behind one of a later order of their customer",
        "SELECT count(*) FROM invoices WHERE EXISTS (SELECT 1 FROM invoices AS earlier
         WHERE earlier.customer = invoices.customer AND earlier.rowid < invoices.rowid
           AND earlier.number > invoices.number)",
    ),
    (
        "messages were not sent",
        "SELECT count(*) FROM idempotent_outbox_messages",
    ),
];

/// Prints the figures, and fails where one is wrong.
pub(super) async fn report<B: Broker>(work: &Work, words: &Words) -> Result<ExitCode, Failure> {
    let mut rows = open(work).await?;
    let orders = count(&mut rows, "SELECT count(*) FROM orders").await?;
    let invoices = count(&mut rows, "SELECT count(*) FROM invoices").await?;
    let said = |word: &str| words.get(word).copied().unwrap_or(0);
    let kills = [Service::Orders, Service::Invoices].map(|service| said(service.kill()));
    println!(
        "{ORDERS} orders, {} of them rolled back, went through {}, which was restarted {} times.",
        ORDERS - committed(),
        B::NAME,
        said("restarted")
    );
    println!(
        "The service of the orders was killed {} times, the one of the invoices {} times.\n",
        kills[0], kills[1]
    );
    println!("  orders        {orders:>5}");
    println!("  messages sent {:>5}", said("sent"));
    println!("  deliveries    {:>5}", said("delivered"));
    println!("  replays       {:>5}", said("replayed"));
    println!("  invoices      {invoices:>5}\n");
    let mut wrong = Vec::new();
    for (what, statement) in WRONGS {
        let found = count(&mut rows, statement).await?;
        if found > 0 {
            wrong.push(format!("{found} {what}"));
        }
    }
    let planned = committed();
    if orders != planned {
        wrong.push(format!("{orders} orders are committed, not {planned}"));
    }
    if kills != [KILLS; 2] || said("restarted") != 1 {
        wrong.push("there were not all kills and the restart of the plan".to_owned());
    }
    for wrong in &wrong {
        println!("WRONG: {wrong}.");
    }
    if wrong.is_empty() {
        println!("Each committed order has one invoice, in the order of its customer's orders.");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Opens both databases as one.
async fn open(work: &Work) -> Result<SqliteConnection, Failure> {
    let orders = SqliteConnectOptions::new().filename(work.file(Service::Orders));
    let mut rows = SqliteConnection::connect_with(&orders).await?;
    let invoices = work.file(Service::Invoices);
    let invoices = invoices.to_str().ok_or("the folder's name is no text")?;
    let attach = sqlx::query("ATTACH DATABASE ? AS invoicing").bind(invoices);
    attach.execute(&mut rows).await?;
    Ok(rows)
}

async fn count(rows: &mut SqliteConnection, statement: &'static str) -> Result<u32, sqlx::Error> {
    sqlx::query_scalar(statement).fetch_one(rows).await
}

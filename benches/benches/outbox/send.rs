//! What a message costs in a transaction that writes an order.

use benches::{
    Ratios,
    calls::{fresh, spread},
};
use idempotent_runtime::outbox::{Message, Outbox};
use sqlx::Pool;
use tokio::runtime::Runtime;

use crate::{Measured, tables};

/// Each task has so many customers of its own, so that no key is contended.
const CUSTOMERS: u64 = 20;

struct Side<DB: Measured>(Pool<DB>, Outbox<DB>);

impl<DB: Measured> Clone for Side<DB> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1.clone())
    }
}

fn payload(id: u64) -> String {
    format!("{{\"order\":{id},\"text\":\"{}\"}}", "a".repeat(200))
}

fn customer(task: usize, id: u64) -> u64 {
    task as u64 * CUSTOMERS + id % CUSTOMERS
}

async fn place<DB: Measured>(pool: &Pool<DB>, customer: u64) -> sqlx::Transaction<'static, DB> {
    let mut tx = pool.begin().await.expect("it begins");
    let order = format!("INSERT INTO bench_orders (customer) VALUES ({customer})");
    DB::run(&mut tx, order).await.expect("it is written");
    tx
}

async fn bare<DB: Measured>(Side(pool, _): Side<DB>, task: usize) {
    let tx = place(&pool, customer(task, fresh())).await;
    tx.commit().await.expect("it commits");
}

async fn unnumbered<DB: Measured>(Side(pool, _): Side<DB>, task: usize)
where
    DB: Measured,
{
    let id = fresh();
    let customer = customer(task, id);
    let mut tx = place(&pool, customer).await;
    let insert = format!(
        "INSERT INTO bench_unnumbered (message_id, message_key, topic, payload)
         VALUES ('{id}-{}', 'customer-{customer}', 'orders.placed', '{}')",
        std::process::id(),
        payload(id)
    );
    DB::run(&mut tx, insert).await.expect("it is written");
    tx.commit().await.expect("it commits");
}

async fn sent<DB: Measured>(Side(pool, outbox): Side<DB>, task: usize) {
    let id = fresh();
    let customer = customer(task, id);
    let mut tx = place(&pool, customer).await;
    let message = Message::raw("orders.placed", payload(id)).key(&format!("customer-{customer}"));
    outbox.send(&mut tx, message).await.expect("it is written");
    tx.commit().await.expect("it commits");
}

pub(crate) fn measure<DB: Measured>(runtime: &Runtime, pool: &Pool<DB>) {
    let outbox = runtime.block_on(tables(pool));
    let side = Side(pool.clone(), outbox);
    for (other, is_bare) in [
        ("an insert without a number", false),
        ("the order alone", true),
    ] {
        let mut ratios = Ratios::new("`send` in a transaction that writes an order", other);
        for tasks in [1, 16] {
            let name = format!("{}, {tasks} at once", <DB as Measured>::NAME);
            let ours = spread(runtime, tasks, &side, sent::<DB>);
            match is_bare {
                true => ratios.time(name, 320, ours, spread(runtime, tasks, &side, bare::<DB>)),
                false => ratios.time(
                    name,
                    320,
                    ours,
                    spread(runtime, tasks, &side, unnumbered::<DB>),
                ),
            }
        }
        ratios.print();
    }
}

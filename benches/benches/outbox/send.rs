//! The cost of a message in a transaction that writes an order.

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

/// Writes an order, and sends so many messages: of its customer, or of none.
async fn place<DB: Measured>(Side(pool, outbox): Side<DB>, task: usize, keys: &[bool]) {
    let id = fresh();
    let customer = task as u64 * CUSTOMERS + id % CUSTOMERS;
    let mut tx = pool.begin().await.expect("it begins");
    let order = format!("INSERT INTO bench_orders (customer) VALUES ({customer})");
    DB::run(&mut tx, order).await.expect("it is written");
    for has_key in keys {
        let payload = format!("{{\"order\":{id},\"text\":\"{}\"}}", "a".repeat(200));
        let mut message = Message::raw("orders.placed", payload);
        if *has_key {
            message = message.key(&format!("customer-{customer}"));
        }
        outbox.send(&mut tx, message).await.expect("it is written");
    }
    tx.commit().await.expect("it commits");
}

async fn bare<DB: Measured>(side: Side<DB>, task: usize) {
    place(side, task, &[]).await;
}

async fn unnumbered<DB: Measured>(side: Side<DB>, task: usize) {
    place(side, task, &[false]).await;
}

async fn numbered<DB: Measured>(side: Side<DB>, task: usize) {
    place(side, task, &[true]).await;
}

pub(crate) fn measure<DB: Measured>(runtime: &Runtime, pool: &Pool<DB>) {
    let outbox = runtime.block_on(tables(pool));
    let side = Side(pool.clone(), outbox);
    for (other, is_bare) in [("`send` without a key", false), ("the order alone", true)] {
        let mut ratios = Ratios::new("`send` with a key, beside an order", other);
        for tasks in [1, 16] {
            let name = format!("{}, {tasks} at once", <DB as Measured>::NAME);
            let ours = spread(runtime, tasks, &side, numbered::<DB>);
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

//! How many messages a relay gives away in a second, to a publisher that confirms at once.

use std::time::{Duration, Instant};

use idempotent_runtime::outbox::{Envelope, Message, Outbox, PublishError, Publisher};
use sqlx::Pool;
use tokio::runtime::Runtime;

use crate::{Measured, tables};

const KEYS: usize = 1_000;
const EACH: usize = 20;

struct ConfirmsAtOnce;

impl Publisher for ConfirmsAtOnce {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        vec![Ok(()); batch.len()]
    }
}

async fn fill<DB: Measured>(pool: &Pool<DB>, outbox: &Outbox<DB>) {
    let payload = "a".repeat(1024);
    for _ in 0..EACH {
        let mut tx = pool.begin().await.expect("it begins");
        let messages = (0..KEYS).map(|key| {
            Message::raw("orders.placed", payload.clone()).key(&format!("customer-{key}"))
        });
        let sent = outbox.send_all(&mut tx, messages).await;
        sent.expect("they are written");
        tx.commit().await.expect("it commits");
    }
}

pub(crate) fn measure<DB: Measured>(runtime: &Runtime, pool: &Pool<DB>) {
    let outbox = runtime.block_on(tables(pool));
    let mut rates = Vec::new();
    for _ in 0..5 {
        runtime.block_on(fill(pool, &outbox));
        // The relay has one core.
        let one = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let took = one.expect("a runtime").block_on(async {
            let began = Instant::now();
            let relay = outbox.relay(ConfirmsAtOnce).start().await;
            let relay = relay.expect("it starts");
            let own = Pool::<DB>::connect_lazy_with((*pool.connect_options()).clone());
            let mut connection = own.acquire().await.expect("a connection");
            loop {
                let count =
                    "SELECT count(*) FROM (SELECT 1 FROM bench_outbox_messages LIMIT 1) AS first";
                let count = DB::numbers(&mut connection, count.to_owned()).await;
                if count.expect("it counts") == [[0]] {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let took = began.elapsed();
            relay.stop().await;
            took
        });
        rates.push((KEYS * EACH) as f64 / took.as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "\n| relay on {}, {KEYS} keys, 1 KiB | messages a second |\n|---|---:|\n| median of 5 | {:.0} |\n",
        <DB as Measured>::NAME,
        rates[rates.len() / 2]
    );
}

//! The cost of metrics: a replay on the memory store by a handle with an observer and a recorder
//! of Prometheus, beside the same by a handle without.

#![allow(clippy::print_stdout, reason = "a figure for people is its purpose")]

use std::{hint::black_box, time::Instant};

use benches::Ratios;
use idempotent_runtime::{Error, Idempotency, MemoryStore, metrics::MetricsObserver};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::runtime::Runtime;

/// How many calls a round has.
const CALLS: u32 = 20_000;

/// Makes so many calls of one key, of which all but the first one are replays.
fn replay(runtime: &Runtime, idem: &Idempotency, calls: u32) {
    runtime.block_on(async {
        for _ in 0..calls {
            let call = idem.call("bench.charge").key(&7_u64);
            let answer = call.run(async |_| Ok::<u64, Error>(1)).await;
            black_box(answer).expect("a replay");
        }
    });
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let builder = PrometheusBuilder::new().set_buckets(MetricsObserver::buckets());
    let recorder = builder.expect("there are bounds").build_recorder();
    let scrape = recorder.handle();
    let with = Idempotency::builder(MemoryStore::new())
        .observer(MetricsObserver::with_recorder(recorder))
        .build()
        .expect("a handle");
    let without = Idempotency::memory();
    if !benches::is_measuring() {
        replay(&runtime, &with, 2);
        replay(&runtime, &without, 2);
        return;
    }
    let timed = |idem: &Idempotency| {
        let began = Instant::now();
        replay(&runtime, idem, CALLS);
        began.elapsed() / CALLS
    };
    let rounds = (0..=Ratios::TURNS).map(|_| {
        let round = (timed(&with), timed(&without));
        // The exporter does this in a thread of its own.
        scrape.run_upkeep();
        round
    });
    let mut ratios = Ratios::new("with metrics", "a handle without an observer");
    // The first round warms up.
    ratios.add("replay", rounds.skip(1).collect());
    ratios.print();
}

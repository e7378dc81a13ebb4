//! The cost of a call on the memory store, beside a memoised function of the `cached` crate: the
//! same arguments, the same result, the same run.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use benches::Ratios;
use cached::cached;
use criterion::{BatchSize, Criterion, criterion_group};
use idempotent_runtime::{Error, Idempotency, fingerprint::Arguments, idempotent};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Receipt {
    id: u64,
    text: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
enum PayError {
    #[error(transparent)]
    Idempotency(#[from] Error),
}

#[idempotent(name = "bench.charge", key = order)]
async fn charge(order: u64, memo: String) -> Result<Receipt, PayError> {
    Ok(Receipt {
        id: order,
        text: format!("{} bytes", memo.len()),
    })
}

#[cached]
async fn memoised(order: u64, memo: String) -> Receipt {
    Receipt {
        id: order,
        text: format!("{} bytes", memo.len()),
    }
}

static NEXT: AtomicU64 = AtomicU64::new(1_000);

fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn calls(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let memo = "m".repeat(200);
    let mut replay = c.benchmark_group("replay");
    replay.bench_function("idempotent", |b| {
        b.to_async(&runtime).iter_batched(
            || memo.clone(),
            |memo| async { black_box(charge(1, memo).await) },
            BatchSize::SmallInput,
        );
    });
    replay.bench_function("cached", |b| {
        b.to_async(&runtime).iter_batched(
            || memo.clone(),
            |memo| async { black_box(memoised(1, memo).await) },
            BatchSize::SmallInput,
        );
    });
    replay.finish();

    let mut first = c.benchmark_group("first call");
    first.bench_function("idempotent", |b| {
        b.to_async(&runtime).iter_batched(
            || (fresh(), memo.clone()),
            |(order, memo)| async move { black_box(charge(order, memo).await) },
            BatchSize::SmallInput,
        );
    });
    first.bench_function("cached", |b| {
        b.to_async(&runtime).iter_batched(
            || (fresh(), memo.clone()),
            |(order, memo)| async move { black_box(memoised(order, memo).await) },
            BatchSize::SmallInput,
        );
    });
    first.finish();
}

fn fingerprint(c: &mut Criterion) {
    let memo = "m".repeat(200);
    let bytes = vec![b'm'; 230];
    let mut group = c.benchmark_group("fingerprint");
    group.bench_function("idempotent", |b| {
        b.iter(|| {
            let mut arguments = Arguments::new();
            arguments.argument("order", black_box(&1_u64));
            arguments.argument("memo", black_box(&memo));
            arguments.finish(None).expect("arguments").fingerprint()
        });
    });
    group.bench_function("sha-256", |b| b.iter(|| Sha256::digest(black_box(&bytes))));
    group.finish();
}

/// The same again, with the two sides in turns, so that other work of the machine slows both.
fn ratios() -> Ratios {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let memo = "m".repeat(200);
    let arguments = || {
        let mut arguments = Arguments::new();
        arguments.argument("order", black_box(&1_u64));
        arguments.argument("memo", black_box(&memo));
        arguments.finish(None).expect("arguments").fingerprint()
    };
    let bytes = vec![b'm'; 230];
    let mut ratios = Ratios::new("memory store", "`#[cached]`, or SHA-256");
    ratios.time(
        "replay",
        20_000,
        |calls| {
            runtime.block_on(async {
                for _ in 0..calls {
                    black_box(charge(1, memo.clone()).await).expect("a replay");
                }
            });
        },
        |calls| {
            runtime.block_on(async {
                for _ in 0..calls {
                    black_box(memoised(1, memo.clone()).await);
                }
            });
        },
    );
    ratios.time(
        "first call",
        5_000,
        |calls| {
            runtime.block_on(async {
                for _ in 0..calls {
                    black_box(charge(fresh(), memo.clone()).await).expect("a first call");
                }
            });
        },
        |calls| {
            runtime.block_on(async {
                for _ in 0..calls {
                    black_box(memoised(fresh(), memo.clone()).await);
                }
            });
        },
    );
    ratios.time(
        "fingerprint of 230 bytes",
        50_000,
        |calls| {
            for _ in 0..calls {
                black_box(arguments());
            }
        },
        |calls| {
            for _ in 0..calls {
                black_box(Sha256::digest(black_box(&bytes)));
            }
        },
    );
    ratios
}

criterion_group!(benches, calls, fingerprint);

fn main() {
    Idempotency::memory()
        .install()
        .expect("nothing is installed yet");
    // This runs before the others, which leave millions of records behind.
    let ratios = benches::is_measuring().then(ratios);
    benches();
    Criterion::default().configure_from_args().final_summary();
    if let Some(ratios) = ratios {
        ratios.print();
    }
}

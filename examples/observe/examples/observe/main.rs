//! A service under load that shows what it did. It meets duplicates, a process that is killed, and
//! a store that is away. At the end it reads its own metrics over HTTP, and compares them with what
//! it knows that it did: where a count differs, it exits with 1.
//!
//! It works for two rounds; with `--for SECONDS`, for so long, so that a Prometheus can watch it.

mod load;
mod page;
mod remote;

use std::{
    env,
    process::ExitCode,
    time::{Duration, Instant},
};

use idempotent_runtime::{
    BoxError, Idempotency, metrics::MetricsObserver, outbox::Outbox, store::SqliteStore,
    testing::FaultyStore,
};
use load::Service;
use metrics_exporter_prometheus::PrometheusBuilder;
use remote::Remote;
use sqlx::SqlitePool;

/// The variable by which this program starts itself once more, to be killed in a body.
const KILLED: &str = "OBSERVE_KILLED_OVER";

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    if let Some(file) = env::var_os(KILLED) {
        return load::be_killed(&file).await;
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("observe.db");

    // The recorder comes first: what is counted before it is there is lost.
    let prometheus = PrometheusBuilder::new()
        .with_recommended_naming(true)
        .set_buckets(MetricsObserver::buckets())?
        .install_recorder()?;
    let sqlite = SqliteStore::open(&file).await?;
    let store = FaultyStore::new(sqlite.clone());
    let idem = Idempotency::builder(store.clone())
        .observer(MetricsObserver::new())
        .build()?;
    // The faults are for the calls: the sampler writes its turn to the store behind them.
    let sampling = Idempotency::builder(sqlite)
        .observer(MetricsObserver::new())
        .build()?;
    let pool = SqlitePool::connect(&format!("sqlite:{}", file.display())).await?;
    let outbox = Outbox::sqlite(pool.clone());
    outbox.migrate().await?;
    let sampler = sampling.sampler().outbox(&outbox).every("200ms").start()?;
    let remote = Remote::start().await?;
    let open_calls = remote.keys.sample(Duration::from_millis(200));
    let address = page::serve(prometheus).await?;
    println!("The metrics are at http://{address}/metrics");

    let service = Service {
        idem,
        store,
        pool,
        outbox,
        file,
    };
    service.prepare().await?;
    let (until, mut rounds) = (Instant::now() + work_for(), 0);
    while rounds < 2 || Instant::now() < until {
        rounds += 1;
        service.round(rounds).await?;
        remote.round(rounds).await?;
    }
    let is_right = page::compare(address, &expected(rounds, &remote)).await?;
    drop(open_calls);
    sampler.stop().await;
    Ok(if is_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the samples that the metrics must show after so many rounds.
fn expected(rounds: u32, remote: &Remote) -> Vec<(String, f64)> {
    let server = format!(r#"server="http://{}""#, remote.address);
    let client = [
        (format!(r#"calls_total{{{server},outcome="answered"}}"#), 1),
        (format!(r#"calls_total{{{server},outcome="unknown"}}"#), 1),
        (format!(r#"attempts_total{{{server},result="lost"}}"#), 3),
        (format!(r#"attempts_total{{{server},result="2xx"}}"#), 1),
        (format!("resends_total{{{server}}}"), 2),
        ("open_calls".to_owned(), 1),
    ];
    let client = client.map(|(sample, count)| {
        (
            format!("idempotent_client_{sample}"),
            f64::from(count * rounds),
        )
    });
    let mut all = load::expected(rounds);
    all.extend(client);
    all
}

fn work_for() -> Duration {
    let mut arguments = env::args().skip_while(|it| it != "--for").skip(1);
    let seconds = arguments.next().and_then(|it| it.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

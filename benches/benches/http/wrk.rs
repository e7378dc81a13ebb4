//! The same services, loaded by `wrk`: two threads, 64 connections, which send a request as soon as
//! they have the answer.

use std::{io, net::SocketAddr, process::Command, time::Duration};

use axum::Router;
use benches::Ratios;
use idempotent_runtime::Idempotency;
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use super::{CONNECTIONS, bare, connect, layered, request, same, serve};

/// How often each service is loaded, for a second.
const ROUNDS: u32 = 15;

/// Every request is a retry of the same one.
const REPLAYS: &str = r#"
wrk.method, wrk.body = "POST", string.rep("x", 200)
wrk.headers["idempotency-key"] = '"order-0"'
"#;

/// Every request has a key of its own.
const FRESH_KEYS: &str = r#"
local threads = 0
function setup(thread)
    thread:set("id", threads)
    threads = threads + 1
end
function init()
    body, sent = string.rep("x", 200), 0
end
function request()
    sent = sent + 1
    return wrk.format("POST", nil, { ["idempotency-key"] = string.format('"order-%d-%d"', id, sent) }, body)
end
"#;

/// Prints how the services compare under `wrk`, where that is installed.
pub(crate) fn compare(runtime: &Runtime) {
    match Command::new("wrk").arg("--version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return benches::hint("`wrk` is not installed, so it is not asked");
        }
        asked => drop(asked.expect("`wrk` starts")),
    }
    let mut ratios = Ratios::new("axum under `wrk`, 64 connections", "without the layer");
    for (name, script) in [("replay", REPLAYS), ("fresh key", FRESH_KEYS)] {
        let load = |app: Router| load(runtime, app, script);
        let round = |_| (load(layered(Idempotency::memory())), load(bare()));
        // The first round warms up.
        let rounds: Vec<_> = (0..=ROUNDS).map(round).skip(1).collect();
        ratios.add(name, rounds);
    }
    ratios.print();
}

/// Loads a service for a second, which is then over, and gives the time for each request.
fn load(runtime: &Runtime, app: Router, script: &str) -> Duration {
    let (address, serving) = runtime.block_on(async {
        let (address, serving) = serve(app).await;
        // The key of the replays has its outcome before the first of them.
        request(&mut connect(address).await, same()).await;
        (address, serving)
    });
    let file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(&file, script).expect("a script");
    let each = requests(address, &file);
    serving.abort();
    each
}

fn requests(address: SocketAddr, script: &NamedTempFile) -> Duration {
    let ran = Command::new("wrk")
        .args(["--threads=2", "--duration=1s"])
        .arg(format!("--connections={CONNECTIONS}"))
        .arg("--script")
        .arg(script.path())
        .arg(format!("http://{address}/charges"))
        .output()
        .expect("`wrk` runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    let went_wrong = ["Non-2xx", "Socket errors"];
    assert!(!went_wrong.iter().any(|line| said.contains(line)), "{said}");
    let a_second = said
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    Duration::from_secs(1).div_f64(a_second.expect("`wrk` says how many requests it sent"))
}

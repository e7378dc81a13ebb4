//! A Redis Cluster of three primaries, each with a replica.

use std::io;

use super::{Ending, Start, part::Part, redis::Wire};

const NODES: usize = 6;

const SETTINGS: [&str; 6] = [
    "--cluster-enabled",
    "yes",
    // A failover is waited for in tests.
    "--cluster-node-timeout",
    "2000",
    "--repl-diskless-sync-delay",
    "0",
];

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    joined(start, &Wire::plain(start)?)
}

/// Starts one whose nodes encrypt what they say, to clients and to each other.
pub(super) fn start_encrypted(start: &Start<'_>) -> io::Result<String> {
    joined(start, &Wire::encrypted(start)?)
}

fn joined(start: &Start<'_>, wire: &Wire) -> io::Result<String> {
    let mut ports = Vec::new();
    for node in 0..NODES {
        let part = start.part(&format!("{}-{node}", start.name), Ending::Kill)?;
        ports.push(wire.serve(start, &part, &SETTINGS)?);
    }

    let part = start.part(start.name, Ending::Kill)?;
    part.run(
        wire.client(&part)
            .args(["--cluster", "create"])
            .args(ports.iter().map(|port| format!("127.0.0.1:{port}")))
            .args(["--cluster-replicas", "1", "--cluster-yes"]),
    )?;
    part.until("not every node is ready", || {
        Ok(ports.iter().all(|&port| is_ready(wire, &part, port)))
    })?;
    let urls: Vec<String> = ports.iter().map(|&port| wire.url(port)).collect();
    Ok(urls.join(","))
}

/// A primary counts when its replica follows it, a replica when it follows.
fn is_ready(wire: &Wire, part: &Part<'_>, port: u16) -> bool {
    wire.says(part, port, &["CLUSTER", "INFO"], &["cluster_state:ok"])
        && wire.says(
            part,
            port,
            &["INFO", "replication"],
            &["state=online", "master_link_status:up"],
        )
}

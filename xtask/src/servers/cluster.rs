//! A Redis Cluster of three primaries, each with a replica.

use std::io;

use super::{Ending, Start, find, redis};

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
    let mut ports = Vec::new();
    for node in 0..NODES {
        let part = start.part(&format!("redis-node-{node}"), Ending::Kill)?;
        ports.push(redis::serve(start, &part, &SETTINGS)?);
    }

    let part = start.part("redis-cluster", Ending::Kill)?;
    let client = find::beside(start.program, "redis-cli")
        .ok_or_else(|| io::Error::other("`redis-cli` is not there"))?;
    part.run(
        part.command(&client)
            .args(["--cluster", "create"])
            .args(ports.iter().map(|port| format!("127.0.0.1:{port}")))
            .args(["--cluster-replicas", "1", "--cluster-yes"]),
    )?;
    part.until("not every node is ready", || {
        Ok(ports.iter().all(|&port| is_ready(port)))
    })?;
    Ok(urls(&ports))
}

/// A primary counts when its replica follows it, a replica when it follows.
fn is_ready(port: u16) -> bool {
    redis::says(port, "CLUSTER INFO", &["cluster_state:ok"])
        && redis::says(
            port,
            "INFO replication",
            &["state=online", "master_link_status:up"],
        )
}

fn urls(ports: &[u16]) -> String {
    let urls: Vec<String> = ports.iter().copied().map(redis::url).collect();
    urls.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_all_nodes_are_said() {
        assert_eq!(
            urls(&[7000, 7001]),
            "redis://127.0.0.1:7000,redis://127.0.0.1:7001"
        );
    }
}

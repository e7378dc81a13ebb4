//! The nodes of a Redis or Valkey server, or of a cluster.

use redis::{Client, RedisResult, aio::MultiplexedConnection};

use super::{Findings, Grade};

pub(super) async fn examine(nodes: &[String], findings: &mut Findings) {
    for node in nodes {
        match connect(node).await {
            Ok(mut connection) => look(&mut connection, findings).await,
            Err(error) => findings.unseen("node", &error),
        }
    }
}

async fn connect(node: &str) -> RedisResult<MultiplexedConnection> {
    let client = Client::open(node)?;
    client.get_multiplexed_async_connection().await
}

async fn look(connection: &mut MultiplexedConnection, findings: &mut Findings) {
    let info: RedisResult<String> = redis::cmd("INFO").query_async(connection).await;
    let info = match info {
        Ok(info) => info,
        Err(error) => return findings.unseen("server", &error),
    };
    let field = |name: &str| {
        let line = |line: &str| {
            Some(
                line.strip_prefix(name)?
                    .strip_prefix(':')?
                    .trim()
                    .to_owned(),
            )
        };
        info.lines().find_map(line).unwrap_or_default()
    };
    let version = [field("valkey_version"), field("redis_version")];
    let version = version.into_iter().find(|it| !it.is_empty());
    findings.fine("version", version.unwrap_or_else(|| "unknown".to_owned()));
    let eviction = field("maxmemory_policy");
    findings.check(
        eviction == "noeviction",
        ("eviction", eviction.clone()),
        (
            Grade::Serious,
            "the server may delete records while they bind calls: set `maxmemory-policy noeviction`",
        ),
    );
    let persists = field("aof_enabled") == "1";
    findings.check(
        persists,
        (
            "persistence",
            if persists {
                "append only"
            } else {
                "no append-only file"
            }
            .to_owned(),
        ),
        (
            Grade::Hint,
            "a restart forgets records: set `appendonly yes`, or accept that calls may run again",
        ),
    );
    let replicas = field("connected_slaves");
    findings.check(
        field("role") != "master" || replicas != "0",
        ("replicas", format!("{} with {replicas}", field("role"))),
        (
            Grade::Hint,
            "no other node has the records if this one is lost",
        ),
    );
    let bytes = field("used_memory").parse().unwrap_or(0);
    super::sql::tell_size(bytes, findings);
}

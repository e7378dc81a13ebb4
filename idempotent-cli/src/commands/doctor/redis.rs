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
        Ok(info) => Info(info),
        Err(error) => return findings.unseen("server", &error),
    };
    let version = [info.field("valkey_version"), info.field("redis_version")];
    let version = version.into_iter().find(|it| !it.is_empty());
    findings.fine("version", version.unwrap_or_else(|| "unknown".to_owned()));
    memory(&info, findings);
    copies(&info, findings);
    let bytes = info.field("used_memory").parse().unwrap_or(0);
    super::sql::tell_size(bytes, findings);
}

/// The answer to `INFO`.
struct Info(String);

impl Info {
    /// A field; empty where there is none.
    fn field(&self, name: &str) -> String {
        let of = |line: &str| {
            Some(
                line.strip_prefix(name)?
                    .strip_prefix(':')?
                    .trim()
                    .to_owned(),
            )
        };
        self.0.lines().find_map(of).unwrap_or_default()
    }
}

fn memory(info: &Info, findings: &mut Findings) {
    let eviction = info.field("maxmemory_policy");
    findings.check(
        eviction == "noeviction",
        ("eviction", eviction.clone()),
        (
            Grade::Serious,
            "the server may delete records while they bind calls: set `maxmemory-policy noeviction`",
        ),
    );
}

fn copies(info: &Info, findings: &mut Findings) {
    let (persists, role) = (info.field("aof_enabled") == "1", info.field("role"));
    let found = if persists {
        "append only"
    } else {
        "no append-only file"
    };
    findings.check(
        persists,
        ("persistence", found.to_owned()),
        (
            Grade::Hint,
            "a restart forgets records: set `appendonly yes`, or accept that calls may run again",
        ),
    );
    let replicas = info.field("connected_slaves");
    findings.check(
        role != "master" || replicas != "0",
        ("replicas", format!("{role} with {replicas}")),
        (
            Grade::Hint,
            "no other node has the records if this one is lost",
        ),
    );
}

//! How a server describes itself, and what it would lose.

use super::link::{Link, Replicas};
use crate::store::{StoreError, StoreErrorKind};

/// The lowest version in which every command of the scripts has the meaning they rely on.
const LEAST: u32 = 7;

/// Why a server cannot be used, or not for what was asked.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("this is no Redis or Valkey server, or it does not say its version")]
    Unknown,
    #[error(
        "the server is a node of a cluster: use `connect_cluster`, with the feature `redis-cluster`"
    )]
    Node,
    #[error("the server has version {0}, take {LEAST} or newer")]
    Old(String),
    #[error(
        "the server evicts records when memory is short (`maxmemory-policy {0}`), which at most once does not survive: set `noeviction`"
    )]
    Evicts(String),
    #[error(
        "the server keeps no append-only file, so a restart forgets what ran: set `appendonly yes`"
    )]
    Forgets,
}

/// A claim whose body may not run twice, on a server that may forget that it ran.
#[derive(Debug, thiserror::Error)]
#[error(
    "Redis can forget a write that it acknowledged, and the body would run again: take `on_crash = rerun`, another store, or `accept_at_most_once_until_failover()` on the builder"
)]
pub(super) struct Forgetful;

/// Looks at every server before anything is written.
pub(super) async fn check(
    link: &Link,
    at_most_once: bool,
    doing: &'static str,
) -> Result<(), StoreError> {
    // A replica may be the primary tomorrow; one that is down today keeps no call from working by
    // lease.
    let replicas = if at_most_once {
        Replicas::Too
    } else {
        Replicas::Not
    };
    let said = match link.info(replicas, doing).await {
        // A user that may not look can still claim by lease.
        Err(error) if error.kind() == StoreErrorKind::Denied && !at_most_once => return Ok(()),
        said => said?,
    };
    for said in &said {
        let fit = match value(said, "cluster_enabled") {
            Some("1") if !link.is_to_cluster() => Err(Unfit::Node),
            _ => fit(said, at_most_once),
        };
        fit.map_err(|unfit| {
            StoreError::new(StoreErrorKind::Configuration, doing).with_source(unfit)
        })?;
    }
    Ok(())
}

fn fit(said: &str, at_most_once: bool) -> Result<(), Unfit> {
    let version = value(said, "redis_version").ok_or(Unfit::Unknown)?;
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    if major.ok_or(Unfit::Unknown)? < LEAST {
        return Err(Unfit::Old(version.to_owned()));
    }
    let policy = value(said, "maxmemory_policy").unwrap_or("unknown");
    if !at_most_once {
        if policy.starts_with("allkeys") {
            tracing::warn!(
                policy,
                "this server evicts records that are running when memory is short, and their bodies run again: set `maxmemory-policy noeviction`"
            );
        }
        return Ok(());
    }
    if policy != "noeviction" {
        return Err(Unfit::Evicts(policy.to_owned()));
    }
    if value(said, "aof_enabled") != Some("1") {
        return Err(Unfit::Forgets);
    }
    Ok(())
}

fn value<'a>(said: &'a str, name: &str) -> Option<&'a str> {
    said.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: &str, policy: &str, appends: &str) -> String {
        format!(
            "# Server\r\nredis_version:{version}\r\nmaxmemory_policy:{policy}\r\naof_enabled:{appends}\r\n"
        )
    }

    #[test]
    fn f30_at_most_once_needs_a_server_that_does_not_forget_by_itself() {
        assert!(fit(&said("7.0.15", "noeviction", "1"), true).is_ok());
        for (policy, appends) in [
            ("allkeys-lru", "1"),
            ("volatile-ttl", "1"),
            ("noeviction", "0"),
        ] {
            let said = said("8.2.0", policy, appends);
            assert!(fit(&said, true).is_err(), "{policy} {appends}");
            assert!(fit(&said, false).is_ok(), "{policy} {appends}");
        }
        assert!(
            fit("redis_version:7.2.4\r\n", true).is_err(),
            "what is not said is not promised"
        );
    }

    #[test]
    fn an_old_or_another_server_is_refused() {
        for other in [
            "",
            "PostgreSQL",
            "redis_version:6.2.14\r\n",
            "redis_version:x\r\n",
        ] {
            assert!(fit(other, false).is_err(), "{other}");
        }
    }
}

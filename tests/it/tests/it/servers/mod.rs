//! The stores that need a server. `cargo xtask test` starts the servers and says in the environment
//! where they are; a plain `cargo test` ignores these tests, and says so.

mod alone;
mod cancelled;
mod costs;
mod crowds;
mod cuts;
pub(crate) mod distance;
mod interruptions;
mod isolation;
mod limits;
mod many;
mod mariadb;
mod neighbours;
mod postgres;
mod purges;
mod redis;
mod restarts;
mod seen;
mod spare;
pub(crate) mod together;
mod traffic;
mod unpolled;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{store::Store, testing::conformance::StoreUnderTest};

pub(crate) use self::{
    mariadb::MariaDb,
    postgres::Postgres,
    redis::{Redis, RedisCluster},
    spare::{Product, Spare},
};

/// A server, and what a client of it is told.
#[async_trait]
pub(crate) trait Server: StoreUnderTest {
    /// The address that it listens at.
    fn address(&self) -> SocketAddr;

    /// A client that finds the server at another address, and may open so many connections.
    async fn at(&self, address: SocketAddr, connections: u32) -> Arc<dyn Store>;

    /// The round trips of a first call, and of a replay.
    fn round_trips(&self) -> (u64, u64);
}

/// Makes a test of each of these on each server.
macro_rules! on_every_server {
    ($($test:ident),* $(,)?) => {
        on_every_server! { @on postgres (crate::servers::Postgres::new) [$($test)*] }
        on_every_server! { @on mariadb (crate::servers::MariaDb::new) [$($test)*] }
        on_every_server! { @on mariadb_or_mysql (crate::servers::MariaDb::or_mysql) [$($test)*] }
        on_every_server! { @on redis (crate::servers::Redis::new) [$($test)*] }
    };
    (@on $name:ident ($new:path) [$($test:ident)*]) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "needs a server: cargo xtask test"]
                async fn $test() {
                    let server = $new().await;
                    crate::harness::in_time(super::$test(server)).await;
                }
            )*
        }
    };
}
use on_every_server;

/// The URL of a server.
///
/// # Panics
///
/// If the variable is not set: a store whose server is missing is a failure.
pub(crate) fn url(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: `cargo xtask test` starts the servers, `cargo xtask servers` only starts them")
    })
}

/// The address in a URL.
pub(crate) fn address(url: &str) -> SocketAddr {
    let (_, behind) = url.split_once("://").expect("a URL has a scheme");
    let (authority, _) = behind.split_once('/').unwrap_or((behind, ""));
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let addresses = std::net::ToSocketAddrs::to_socket_addrs(host);
    let first = addresses.expect("the URL names host and port").next();
    first.expect("the host has an address")
}

/// The same URL with another address.
pub(crate) fn url_at(url: &str, other: SocketAddr) -> String {
    url.replace(&address(url).to_string(), &other.to_string())
}

/// Takes time away from every record. The clock is the server's, and cannot be moved.
/// In one transaction, because a write of a step that is under way takes its life from the record.
fn ageing(prefix: &str, by: Duration) -> String {
    let by = by.as_micros();
    format!(
        "BEGIN;
         UPDATE {prefix}records SET lease_end = lease_end - {by}, created = created - {by},
                finished = finished - {by}, expires = expires - {by},
                purge_from = CASE purge_from WHEN 9223372036854775807 THEN purge_from ELSE purge_from - {by} END;
         UPDATE {prefix}steps SET life = life - {by};
         COMMIT"
    )
}

/// Tables of its own for each test.
pub(crate) fn prefix() -> String {
    format!("t{:016x}_", rand::random::<u64>())
}

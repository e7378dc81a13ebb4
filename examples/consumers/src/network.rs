//! Connections that can be cut.

use std::net::SocketAddr;

use idempotent_runtime::testing::Proxy;

use crate::Failure;

/// Something between a consumer and its broker that can cut connections, and the address through
/// it.
pub async fn between(url: &str) -> Result<(Proxy, String), Failure> {
    let (_, rest) = url.split_once("://").ok_or("the address has no scheme")?;
    let rest = rest
        .split_once('/')
        .map_or(rest, |(authority, _)| authority);
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let mut addresses = tokio::net::lookup_host(host).await?;
    let address: SocketAddr = addresses.next().ok_or("the broker has no address")?;
    let proxy = Proxy::to(address).await?;
    let through = url.replacen(host, &proxy.address().to_string(), 1);
    Ok((proxy, through))
}

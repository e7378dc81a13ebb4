//! The source of connections.

#[cfg(feature = "redis-cluster")]
use std::sync::Arc;
use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, Cmd, RedisResult, Value,
    aio::{ConnectionManager, MultiplexedConnection},
};
#[cfg(feature = "redis-cluster")]
use redis::{
    RedisError,
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    cluster_routing::{RoutingInfo, SingleNodeRoutingInfo},
};

use super::Node;
#[cfg(feature = "redis-cluster")]
use crate::store::{StoreErrorKind, redis::failure};

/// The source of connections.
#[derive(Clone)]
pub(in crate::store::redis) enum Source {
    /// Made by us, each store its own.
    Server(Client),
    /// Made by us, to the nodes of a cluster.
    #[cfg(feature = "redis-cluster")]
    Cluster {
        client: Box<ClusterClient>,
        /// The nodes that it begins with; empty if only the client knows them.
        places: Arc<[Client]>,
    },
    /// The application's, and all that there is.
    Given(Line),
}

/// A connection. Clones are the same one.
#[derive(Clone)]
pub(in crate::store::redis) enum Line {
    Own(MultiplexedConnection),
    Managed(ConnectionManager),
    #[cfg(feature = "redis-cluster")]
    Cluster(ClusterConnection),
}

/// How long a connection and an answer may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct Limits {
    pub(in crate::store::redis) connect: Duration,
    pub(in crate::store::redis) answer: Duration,
}

impl Source {
    pub(super) async fn connect(&self, limits: Limits) -> RedisResult<Line> {
        match self {
            Source::Server(client) => own(client, limits).await.map(Line::Own),
            #[cfg(feature = "redis-cluster")]
            Source::Cluster { client, places } => match client.get_async_connection().await {
                Ok(connection) => Ok(Line::Cluster(connection)),
                Err(error) => Err(refusal(places, limits).await.unwrap_or(error)),
            },
            Source::Given(line) => Ok(line.clone()),
        }
    }
}

/// How many commands may stand in line for a connection: more than there are calls. If a call has
/// to wait for room there and is not polled, the room that it gets at last is lost to all.
const LONGEST_LINE: usize = 1 << 16;

/// Makes a connection to one server.
async fn own(client: &Client, limits: Limits) -> RedisResult<MultiplexedConnection> {
    // Answers are limited elsewhere, because what is late must also end the connection.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limits.connect))
        .set_response_timeout(None)
        .set_pipeline_buffer_size(LONGEST_LINE);
    let making = client.get_multiplexed_async_connection_with_config(&config);
    making.await
}

/// The reason why a node refuses every connection at any time. For a cluster the driver tells that
/// as text, so each node is asked.
#[cfg(feature = "redis-cluster")]
async fn refusal(places: &[Client], limits: Limits) -> Option<RedisError> {
    for place in places {
        if let Err(error) = own(place, limits).await
            && failure::kind_while_opening(&error) == StoreErrorKind::Configuration
        {
            return Some(error);
        }
    }
    None
}

impl Line {
    pub(super) async fn send(&mut self, command: &Cmd, node: &Node) -> RedisResult<Value> {
        match (self, node) {
            (Line::Own(connection), _) => command.query_async(connection).await,
            (Line::Managed(connection), _) => command.query_async(connection).await,
            #[cfg(feature = "redis-cluster")]
            (Line::Cluster(connection), Node::Only) => command.query_async(connection).await,
            #[cfg(feature = "redis-cluster")]
            (Line::Cluster(connection), Node::At { host, port }) => {
                let (host, port) = (host.clone(), *port);
                let routing =
                    RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress { host, port });
                connection
                    .route_command(command.clone(), routing)
                    .await?
                    .extract_error()
            }
        }
    }
}

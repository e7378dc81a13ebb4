//! How a store's connections are, as the store itself knows it.

use std::time::Duration;

/// The facts that a store knows of its connections. [`Store::health`](super::Store::health) returns
/// it; a store of one's own may know nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// The connections on which calls load and write records; `None` where the store has no pool,
    /// as in memory, on SQLite and on Redis. Heartbeats have others.
    pub connections: Option<ConnectionUse>,
    /// The connection on which the server says that records moved; `None` where there is no such
    /// thing.
    pub listener: Option<ListenerHealth>,
}

/// How many connections of a pool are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionUse {
    /// How many a call has at this moment.
    pub in_use: u32,
    /// How many there may be.
    pub limit: u32,
}

/// How the listener of a store is. It listens only while a call waits for another one, and 30
/// seconds longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerHealth {
    /// Whether it hears the server at this moment. Where it does not, calls that wait look by
    /// themselves.
    pub is_live: bool,
    /// How long ago the server's last notice came; `None` where none has come yet.
    pub last_notice: Option<Duration>,
}

impl StoreHealth {
    /// The health of a store with these.
    #[must_use]
    pub const fn of(connections: Option<ConnectionUse>, listener: Option<ListenerHealth>) -> Self {
        Self {
            connections,
            listener,
        }
    }
}

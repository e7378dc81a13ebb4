//! How a Redis store is set up.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use redis::{Client, aio::ConnectionManager};
#[cfg(feature = "redis-cluster")]
use redis::{cluster::ClusterClient, cluster_async::ClusterConnection};

use super::{
    Inner, RedisStore, durability, failure,
    link::{Limits, Line, Link, Source},
    prefix::KeyPrefix,
    scripts::Scripts,
    shared::SharedLooks,
};
use crate::{
    store::{StoreError, StoreErrorKind},
    value::setters,
};

const DOING: &str = "setting up the store";

/// Sets up a [`RedisStore`].
///
/// # Examples
///
/// ```no_run
/// # use std::time::Duration;
/// # use idempotent_runtime::store::RedisStore;
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::builder()
///     .key_prefix("billing:")
///     .answer_timeout(Duration::from_secs(5))
///     .connect("redis://:secret@localhost/1")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisBuilder {
    prefix: Result<KeyPrefix, StoreError>,
    limits: Limits,
    at_most_once: bool,
}

impl RedisBuilder {
    pub(super) fn new() -> Self {
        Self {
            prefix: Ok(KeyPrefix::default()),
            limits: Limits {
                connect: Duration::from_secs(5),
                answer: Duration::from_secs(10),
            },
            at_most_once: false,
        }
    }

    setters! {
        /// Sets how the store's keys begin, and the name of its channel: `idempotent:` unless set.
        /// One to 64 ASCII letters, digits and `:`, `.`, `_`, `-`, `/`; anything else is refused
        /// when the store is made. Nothing else may have such keys: the store takes a hash by one
        /// of them, with 64 hexadecimal digits behind, for a record of its own.
        key_prefix(it, prefix: &str) {
            it.prefix = KeyPrefix::new(prefix).map_err(|unusable| {
                StoreError::new(StoreErrorKind::Configuration, DOING).with_source(unusable)
            });
        }

        /// Sets how long a call waits for a connection to be made: five seconds unless set. Then
        /// the error is of the kind [`StoreErrorKind::Unavailable`].
        connect_timeout(it, connect_timeout: Duration) { it.limits.connect = connect_timeout }

        /// Sets how long an answer may take: ten seconds unless set. Then the error is of the kind
        /// [`StoreErrorKind::Unavailable`], and the connection is made anew. A client or connection
        /// of the application's may set a shorter limit of its own, which then counts for it; the
        /// driver's is half a second.
        answer_timeout(it, answer_timeout: Duration) { it.limits.answer = answer_timeout }

        /// Allows calls with `on_crash = uncertain` and `reconcile`, whose bodies must not run
        /// twice, and accepts that they do if Redis forgets: see [what it can
        /// lose](RedisStore#what-redis-can-lose). Without this setting such a call is refused with
        /// [`StoreErrorKind::Configuration`], before anything is written or run.
        ///
        /// The store then looks at every server when it is made, and refuses one that forgets by
        /// itself: it must say `maxmemory-policy noeviction` and `appendonly yes`. Set `appendfsync
        /// always`, too, which it does not tell: with `everysec`, a server that is killed forgets
        /// what it answered in its last second. With all of these, the only danger left is the
        /// failover.
        accept_at_most_once_until_failover(it) { it.at_most_once = true }
    }

    /// Connects to the server that a URL names, such as `redis://user:password@host:6379/0`,
    /// `rediss://…` for TLS, or `redis+unix:///path`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`] for an option that cannot be used, a wrong password, a
    /// certificate that is not trusted, a server that is neither Valkey nor Redis 7 or newer, or
    /// one that is refused for [at most once](Self::accept_at_most_once_until_failover);
    /// [`StoreErrorKind::Unavailable`] where no server answers in time.
    pub async fn connect(self, url: &str) -> Result<RedisStore, StoreError> {
        let client = Client::open(url).map_err(|error| failure::of(error, DOING))?;
        self.client(client).await
    }

    /// Makes connections of the store's own with the application's client.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn client(self, client: Client) -> Result<RedisStore, StoreError> {
        self.over(Source::Server(client.clone()), [client].into())
            .await
    }

    /// Uses a connection of the application's, and makes none.
    ///
    /// The store then lacks two things that a connection of its own gives. Heartbeats share this
    /// one, which is driven by the runtime that made it: a body that blocks that runtime for longer
    /// than its lease loses the lease. And nothing listens: a call that waits for one in another
    /// process looks again and again, every 5 ms at first and every 500 ms at last. Prefer
    /// [`client`](Self::client).
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connection(self, connection: ConnectionManager) -> Result<RedisStore, StoreError> {
        self.over(Source::Given(Line::Managed(connection)), Arc::default())
            .await
    }

    /// Connects to a cluster, of which the URLs name some nodes.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    #[cfg(feature = "redis-cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-cluster")))]
    pub async fn connect_cluster<U: AsRef<str>>(
        self,
        urls: impl IntoIterator<Item = U>,
    ) -> Result<RedisStore, StoreError> {
        let urls: Vec<_> = urls
            .into_iter()
            .map(|url| url.as_ref().to_owned())
            .collect();
        let made = urls
            .iter()
            .map(|url| Client::open(url.as_str()))
            .collect::<Result<_, _>>();
        let places: Arc<[Client]> = made.map_err(|error| failure::of(error, DOING))?;
        let client = ClusterClient::builder(urls)
            .connection_timeout(self.limits.connect)
            .response_timeout(self.limits.answer)
            .overall_response_timeout(Some(self.limits.answer))
            .min_retry_wait(10)
            .max_retry_wait(500)
            .build()
            .map_err(|error| failure::of(error, DOING))?;
        let source = Source::Cluster {
            client: Box::new(client),
            places: Arc::clone(&places),
        };
        self.over(source, places).await
    }

    /// Makes connections of the store's own with the application's client of a cluster.
    ///
    /// The client does not say how to reach a node, so nothing listens. A call that waits for one
    /// in another process looks again and again, every 5 ms at first and every 500 ms at last.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), but a wrong password and a certificate that is not trusted
    /// are
    /// [`StoreErrorKind::Unavailable`]: the client tells them as text.
    #[cfg(feature = "redis-cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-cluster")))]
    pub async fn cluster_client(self, client: ClusterClient) -> Result<RedisStore, StoreError> {
        let source = Source::Cluster {
            client: Box::new(client),
            places: Arc::default(),
        };
        self.over(source, Arc::default()).await
    }

    /// Uses a connection to a cluster of the application's, and makes none: see
    /// [`connection`](Self::connection).
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    #[cfg(feature = "redis-cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "redis-cluster")))]
    pub async fn cluster_connection(
        self,
        connection: ClusterConnection,
    ) -> Result<RedisStore, StoreError> {
        self.over(Source::Given(Line::Cluster(connection)), Arc::default())
            .await
    }

    async fn over(self, source: Source, places: Arc<[Client]>) -> Result<RedisStore, StoreError> {
        let prefix = self.prefix?;
        #[cfg(any(
            feature = "tls-rustls-aws-lc-rs",
            feature = "tls-rustls-ring-native-roots",
            feature = "tls-rustls-ring-webpki"
        ))]
        super::encryption::choose(&places);
        let link = Link::new(source, self.limits);
        let checked = durability::check(&link, self.at_most_once, DOING).await;
        checked.map_err(|error| match &*places {
            [] => error,
            [server, ..] => error.at(server.get_connection_info().addr().to_string()),
        })?;
        let scripts = Scripts::new(link.is_to_cluster());
        Ok(RedisStore {
            inner: Arc::new(Inner {
                link: Arc::new(link),
                places,
                scripts: Arc::new(scripts),
                prefix,
                waiters: Arc::default(),
                listener: Arc::default(),
                versions: Arc::default(),
                looks: SharedLooks::new(),
                purged_to: Mutex::default(),
                at_most_once: self.at_most_once,
            }),
        })
    }
}

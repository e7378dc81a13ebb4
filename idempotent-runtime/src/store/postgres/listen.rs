//! Hears what `NOTIFY` tells.

use std::sync::Arc;

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::time::timeout;

use super::failure;
use crate::store::{
    StoreError,
    notifications::{Channel, HELLO},
    pool::{Limits, ServerPlace, limited},
    sql,
};

/// A channel of `LISTEN`.
pub(crate) struct Notifications {
    place: ServerPlace<PgConnectOptions>,
    limits: Limits,
    channel: Arc<str>,
    open: Option<Open>,
}

struct Open {
    listener: PgListener,
    /// One connection to listen, one to say hello.
    pool: PgPool,
}

const DOING: &str = "listening for notifications";

/// Tells a message on a channel.
pub(super) const TELL: &str = "SELECT pg_notify($1, $2)";

impl Notifications {
    pub(crate) fn of(
        channel: &Arc<str>,
        place: ServerPlace<PgConnectOptions>,
        limits: Limits,
    ) -> Self {
        Self {
            place,
            limits,
            channel: Arc::clone(channel),
            open: None,
        }
    }

    /// The answer of a statement, within the time that an answer may take.
    async fn answered<T>(
        &self,
        answer: impl Future<Output = sqlx::Result<T>>,
    ) -> Result<T, StoreError> {
        let answer = async { answer.await.map_err(|error| failure::of(error, DOING)) };
        limited(self.limits.answer, DOING, answer).await
    }
}

/// The place to which these options lead, without a password.
pub(crate) fn place(options: &PgConnectOptions) -> String {
    sql::url::place(
        options.get_username(),
        (options.get_host(), options.get_port()),
        options.get_socket(),
        options.get_database(),
    )
}

impl Channel for Notifications {
    type Error = StoreError;

    const WHEN_LOST: &str = "notifications get lost, so waiters and relays look by themselves; where a proxy pools transactions, say `transaction_pooling()` of the store or the outbox, or go past the proxy";

    fn place(&self) -> String {
        place(&self.place.options())
    }

    /// It opens a new pool each time. A listener takes leave in a task of the driver's. If the
    /// server hangs, that keeps one of the two connections for as long.
    async fn open(&mut self) -> Result<(), StoreError> {
        self.open = None;
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .acquire_timeout(self.limits.connect)
            .connect_lazy_with(self.place.options());
        let connecting = PgListener::connect_with(&pool).await;
        let mut listener = connecting.map_err(|error| failure::of(error, DOING))?;
        listener.eager_reconnect(false);
        self.answered(listener.listen(&self.channel)).await?;
        self.open = Some(Open { listener, pool });
        Ok(())
    }

    async fn hello(&mut self) -> Result<(), StoreError> {
        let Some(Open { pool, .. }) = &self.open else {
            return Ok(());
        };
        let acquiring = pool.acquire().await;
        let mut connection = acquiring.map_err(|error| failure::of(error, DOING))?;
        let hello = sqlx::query(TELL)
            .persistent(false)
            .bind(&*self.channel)
            .bind(HELLO);
        let said = self.answered(hello.execute(&mut *connection)).await;
        if said.is_err() {
            connection.close_on_drop();
        }
        said.map(drop)
    }

    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        match &mut self.open {
            Some(Open { listener, .. }) => {
                let told = listener.try_recv().await;
                let told = told.map_err(|error| failure::of(error, DOING))?;
                Ok(told.map(|told| told.payload().to_owned()))
            }
            None => Ok(None),
        }
    }

    async fn close(self) {
        let Some(Open { listener, pool }) = self.open else {
            return;
        };
        drop(listener);
        // If it is late, it is dropped, and its connections with it.
        let _ = timeout(self.limits.answer, pool.close()).await;
    }
}

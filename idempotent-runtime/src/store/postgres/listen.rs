//! Hears what `NOTIFY` tells.

use std::sync::Arc;

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};

use crate::store::listening::{Channel, HELLO};

/// A channel of `LISTEN`.
pub(super) struct Notifications {
    /// One connection to listen, one to say hello.
    pool: PgPool,
    channel: Arc<str>,
    listener: Option<PgListener>,
}

impl Notifications {
    pub(super) fn of(channel: &Arc<str>, options: PgConnectOptions) -> Self {
        Self {
            pool: PgPoolOptions::new()
                .max_connections(2)
                .connect_lazy_with(options),
            channel: Arc::clone(channel),
            listener: None,
        }
    }
}

impl Channel for Notifications {
    type Error = sqlx::Error;

    const WHEN_LOST: &str = "say `transaction_pooling()` where a proxy pools transactions";

    async fn open(&mut self) -> sqlx::Result<()> {
        self.listener = None;
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.eager_reconnect(false);
        listener.listen(&self.channel).await?;
        sqlx::query("SELECT pg_notify($1, $2)")
            .persistent(false)
            .bind(&*self.channel)
            .bind(HELLO)
            .execute(&self.pool)
            .await?;
        self.listener = Some(listener);
        Ok(())
    }

    async fn next(&mut self) -> sqlx::Result<Option<String>> {
        match &mut self.listener {
            Some(listener) => {
                let told = listener.try_recv().await?;
                Ok(told.map(|told| told.payload().to_owned()))
            }
            None => Ok(None),
        }
    }

    async fn close(mut self) {
        self.listener = None;
        self.pool.close().await;
    }
}

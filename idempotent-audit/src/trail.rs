//! A trail in one database: it is made, its older rows are found, and it is looked at.

use std::time::Duration;

use async_trait::async_trait;
use idempotent_runtime::{__audit::Row as _, StoreError, identity::RecordId};
use sqlx::{Connection as _, Pool, pool::PoolConnection};

use crate::{
    anchor::Anchor,
    asked::Asked,
    database::TrailDatabase,
    error::AuditError,
    event::{self, Event, NewEvent, WRITING},
    export::{Manifest, Write, export},
    migrate::migrate,
    names::Names,
    prune::{Pruned, prune},
    report::Report,
    seal::{anchor, seal_batch},
    source::Source,
    standing::{LOOKING, check, damaged, store_id},
    tables::{roles, script},
    timeline::{TimelineEntry, timeline},
    verify::{changeable_by, verify},
};

/// A trail, whatever its database.
#[async_trait]
pub(crate) trait Trail: Send + Sync {
    async fn migrate(&self, names: &Names) -> Result<(), AuditError>;
    /// Returns the id of the store.
    async fn check(&self, names: &Names) -> Result<String, AuditError>;
    async fn write(&self, names: &Names, event: &NewEvent<'_>) -> Result<(), AuditError>;
    /// The events with these names: all, or those of the last microseconds.
    async fn events(
        &self,
        names: &Names,
        events: &[&str],
        newest: Option<i64>,
    ) -> Result<Vec<Event>, AuditError>;
    /// The user who is logged in; `None` where there are no users.
    async fn user(&self) -> Result<Option<String>, AuditError>;
    async fn prune(&self, names: &Names, keep: Duration) -> Result<Pruned, AuditError>;
    /// Seals the entries of one batch, and returns how many there were.
    async fn seal(&self, names: &Names) -> Result<usize, AuditError>;
    async fn verify(&self, names: &Names, asked: &Asked) -> Result<Report, AuditError>;
    async fn changeable_by(&self, names: &Names) -> Result<Option<String>, AuditError>;
    /// The newest entries of a record.
    async fn timeline(
        &self,
        names: &Names,
        id: RecordId,
        limit: u32,
    ) -> Result<Vec<TimelineEntry>, AuditError>;
    async fn anchor(&self, names: &Names) -> Result<Option<Anchor>, AuditError>;
    async fn export(
        &self,
        names: &Names,
        asked: &Asked,
        write: Write<'_>,
    ) -> Result<Manifest, AuditError>;
    fn script(&self, names: &Names) -> String;
    fn roles(&self, names: &Names, application: &str, sealer: &str) -> String;
}

/// A trail that is reached through a pool.
pub(crate) struct Over<DB: sqlx::Database>(pub(crate) Pool<DB>);

#[async_trait]
impl<DB: TrailDatabase> Trail for Over<DB> {
    async fn migrate(&self, names: &Names) -> Result<(), AuditError> {
        let mut connection = self.connection().await?;
        migrate::<DB>(&mut connection, names).await
    }

    async fn check(&self, names: &Names) -> Result<String, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        check::<DB>(&mut connection, names).await?;
        store_id::<DB>(&mut connection, names).await
    }

    async fn write(&self, names: &Names, event: &NewEvent<'_>) -> Result<(), AuditError> {
        let failed = |error| DB::store_error(error, WRITING);
        let mut connection = self.connection().await?;
        let names = names.at(DB::place(&mut connection, names).await?);
        let insert = event::insert::<DB>(&names, event);
        in_a_task(async move {
            let mut transaction = connection.begin().await.map_err(failed)?;
            DB::query(&mut transaction, insert, WRITING).await?;
            transaction.commit().await.map_err(failed)?;
            Ok(())
        })
        .await
    }

    async fn events(
        &self,
        names: &Names,
        events: &[&str],
        newest: Option<i64>,
    ) -> Result<Vec<Event>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        Ok(event::named::<DB>(&mut connection, names, events, newest).await?)
    }

    async fn user(&self) -> Result<Option<String>, AuditError> {
        let mut connection = self.connection().await?;
        let look = format!("SELECT {}", DB::USER);
        let rows = DB::query(&mut connection, look, LOOKING).await?;
        let user = rows.first().map(|row| row.text(0));
        Ok(user.transpose().map_err(damaged)?.flatten())
    }

    async fn prune(&self, names: &Names, keep: Duration) -> Result<Pruned, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        // Dropped while it begins, it would go back to its pool within a transaction.
        connection.close_on_drop();
        prune::<DB>(&mut connection, names, keep).await
    }

    async fn seal(&self, names: &Names) -> Result<usize, AuditError> {
        let mut connection = self.connection().await?;
        let names = names.at(DB::place(&mut connection, names).await?);
        in_a_task(async move { seal_batch::<DB>(&mut connection, &names).await }).await
    }

    async fn verify(&self, names: &Names, asked: &Asked) -> Result<Report, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let store = store_id::<DB>(&mut connection, names).await?;
        if let Some(other) = asked.anchors.iter().find(|anchor| !anchor.is_of(&store)) {
            let origin = other.origin().to_owned();
            return Err(AuditError::OtherAnchor { origin });
        }
        verify::<DB>(&mut connection, names, asked).await
    }

    async fn changeable_by(&self, names: &Names) -> Result<Option<String>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        changeable_by::<DB>(&mut connection, names).await
    }

    async fn timeline(
        &self,
        names: &Names,
        id: RecordId,
        limit: u32,
    ) -> Result<Vec<TimelineEntry>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        Ok(timeline::<DB>(&mut connection, names, id, limit).await?)
    }

    async fn anchor(&self, names: &Names) -> Result<Option<Anchor>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let store = store_id::<DB>(&mut connection, names).await?;
        anchor::<DB>(&mut connection, names, &store).await
    }

    async fn export(
        &self,
        names: &Names,
        asked: &Asked,
        write: Write<'_>,
    ) -> Result<Manifest, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let store = store_id::<DB>(&mut connection, names).await?;
        let anchor = anchor::<DB>(&mut connection, names, &store).await?;
        export::<DB>(&mut connection, names, (asked, anchor), write).await
    }

    fn script(&self, names: &Names) -> String {
        let of_store = Source::ALL
            .into_iter()
            .filter(|source| !source.is_of_outbox());
        script::<DB>(names, &of_store.collect::<Vec<_>>())
    }

    fn roles(&self, names: &Names, application: &str, sealer: &str) -> String {
        DB::script(names, |names| roles::<DB>(names, (application, sealer)))
    }
}

impl<DB: TrailDatabase> Over<DB> {
    async fn connection(&self) -> Result<PoolConnection<DB>, StoreError> {
        let acquired = self.0.acquire().await;
        acquired.map_err(|error| DB::store_error(error, LOOKING))
    }
}

/// Carries out a transaction to its end. Dropped while it begins, its connection would go back to
/// the pool within it.
async fn in_a_task<T: Send + 'static>(
    transaction: impl Future<Output = Result<T, AuditError>> + Send + 'static,
) -> Result<T, AuditError> {
    let ended = tokio::spawn(transaction).await;
    ended.map_err(|error| damaged(error.into()))?
}

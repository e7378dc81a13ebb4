//! The front: an audit over a pool.

use std::{fmt, sync::Arc};

use idempotent_runtime::{
    __audit::{chosen, setters},
    StoreError,
};

use crate::{
    error::AuditError,
    names::Names,
    trail::{Over, Trail},
};

/// A trail that stands: its triggers are there, are enabled, and have the text of this build.
///
/// [`AuditBuilder::connect`] makes it.
#[derive(Clone)]
pub struct Audit {
    trail: Arc<dyn Trail>,
    names: Arc<Names>,
}

/// Sets up an audit of the records in a database.
#[must_use = "a builder does nothing until `migrate` or `connect` is called"]
pub struct AuditBuilder {
    trail: Arc<dyn Trail>,
    names: Result<Names, StoreError>,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AuditBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditBuilder")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Audit {
    /// Begins to set up the audit of the records in this Postgres database.
    #[cfg(feature = "postgres")]
    #[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
    pub fn postgres(pool: sqlx::PgPool) -> AuditBuilder {
        AuditBuilder::over(pool)
    }

    /// The same in MariaDB or MySQL.
    #[cfg(feature = "mysql")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
    pub fn mysql(pool: sqlx::MySqlPool) -> AuditBuilder {
        AuditBuilder::over(pool)
    }

    /// The same in a file of SQLite's.
    #[cfg(feature = "sqlite")]
    #[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
    pub fn sqlite(pool: sqlx::SqlitePool) -> AuditBuilder {
        AuditBuilder::over(pool)
    }

    /// Looks whether the trail still stands.
    ///
    /// # Errors
    ///
    /// As [`AuditBuilder::connect`].
    pub async fn check(&self) -> Result<(), AuditError> {
        self.trail.check(&self.names).await
    }
}

impl AuditBuilder {
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    fn over<DB: crate::database::TrailDatabase>(pool: sqlx::Pool<DB>) -> Self {
        Self {
            trail: Arc::new(Over(pool)),
            names: Ok(Names::default()),
        }
    }

    setters! {
        /// Sets the prefix of the tables: that of the store.
        table_prefix(it, prefix: &str) {
            let prefix = chosen(prefix, "setting up an audit");
            it.names = prefix.and_then(|prefix| {
                Ok(Names { prefix, ..it.names.clone()? })
            });
        }

        /// Keeps the bytes of outcomes, in a table of their own. Otherwise a trail has only their
        /// SHA-256.
        keep_outcomes(it) {
            if let Ok(names) = &mut it.names {
                names.keeps_outcomes = true;
            }
        }
    }

    /// Makes the tables and triggers of the trail, or brings them up to date, and writes an entry
    /// for each record that is older. Safe at every start, also of several processes at once.
    ///
    /// The user must own the tables of the store. The store's `migrate()` comes first, and that of
    /// an outbox, if there is one: run it again when an outbox is added later.
    ///
    /// No statement waits longer than two seconds for a lock. It is tried ten times, with a pause
    /// of a second between, so calls go on beside it. An entry for an older record waits for the
    /// call that writes the record at that moment, and the call for the entry.
    ///
    /// # Errors
    ///
    /// [`AuditError::NoRecords`] without the store's tables, [`AuditError::Locked`] if another
    /// transaction keeps a table for longer, [`AuditError::NeedsSuper`] where the server demands
    /// that right, [`AuditError::Store`] for every other failure.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it may have made a part of the trail. Called again, it goes on.
    pub async fn migrate(&self) -> Result<(), AuditError> {
        self.trail.migrate(&self.names.clone()?).await
    }

    /// The statements that [`migrate`](Self::migrate) runs for a store without an outbox, as a
    /// script for the client of the database. The entries of older records are written by
    /// `migrate` alone.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the prefix cannot begin the name of a table.
    pub fn ddl(&self) -> Result<String, AuditError> {
        Ok(self.trail.script(&self.names.clone()?))
    }

    /// Looks at the trail: its tables and triggers are there, are enabled, and have the text of
    /// this build.
    ///
    /// # Errors
    ///
    /// [`AuditError::Broken`] if anything of it is not, [`AuditError::NoRecords`] without the
    /// store's tables, [`AuditError::Store`] if the database does not answer.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn connect(self) -> Result<Audit, AuditError> {
        let names = self.names?;
        self.trail.check(&names).await?;
        Ok(Audit {
            trail: self.trail,
            names: Arc::new(names),
        })
    }
}

//! The front: an audit over a pool.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{
    __audit::{chosen, setters},
    AuditEvent, AuditTrail, BoxError, Error, IntoDuration, StoreError, StoreErrorKind, TrailState,
};

use crate::{
    anchor::Anchor,
    error::AuditError,
    event::NewEvent,
    names::Names,
    trail::{Over, Trail},
};

/// A trail that stands: its triggers are there, are enabled, and have the text of this build.
///
/// [`AuditBuilder::connect`] makes it.
#[derive(Clone)]
pub struct Audit {
    pub(crate) trail: Arc<dyn Trail>,
    pub(crate) names: Arc<Names>,
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

    /// Seals every entry that is open, batch after batch, and returns how many there were. None is
    /// sealed while another sealer is at it.
    ///
    /// An entry gets its place, each batch a tree over its entries, and the tree the hash of the
    /// batch before. An entry that a transaction commits late falls into a later batch.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer, or refuses a statement.
    ///
    /// # Cancel safety
    ///
    /// Each batch is sealed whole or not at all.
    pub async fn seal(&self) -> Result<u64, AuditError> {
        let mut sealed = 0;
        loop {
            match self.trail.seal(&self.names).await? {
                0 => return Ok(sealed),
                batch => sealed += batch as u64,
            }
        }
    }

    /// Seals the entries that are open again and again, until the task is stopped or dropped:
    /// `"10s"`, or a `Duration`. Any number of processes may do so. The beginning is an entry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if the duration cannot be read, or is shorter than a millisecond.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn seal_every(&self, every: impl IntoDuration) -> Result<SealTask, Error> {
        let every = every.into_duration()?;
        if every < Duration::from_millis(1) {
            return Err(Error::InvalidPolicy(
                "sealing more often than every millisecond would do nothing else: take seconds",
            ));
        }
        let audit = self.clone();
        let sealing = async move {
            let detail = format!("every {every:?}");
            let begins = NewEvent::new("sealing", &detail);
            if let Err(error) = audit.trail.write(&audit.names, &begins).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the audit does not tell that it is sealed"
                );
            }
            loop {
                tokio::time::sleep(every).await;
                if let Err(error) = audit.seal().await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the audit was not sealed"
                    );
                }
            }
        };
        Ok(SealTask(tokio::spawn(sealing)))
    }

    /// Returns the chain as it is now, for a place that the owner of the database cannot change;
    /// `None` if nothing was sealed yet.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer.
    pub async fn anchor(&self) -> Result<Option<Anchor>, AuditError> {
        self.trail.anchor(&self.names).await
    }

    /// Returns who of the application can change this trail, as
    /// [`Report::changeable_by`](crate::Report::changeable_by).
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer.
    pub async fn changeable_by(&self) -> Result<Option<String>, AuditError> {
        self.trail.changeable_by(&self.names).await
    }

    /// Looks whether the trail still stands.
    ///
    /// # Errors
    ///
    /// As [`AuditBuilder::connect`].
    pub async fn check(&self) -> Result<(), AuditError> {
        self.trail.check(&self.names).await.map(drop)
    }
}

/// Seals the entries that are open, until it is dropped.
#[derive(Debug)]
#[must_use = "sealing ends when the task is dropped"]
pub struct SealTask(tokio::task::JoinHandle<()>);

impl Drop for SealTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl AuditTrail for Audit {
    async fn look(&self) -> Result<TrailState, BoxError> {
        match self.trail.check(&self.names).await {
            Ok(store) => Ok(TrailState::Stands { store }),
            Err(AuditError::Store(error)) => Err(error.into()),
            Err(broken) => Ok(TrailState::Broken(broken.to_string())),
        }
    }

    async fn write(&self, event: &AuditEvent) -> Result<(), BoxError> {
        let event = NewEvent {
            holder: Some(&event.holder),
            ..NewEvent::new(event.event, &event.detail)
        };
        Ok(self.trail.write(&self.names, &event).await?)
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

    setters! {
        /// Has a second person approve how a person ends an uncertain or parked record. The names
        /// are those of the users of the database under which the application runs.
        ///
        /// These users act for a person only where they sign with a name. Every other user is a
        /// person, and may not even delete such a record. The act fails, and the error names the
        /// [proposal](crate::Proposal::refused) that a second person has to
        /// [approve](Audit::approve). A trigger holds that on servers, also against an `UPDATE` by
        /// hand. SQLite has no users, so there it is a rule for people who sign, and no wall; other
        /// programs that open the file need SQLite 3.47.
        ///
        /// All builds name the same users, in any order: another list is another guard, and a trail
        /// with it does not stand for them. A handle through which the application's people approve
        /// names them, too.
        ///
        /// Once made, it stays also for builds that do not ask for it. To end it, the owner drops
        /// the triggers whose names have `_guards`.
        four_eyes(it, users: &[&str]) {
            let users: BTreeSet<_> = users.iter().map(ToString::to_string).collect();
            it.names = match (it.names.clone(), users.is_empty()) {
                (Ok(_), true) => Err(StoreError::new(
                    StoreErrorKind::Configuration,
                    "setting up an audit",
                )
                .with_source("four eyes need the users of the application")),
                (names, _) => names.map(|names| Names {
                    four_eyes: Some(users.into_iter().collect()),
                    ..names
                }),
            };
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

    /// The statements that give two users their rights, and no other, as a script for the client of
    /// the server. `application` and `sealer` are their names as SQL has them: `app`, and on
    /// MariaDB and MySQL `'app'@'%'`. The users are there, and the script runs as the owner of the
    /// tables, who is none of them.
    ///
    /// The application writes records and steps, and events. It can change no entry, seal or
    /// trigger. The sealer reads all of it, gives entries their place, and adds seals. SQLite has
    /// no users, so there the application can change its trail, and nothing is to be run.
    ///
    /// # Errors
    ///
    /// As [`ddl`](Self::ddl).
    pub fn roles(&self, application: &str, sealer: &str) -> Result<String, AuditError> {
        Ok(self.trail.roles(&self.names.clone()?, application, sealer))
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

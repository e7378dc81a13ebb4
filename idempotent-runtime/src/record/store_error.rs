//! Why a store could not do what it was asked.

use std::{error::Error, fmt, iter, sync::Arc};

/// Says that a store failed, of which kind the failure is, and keeps the driver's error as its
/// source.
///
/// Its `Display` ends with the cause, in the words of the driver or the server: *database "shop"
/// does not exist*. No URL and no password is in it.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    doing: &'static str,
    place: Option<Arc<str>>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kind of a store's failure: it says what a caller can do. [`Store`](crate::Store#errors) says
/// whether a write that failed so may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store did not answer: the work may or may not have happened. Worth trying again.
    Unavailable,
    /// The store is locked by another client for longer than it waits. Worth trying again.
    Busy,
    /// The store may not be written: read-only, or no permission, also where it hides a record from
    /// this user.
    Denied,
    /// There is no room left.
    Full,
    /// The tables are missing, are older than this build needs, or of a newer release that left it
    /// no room.
    Schema,
    /// The data in the store is not what this crate wrote.
    Corrupt,
    /// The store was set up wrongly: a bad URL, a bad name, a server of another kind, or one whose
    /// certificate is not trusted.
    Configuration,
    /// Anything else that the driver reports. The work may or may not have happened.
    Other,
}

impl StoreErrorKind {
    /// Its name, as metrics spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Schema => "schema",
            Self::Corrupt => "corrupt",
            Self::Configuration => "configuration",
            Self::Other => "other",
        }
    }
}

impl StoreError {
    /// Makes an error of this kind that happened while `doing` something, such as `"claiming a
    /// record"`.
    #[must_use]
    pub fn new(kind: StoreErrorKind, doing: &'static str) -> Self {
        Self {
            kind,
            doing,
            place: None,
            source: None,
        }
    }

    /// Keeps the error that caused it. Its text is shown, so it may hold no secret.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Names the file or the host that it is about. A URL does not belong there, because it may
    /// hold a password.
    #[must_use]
    pub fn at(mut self, place: impl Into<Arc<str>>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// The same for a failure to learn what became of a write: it may stand.
    #[cfg(any(feature = "mysql", feature = "redis"))]
    pub(crate) fn after_a_write(self) -> Self {
        let kind = if self.is_transient() {
            self.kind
        } else {
            StoreErrorKind::Other
        };
        Self { kind, ..self }
    }

    /// The words of the errors that caused it. An error that ends with the words of its own cause
    /// adds only whose words they are.
    fn causes(&self) -> Vec<String> {
        let causes = iter::successors(self.source(), |cause: &&(dyn Error + 'static)| {
            (*cause).source()
        });
        let mut told: Vec<String> = Vec::new();
        for cause in causes {
            if let Some(words) = words_of_postgres(cause) {
                told.push(words);
                break;
            }
            let said = cause.to_string();
            told.pop_if(|around| around.ends_with(&said));
            told.push(said);
        }
        told
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Tells whether trying the same again can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unavailable | StoreErrorKind::Busy
        )
    }
}

/// The words of a server without the line of its source, which sqlx adds.
#[cfg(feature = "postgres")]
fn words_of_postgres(cause: &(dyn Error + 'static)) -> Option<String> {
    let refused = cause.downcast_ref::<sqlx::Error>()?.as_database_error()?;
    let refused = refused.try_downcast_ref::<sqlx::postgres::PgDatabaseError>()?;
    Some(refused.message().to_owned())
}

#[cfg(not(feature = "postgres"))]
fn words_of_postgres(_: &(dyn Error + 'static)) -> Option<String> {
    None
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            StoreErrorKind::Unavailable => "the store did not answer",
            StoreErrorKind::Busy => "the store is busy",
            StoreErrorKind::Denied => "the store may not be written",
            StoreErrorKind::Full => "the store has no room left",
            StoreErrorKind::Schema => {
                "the store's tables are not the ones this version needs, run `migrate()`"
            }
            StoreErrorKind::Corrupt => "the record in the store is damaged",
            StoreErrorKind::Configuration => "the store is not set up rightly",
            StoreErrorKind::Other => "the store failed",
        };
        write!(f, "{what} while {}", self.doing)?;
        if let Some(place) = &self.place {
            write!(f, " at `{place}`")?;
        }
        self.causes()
            .iter()
            .try_for_each(|cause| write!(f, ": {cause}"))
    }
}

/// Two are equal when they are of one kind and happened while doing the same.
impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.doing) == (other.kind, other.doing)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(all(test, any(feature = "mysql", feature = "redis")))]
mod tests {
    use super::*;

    #[test]
    fn a_write_whose_fate_was_not_learned_may_stand() {
        let told = |kind| StoreError::new(kind, "looking").after_a_write().kind();
        for nothing_written in [
            StoreErrorKind::Denied,
            StoreErrorKind::Full,
            StoreErrorKind::Schema,
            StoreErrorKind::Corrupt,
            StoreErrorKind::Configuration,
        ] {
            assert_eq!(told(nothing_written), StoreErrorKind::Other);
        }
        for may_stand in [
            StoreErrorKind::Unavailable,
            StoreErrorKind::Busy,
            StoreErrorKind::Other,
        ] {
            assert_eq!(told(may_stand), may_stand);
        }
    }
}

//! The front of holds and prunings.

use std::time::Duration;

use idempotent_runtime::{__audit::setters, Error, IntoDuration};

use crate::{
    act::{Subject, TrailAct},
    audit::Audit,
    error::AuditError,
    hold::{EVENTS, HOLD, Held, Hold, RELEASE, standing},
    prune::Pruned,
};

/// How long entries are kept.
const KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

impl Audit {
    /// Keeps entries from every [pruning](Self::prune) until they are
    /// [released](Self::release): those of a record, of an operation, or of a time. The hold is an
    /// entry, and needs a reason.
    pub fn hold(&self, hold: Hold) -> TrailAct<'_> {
        TrailAct::new(self, HOLD, Subject::Held(hold))
    }

    /// Ends the hold with this [number](Held::number), which is an entry, too. The next pruning
    /// takes what it may.
    pub fn release(&self, number: i64) -> TrailAct<'_> {
        TrailAct::new(self, RELEASE, Subject::Released(number))
    }

    /// Returns the holds that stand, the oldest first.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer.
    pub async fn holds(&self) -> Result<Vec<Held>, AuditError> {
        Ok(standing(
            &self.trail.events(&self.names, &EVENTS, None).await?,
        ))
    }

    /// Begins to prune the trail: entries that were sealed more than 400 days ago lose their
    /// fields.
    ///
    /// The number, the place and the leaf of an entry stay until all of its batch may go. Then only
    /// the seal stays, with its root, its count and its time. So the chain still verifies.
    ///
    /// Kept are entries that are [held](Self::hold), the last entry of each record that stands, and
    /// all entries of the same record behind one that is kept.
    pub fn prune(&self) -> Prune<'_> {
        Prune {
            audit: self,
            keep: Ok(KEPT),
        }
    }
}

/// A pruning that is to be run.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until `run` is called"]
pub struct Prune<'a> {
    audit: &'a Audit,
    keep: Result<Duration, Error>,
}

impl Prune<'_> {
    setters! {
        /// Keeps the entries of so long: `"400d"`, or a `Duration`.
        keep(it, keep: impl IntoDuration) { it.keep = keep.into_duration() }
    }

    /// Prunes. It is declared by an entry, which it seals itself, before anything goes. One pruning
    /// runs at a time: the user is the owner of the tables.
    ///
    /// # Errors
    ///
    /// [`AuditError::InvalidAct`] if the duration cannot be read. [`AuditError::Store`] if the
    /// database does not answer, or the user may not prune; with
    /// [`Busy`](idempotent_runtime::StoreErrorKind::Busy) if another sealer did not let its entry
    /// be sealed for 30 seconds; with [`Corrupt`](idempotent_runtime::StoreErrorKind::Corrupt) if
    /// more is gone than the pruning before took.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has pruned a part. The trail verifies, and the next pruning goes on.
    pub async fn run(self) -> Result<Pruned, AuditError> {
        let keep = self.keep.map_err(|_| {
            AuditError::InvalidAct("entries are kept for a duration such as `400d`")
        })?;
        self.audit.trail.prune(&self.audit.names, keep).await
    }
}

//! The front of verifications and exports.

use std::{io, sync::Arc};

use idempotent_runtime::{__audit::setters, Time};

use crate::{
    anchor::Anchor,
    asked::{Asked, Tell},
    audit::Audit,
    error::AuditError,
    export::Manifest,
    report::Report,
};

impl Audit {
    /// Begins to verify the trail, or to export it: all of it, unless a part is named.
    pub fn verify(&self) -> Verify<'_> {
        Verify {
            audit: self,
            asked: Asked::default(),
        }
    }
}

/// A part of a trail that is to be verified or exported.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until `run` or `export` is called"]
pub struct Verify<'a> {
    audit: &'a Audit,
    asked: Asked,
}

impl Verify<'_> {
    setters! {
        /// Begins at this batch.
        from_batch(it, batch: i64) { it.asked.from = Some(batch) }

        /// Ends with this batch.
        to_batch(it, batch: i64) { it.asked.to = Some(batch) }

        /// Begins at the first batch that was sealed at this time or later.
        sealed_from(it, time: Time) { it.asked.sealed_from = Some(time) }

        /// Ends with the last batch that was sealed by this time.
        sealed_to(it, time: Time) { it.asked.sealed_to = Some(time) }

        /// Calls this with the number of batches that were read so far, after each one.
        on_progress(it, tell: impl Fn(u64) + Send + Sync + 'static) {
            it.asked.tell = Tell(Some(Arc::new(tell)));
        }

        /// Holds the chain against these anchors. They must be those of this store.
        anchors(it, anchors: impl IntoIterator<Item = Anchor>) {
            it.asked.anchors.extend(anchors);
        }
    }

    /// Writes the sealed entries and their seals as JSON Lines, batch after batch. The manifest
    /// belongs into a file beside them. `verify_export.py` of this crate verifies both, and shares
    /// no code with it. Entries that are open are left out.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer, a field cannot be read, or a line
    /// cannot be written.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has written some of the lines, and no manifest.
    pub async fn export(self, lines: &mut (impl io::Write + Send)) -> Result<Manifest, AuditError> {
        let audit = self.audit;
        let mut write = |line: &str| lines.write_all(line.as_bytes());
        let exported = audit.trail.export(&audit.names, &self.asked, &mut write);
        exported.await
    }

    /// Finds the first divergence. Only the whole trail is held against the records, too.
    ///
    /// It reads at one moment what it compares, and holds one batch in memory. Calls go on beside
    /// it.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer, or a field cannot be read.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn run(self) -> Result<Report, AuditError> {
        let audit = self.audit;
        audit.trail.verify(&audit.names, &self.asked).await
    }
}

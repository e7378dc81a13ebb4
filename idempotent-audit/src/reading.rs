//! The front of verifications, exports and timelines.

use std::{io, sync::Arc};

use idempotent_runtime::{__audit::setters, Time, identity::RecordId};

use crate::{
    anchor::Anchor,
    asked::{Asked, Tell},
    audit::Audit,
    error::AuditError,
    export::Manifest,
    report::Report,
    timeline::TimelineEntry,
};

impl Audit {
    /// Begins to verify the trail, or to export it: all of it, unless a part is named.
    pub fn verify(&self) -> Verify<'_> {
        Verify {
            audit: self,
            asked: Asked::default(),
        }
    }

    /// Returns the newest entries of a record and of its steps, the newest first, `limit` of them
    /// at most. An index finds them.
    ///
    /// It verifies none of them: [`verify`](Self::verify) does.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer, or a field cannot be read.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_audit::{Audit, AuditError};
    /// # use idempotent_runtime::identity::RecordId;
    /// # async fn example(audit: Audit, id: RecordId) -> Result<(), AuditError> {
    /// for entry in audit.timeline(id, 100).await? {
    ///     let by = entry.by.as_deref().unwrap_or("a program");
    ///     println!("{} {} by {by}", entry.at, entry.kind);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn timeline(
        &self,
        id: RecordId,
        limit: u32,
    ) -> Result<Vec<TimelineEntry>, AuditError> {
        self.trail.timeline(&self.names, id, limit).await
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

//! The entries of a batch.

use idempotent_runtime::{__audit::Row, BoxError};

use super::{VERIFYING, at};
use crate::{
    database::TrailDatabase,
    entry::{Entry, columns},
    error::AuditError,
    merkle::{Hash, Tree},
    names::Names,
    prune::PRUNED,
    report::{Divergence, DivergenceKind},
    seal::{Seal, damaged},
};

/// The entries of a batch, held against its seal.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) leaves: Tree,
    /// How many entries have lost their fields.
    pub(super) gone: i64,
    pub(super) divergence: Option<Divergence>,
}

impl Batch {
    /// Reads the entries of a batch, and holds them against its seal.
    pub(super) async fn of<DB: TrailDatabase>(
        connection: &mut DB::Connection,
        names: &Names,
        seal: &Seal,
    ) -> Result<Self, AuditError> {
        let Seal { batch, entries, .. } = seal;
        let text = format!(
            "SELECT place, leaf, {} FROM {} WHERE batch = {batch} ORDER BY number LIMIT {}",
            columns(),
            names.entries(),
            entries.saturating_add(1)
        );
        let rows = DB::query(connection, text, VERIFYING).await?;
        if rows.is_empty() {
            return Ok(Self {
                gone: *entries,
                ..Self::default()
            });
        }
        Ok(Self::read(&rows, seal).map_err(damaged)?)
    }

    fn read(rows: &[impl Row], seal: &Seal) -> Result<Self, BoxError> {
        let mut batch = Self::default();
        for (expected, row) in (0..).zip(rows) {
            let entry = Entry::read(row, 2)?;
            let (place, leaf) = (row.number(0)?, row.bytes(1)?.unwrap_or_default());
            let is_pruned = entry.text_of("source") == Some(PRUNED);
            batch.gone += i64::from(is_pruned);
            let own = match Hash::try_from(leaf) {
                Ok(leaf) if is_pruned => leaf,
                Ok(leaf) if leaf == entry.leaf() => leaf,
                _ => {
                    batch.found(DivergenceKind::Content, seal, &entry);
                    [0; 32]
                }
            };
            if place != Some(expected) {
                batch.found(DivergenceKind::Place, seal, &entry);
            }
            batch.leaves.push(own);
        }
        if i64::try_from(rows.len()).ok() != Some(seal.entries) {
            batch.divergence = Some(at(DivergenceKind::Gap, seal.batch));
        } else if batch.divergence.is_none() && batch.leaves.root()[..] != seal.root[..] {
            batch.divergence = Some(at(DivergenceKind::Content, seal.batch));
        }
        Ok(batch)
    }

    fn found(&mut self, kind: DivergenceKind, seal: &Seal, entry: &Entry) {
        self.divergence = self.divergence.take().or_else(|| {
            Some(Divergence {
                number: Some(entry.number()),
                ..at(kind, seal.batch)
            })
        });
    }
}

//! Verification: the first place where a trail is not what it was, and in which way.

mod batch;

use idempotent_runtime::__audit::Row as _;

use self::batch::Batch;
use crate::{
    asked::Asked,
    database::TrailDatabase,
    error::AuditError,
    names::Names,
    prune::{Pruning, last_declared},
    report::{Divergence, DivergenceKind, Report},
    seal::{COLUMNS, Seal, damaged, seals_after},
    unaudited,
};

const VERIFYING: &str = "verifying the audit";

/// How long an entry may be open, as that of a transaction that goes on, in microseconds.
const LATE: i64 = 3_600_000_000;

/// Finds the first divergence.
pub(crate) async fn verify<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    asked: &Asked,
) -> Result<Report, AuditError> {
    let mut report = Report::default();
    let mut chain = Chain {
        names,
        asked,
        before: None,
        pruning: None,
        present: 0,
        present_there: None,
        report: &mut report,
    };
    let mut divergence = chain.walk::<DB>(connection).await?;
    if divergence.is_none() {
        divergence = chain.end::<DB>(connection).await?;
    }
    if divergence.is_none() && asked.is_whole() {
        divergence = chain.taken::<DB>(connection).await?;
    }
    if divergence.is_none() && asked.is_whole() {
        divergence = unaudited::<DB>(connection, names).await?;
    }
    report.divergence = divergence;
    report.changeable_by = changeable_by::<DB>(connection, names).await?;
    Ok(report)
}

/// The users of the application who can change the trail.
pub(crate) async fn changeable_by<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<Option<String>, AuditError> {
    let Some(look) = DB::owners(names) else {
        return Ok(Some("everyone who can write the file".to_owned()));
    };
    let rows = DB::query(connection, look, VERIFYING).await?;
    let users = rows.iter().map(|row| row.text(0));
    let users: Result<Vec<_>, _> = users.collect();
    let users: Vec<_> = users.map_err(damaged)?.into_iter().flatten().collect();
    Ok((!users.is_empty()).then(|| users.join(", ")))
}

/// Holds the records against their entries. A pruning may take entries meanwhile: it is looked up
/// afterwards.
async fn unaudited<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<Option<Divergence>, AuditError> {
    let mut pruned_until = -1;
    loop {
        let last = last_declared::<DB>(connection, names, true).await?;
        let until = last.map_or(0, |(last, _)| last.to);
        if until == pruned_until {
            return unaudited::find::<DB>(connection, names, until).await;
        }
        pruned_until = until;
        let found = unaudited::find::<DB>(connection, names, until).await?;
        if found.is_none() {
            return Ok(None);
        }
    }
}

struct Chain<'a> {
    names: &'a Names,
    asked: &'a Asked,
    before: Option<Seal>,
    /// The last pruning, once a batch was met that was pruned.
    pruning: Option<Pruning>,
    /// How many entries have their fields: so far, and up to the last batch of the pruning.
    present: i64,
    present_there: Option<i64>,
    report: &'a mut Report,
}

fn at(kind: DivergenceKind, batch: i64) -> Divergence {
    Divergence {
        kind,
        batch: Some(batch),
        number: None,
        record: None,
    }
}

impl Chain<'_> {
    async fn walk<DB: TrailDatabase>(
        &mut self,
        connection: &mut DB::Connection,
    ) -> Result<Option<Divergence>, AuditError> {
        let mut last = None;
        loop {
            let page = seals_after::<DB>(connection, self.names, self.asked, last).await?;
            let Some(end) = page.last() else {
                return Ok(None);
            };
            if let (None, Some(first)) = (last, page.first()) {
                self.before = self.seal::<DB>(connection, first.batch - 1).await?;
            }
            last = Some(end.batch);
            for seal in page {
                if let Some(found) = self.link(&seal) {
                    return Ok(Some(found));
                }
                if let Some(found) = self.batch::<DB>(connection, &seal).await? {
                    return Ok(Some(found));
                }
                self.report.batches += 1;
                self.report.entries += u64::try_from(seal.entries).unwrap_or(0);
                self.asked.tell.is(self.report.batches);
                self.before = Some(seal);
            }
        }
    }

    async fn seal<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
        batch: i64,
    ) -> Result<Option<Seal>, AuditError> {
        let look = format!(
            "SELECT {COLUMNS} FROM {} WHERE batch = {batch}",
            self.names.seals()
        );
        let rows = DB::query(connection, look, VERIFYING).await?;
        let seal = rows.first().map(|row| Seal::read(row).map_err(damaged));
        Ok(seal.transpose()?)
    }

    /// Holds a seal against the one before, and against the anchors.
    fn link(&mut self, seal: &Seal) -> Option<Divergence> {
        let before = self.before.as_ref();
        let expected = before.map_or(seal.batch, |before| before.batch + 1);
        if before.is_none() || seal.batch != expected {
            return Some(at(DivergenceKind::Gap, expected));
        }
        let follows = before.is_some_and(|before| before.hash == seal.previous);
        if !follows || seal.hash != seal.computed() {
            return Some(at(DivergenceKind::Link, seal.batch));
        }
        let anchors = self.asked.anchors.iter();
        for anchor in anchors.filter(|anchor| anchor.size() == seal.batch) {
            if anchor.root()[..] != seal.hash[..] {
                return Some(at(DivergenceKind::Remade, seal.batch));
            }
            self.report.anchored = seal.batch;
        }
        None
    }

    /// Holds the entries of a batch against its seal.
    async fn batch<DB: TrailDatabase>(
        &mut self,
        connection: &mut DB::Connection,
        seal: &Seal,
    ) -> Result<Option<Divergence>, AuditError> {
        let batch = Batch::of::<DB>(connection, self.names, seal).await?;
        let to = self.pruning.map_or(0, |pruning| pruning.to);
        if batch.gone > 0 && seal.batch > to {
            let pruning = match self.last_pruning::<DB>(connection).await? {
                Ok(pruning) => pruning,
                Err(divergence) => return Ok(Some(divergence)),
            };
            if seal.batch > pruning.to {
                let kind = match batch.leaves.is_empty() {
                    true => DivergenceKind::Gap,
                    false => DivergenceKind::Content,
                };
                return Ok(Some(at(kind, seal.batch)));
            }
            self.pruning = Some(pruning);
            self.present_there = None;
        }
        self.present += seal.entries - batch.gone;
        if self.pruning.is_some_and(|pruning| pruning.to == seal.batch) {
            self.present_there = Some(self.present);
        }
        self.report.pruned += u64::try_from(batch.gone).unwrap_or(0);
        Ok(batch.divergence)
    }

    /// The last pruning that is an entry of this chain.
    async fn last_pruning<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Result<Pruning, Divergence>, AuditError> {
        let last = last_declared::<DB>(connection, self.names, true).await?;
        let Some((pruning, Some(batch))) = last else {
            return Ok(Ok(Pruning::default()));
        };
        let Some(seal) = self.seal::<DB>(connection, batch).await? else {
            return Ok(Err(at(DivergenceKind::Gap, batch)));
        };
        if seal.hash != seal.computed() {
            return Ok(Err(at(DivergenceKind::Link, batch)));
        }
        let batch = Batch::of::<DB>(connection, self.names, &seal).await?;
        Ok(match batch.divergence {
            Some(divergence) => Err(divergence),
            None => Ok(pruning),
        })
    }

    /// Holds the number of entries that are left against the one that the last pruning has
    /// declared.
    async fn taken<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<Divergence>, AuditError> {
        let Some(known) = self.pruning else {
            return Ok(None);
        };
        let last = match self.last_pruning::<DB>(connection).await? {
            Ok(last) => last,
            Err(divergence) => return Ok(Some(divergence)),
        };
        // Another one has begun meanwhile, and takes what was counted.
        let is_same = last == known;
        let present = self.present_there.unwrap_or(self.present);
        Ok((is_same && present < known.kept).then_some(Divergence {
            kind: DivergenceKind::Pruned,
            batch: None,
            number: None,
            record: None,
        }))
    }

    /// Looks behind the last seal.
    async fn end<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<Divergence>, AuditError> {
        let (entries, seals) = (self.names.entries(), self.names.seals());
        // The sealer gives no entry a smaller one.
        let none = format!("SELECT min(batch) FROM {entries} WHERE batch < 1");
        if let Some(batch) = number::<DB>(connection, none).await? {
            return Ok(Some(at(DivergenceKind::Gap, batch)));
        }
        let is_open = self.asked.to.is_none() && self.asked.sealed_to.is_none();
        if !is_open {
            return Ok(None);
        }
        // A sealer may go on meanwhile: each look is of one moment.
        let last = format!("SELECT coalesce(max(batch), 0) FROM {seals}");
        let beyond = format!("SELECT min(batch) FROM {entries} WHERE batch > ({last})");
        if let Some(batch) = number::<DB>(connection, beyond).await? {
            return Ok(Some(at(DivergenceKind::MissingTail, batch)));
        }
        let last = number::<DB>(connection, last).await?.unwrap_or(0);
        let mut anchors = self.asked.anchors.iter();
        if let Some(anchor) = anchors.find(|anchor| anchor.size() > last) {
            return Ok(Some(at(DivergenceKind::MissingTail, anchor.size())));
        }
        let never = format!(
            "SELECT min(number) FROM {entries} WHERE batch IS NULL AND written < {} - {LATE}",
            DB::NOW
        );
        let never = number::<DB>(connection, never).await?;
        Ok(never.map(|number| Divergence {
            kind: DivergenceKind::NeverSealed,
            batch: None,
            number: Some(number),
            record: None,
        }))
    }
}

async fn number<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    text: String,
) -> Result<Option<i64>, AuditError> {
    let rows = DB::query(connection, text, VERIFYING).await?;
    let number = rows.first().map(|row| row.number(0)).transpose();
    Ok(number.map_err(damaged)?.flatten())
}

//! Verification: the first place where a trail is not what it was, and in which way.

use idempotent_runtime::{__audit::Row, BoxError};

use crate::{
    asked::Asked,
    database::TrailDatabase,
    entry::{Entry, columns},
    error::AuditError,
    merkle::{Hash, Tree},
    names::Names,
    prune::{BEGINS, ENDS, PRUNED, Pruning},
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
        gone: (0, 0),
        report: &mut report,
    };
    let mut divergence = chain.walk::<DB>(connection).await?;
    if divergence.is_none() {
        divergence = chain.end::<DB>(connection).await?;
    }
    if divergence.is_none() && asked.is_whole() {
        divergence = chain.taken::<DB>(connection).await?;
    }
    let pruned_until = chain.pruning.map_or(0, |pruning| pruning.to);
    if divergence.is_none() && asked.is_whole() {
        divergence = unaudited::find::<DB>(connection, names, pruned_until).await?;
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

struct Chain<'a> {
    names: &'a Names,
    asked: &'a Asked,
    before: Option<Seal>,
    /// The last pruning, once a batch was met that was pruned.
    pruning: Option<Pruning>,
    /// How many batches are gone whole, and how many entries of others.
    gone: (i64, i64),
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
        let (seals, condition) = (self.names.seals(), self.asked.condition());
        let first = format!("SELECT min(batch) FROM {seals} WHERE {condition}");
        let first = number::<DB>(connection, first).await?.unwrap_or(1);
        self.before = self.seal::<DB>(connection, first - 1).await?;
        let mut last = None;
        loop {
            let page = seals_after::<DB>(connection, self.names, self.asked, last).await?;
            let Some(end) = page.last() else {
                return Ok(None);
            };
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
        let batch = self.entries::<DB>(connection, seal).await?;
        let to = self.pruning.map_or(0, |pruning| pruning.to);
        if batch.gone > 0 && seal.batch > to {
            let pruning = match self.last_pruning::<DB>(connection).await? {
                Ok(pruning) => pruning,
                Err(divergence) => return Ok(Some(divergence)),
            };
            self.pruning = Some(pruning);
            if seal.batch > pruning.to {
                let kind = match batch.leaves.is_empty() {
                    true => DivergenceKind::Gap,
                    false => DivergenceKind::Content,
                };
                return Ok(Some(at(kind, seal.batch)));
            }
        }
        match batch.leaves.is_empty() {
            true => self.gone.0 += i64::from(batch.gone > 0),
            false => self.gone.1 += batch.gone,
        }
        self.report.pruned += u64::try_from(batch.gone).unwrap_or(0);
        Ok(batch.divergence)
    }

    /// Reads the entries of a batch, and holds them against its seal.
    async fn entries<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
        seal: &Seal,
    ) -> Result<Batch, AuditError> {
        let Seal { batch, entries, .. } = seal;
        let text = format!(
            "SELECT place, leaf, {} FROM {} WHERE batch = {batch} ORDER BY number LIMIT {}",
            columns(),
            self.names.entries(),
            entries.saturating_add(1)
        );
        let rows = DB::query(connection, text, VERIFYING).await?;
        if rows.is_empty() {
            return Ok(Batch {
                gone: *entries,
                ..Batch::default()
            });
        }
        Ok(Batch::read(&rows, seal).map_err(damaged)?)
    }

    /// The last pruning that is an entry of this chain.
    async fn last_pruning<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Result<Pruning, Divergence>, AuditError> {
        let entries = self.names.entries();
        let text = format!(
            "SELECT batch, label, note FROM {entries}
             WHERE source = 'event' AND label IN ('{BEGINS}', '{ENDS}') AND batch IS NOT NULL
             ORDER BY number DESC LIMIT 10"
        );
        let rows = DB::query(connection, text, VERIFYING).await?;
        let mut events = Vec::new();
        for row in &rows {
            let Some(batch) = row.number(0).map_err(damaged)? else {
                continue;
            };
            let Some(seal) = self.seal::<DB>(connection, batch).await? else {
                return Ok(Err(at(DivergenceKind::Gap, batch)));
            };
            if seal.hash != seal.computed() {
                return Ok(Err(at(DivergenceKind::Link, batch)));
            }
            let entries = self.entries::<DB>(connection, &seal).await?;
            if let Some(divergence) = entries.divergence {
                return Ok(Err(divergence));
            }
            let text = |place| row.text(place).map_err(damaged);
            let event = text(1)?.unwrap_or_default();
            let begins = event == BEGINS;
            events.push((event, text(2)?.unwrap_or_default()));
            if begins {
                break;
            }
        }
        let events = events.iter().map(|(event, detail)| (&**event, &**detail));
        Ok(Ok(Pruning::read(events)))
    }

    /// Holds what is gone against the last pruning, if that has ended.
    async fn taken<DB: TrailDatabase>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<Divergence>, AuditError> {
        if self.gone == (0, 0) {
            return Ok(None);
        }
        let last = match self.last_pruning::<DB>(connection).await? {
            Ok(last) => last,
            Err(divergence) => return Ok(Some(divergence)),
        };
        // A pruning that runs beside a verification has taken some of it already.
        let is_more = |(batches, entries)| {
            self.gone.0 > batches || self.gone.0 == batches && self.gone.1 > entries
        };
        Ok(last.gone.filter(|it| is_more(*it)).map(|_| Divergence {
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

/// The entries of a batch, held against its seal.
#[derive(Default)]
struct Batch {
    leaves: Tree,
    /// How many entries have lost their fields.
    gone: i64,
    divergence: Option<Divergence>,
}

impl Batch {
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

async fn number<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    text: String,
) -> Result<Option<i64>, AuditError> {
    let rows = DB::query(connection, text, VERIFYING).await?;
    let number = rows.first().map(|row| row.number(0)).transpose();
    Ok(number.map_err(damaged)?.flatten())
}

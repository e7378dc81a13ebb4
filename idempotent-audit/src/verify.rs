//! Verification: the first place where a trail is not what it was, and in which way.

use idempotent_runtime::__audit::Row;

use crate::{
    asked::Asked,
    database::TrailDatabase,
    entry::{Entry, columns},
    error::AuditError,
    merkle::Tree,
    names::Names,
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
        report: &mut report,
    };
    let mut divergence = chain.walk::<DB>(connection).await?;
    if divergence.is_none() {
        divergence = chain.end::<DB>(connection).await?;
    }
    if divergence.is_none() && asked.is_whole() {
        divergence = unaudited::find::<DB>(connection, names).await?;
    }
    report.divergence = divergence;
    Ok(report)
}

struct Chain<'a> {
    names: &'a Names,
    asked: &'a Asked,
    before: Option<Seal>,
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
        &self,
        connection: &mut DB::Connection,
        seal: &Seal,
    ) -> Result<Option<Divergence>, AuditError> {
        let Seal { batch, entries, .. } = seal;
        let text = format!(
            "SELECT place, leaf, {} FROM {} WHERE batch = {batch} ORDER BY number LIMIT {}",
            columns(),
            self.names.entries(),
            entries.saturating_add(1)
        );
        let rows = DB::query(connection, text, VERIFYING).await?;
        if i64::try_from(rows.len()).ok() != Some(*entries) {
            return Ok(Some(at(DivergenceKind::Gap, *batch)));
        }
        let mut tree = Tree::default();
        for (expected, row) in (0..).zip(&rows) {
            let entry = Entry::read(row, 2).map_err(damaged)?;
            let found = |kind| {
                let number = Some(entry.number());
                Some(Divergence {
                    number,
                    ..at(kind, *batch)
                })
            };
            if row.number(0).map_err(damaged)? != Some(expected) {
                return Ok(found(DivergenceKind::Place));
            }
            let leaf = entry.leaf();
            if row.bytes(1).map_err(damaged)?.as_deref() != Some(&leaf[..]) {
                return Ok(found(DivergenceKind::Content));
            }
            tree.push(leaf);
        }
        let holds = tree.root()[..] == seal.root[..];
        Ok((!holds).then(|| at(DivergenceKind::Content, *batch)))
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

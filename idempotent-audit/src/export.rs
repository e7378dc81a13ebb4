//! An export: the sealed entries and their seals as JSON Lines, and a manifest.
//!
//! A program that shares no code with this one verifies it by `AUDIT.md`.

use std::io;

use idempotent_runtime::{__audit::Row, StoreError, StoreErrorKind};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use crate::{
    anchor::Anchor,
    asked::Asked,
    database::TrailDatabase,
    entry::{Entry, FIELDS, Value, columns, hex},
    error::AuditError,
    names::Names,
    prune::last_declared,
    seal::{Seal, damaged, seals_after},
};

const EXPORTING: &str = "exporting the audit";

/// Takes each line of an export.
pub(crate) type Write<'a> = &'a mut (dyn FnMut(&str) -> io::Result<()> + Send);

/// The facts of an export, for a file beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// The number of batches.
    pub batches: u64,
    /// The number of entries.
    pub entries: u64,
    /// The SHA-256 of all lines.
    pub sha256: [u8; 32],
    /// The last batch that may have been pruned, by the last pruning that is sealed.
    pub pruned: i64,
    /// The chain as it was when the export began; `None` if nothing was sealed.
    pub anchor: Option<Anchor>,
}

impl Manifest {
    /// Returns the manifest as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self {
            batches,
            entries,
            sha256,
            pruned,
            anchor,
        } = self;
        let anchor = anchor.as_ref().map(ToString::to_string);
        let manifest = json!({
            "format": crate::seal::FORMAT,
            "batches": batches,
            "entries": entries,
            "sha256": hex(sha256),
            "pruned": pruned,
            "anchor": anchor,
        });
        manifest.to_string()
    }
}

/// Writes each batch: its entries, and then its seal.
pub(crate) async fn export<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    (asked, anchor): (&Asked, Option<Anchor>),
    write: Write<'_>,
) -> Result<Manifest, AuditError> {
    let mut hasher = Sha256::new();
    let mut manifest = Manifest {
        batches: 0,
        entries: 0,
        sha256: [0; 32],
        pruned: 0,
        anchor,
    };
    let mut put = |line: Json| {
        let line = line.to_string() + "\n";
        hasher.update(&line);
        let failed = |error| StoreError::new(StoreErrorKind::Other, EXPORTING).with_source(error);
        write(&line).map_err(|error: io::Error| failed(error))
    };
    let mut last = None;
    loop {
        let seals = seals_after::<DB>(connection, names, asked, last).await?;
        let Some(end) = seals.last() else { break };
        last = Some(end.batch);
        for seal in &seals {
            let text = format!(
                "SELECT place, leaf, {} FROM {} WHERE batch = {} ORDER BY number",
                columns(),
                names.entries(),
                seal.batch
            );
            let rows = DB::query(connection, text, EXPORTING).await?;
            for row in &rows {
                put(entry::<DB>(row, seal.batch).map_err(damaged)?)?;
            }
            put(json!({ "seal": of_seal(seal) }))?;
            manifest.batches += 1;
            manifest.entries += rows.len() as u64;
            asked.tell.is(manifest.batches);
        }
    }
    let pruning = last_declared::<DB>(connection, names, true).await?;
    manifest.pruned = pruning.map_or(0, |(pruning, _)| pruning.to);
    manifest.sha256 = hasher.finalize().into();
    Ok(manifest)
}

fn entry<DB: TrailDatabase>(
    row: &DB::Row,
    batch: i64,
) -> Result<Json, idempotent_runtime::BoxError> {
    let (entry, mut line) = (Entry::read(row, 2)?, Map::new());
    line.insert("batch".to_owned(), batch.into());
    line.insert("place".to_owned(), row.number(0)?.into());
    line.insert(
        "leaf".to_owned(),
        row.bytes(1)?.map(|leaf| hex(&leaf)).into(),
    );
    for (field, _) in FIELDS {
        let value = match entry.get(field) {
            Some(Value::Number(number)) => (*number).into(),
            Some(Value::Text(text)) => text.clone().into(),
            Some(Value::Bytes(bytes)) => hex(bytes).into(),
            Some(Value::Null) | None => Json::Null,
        };
        line.insert(field.to_owned(), value);
    }
    Ok(line.into())
}

fn of_seal(seal: &Seal) -> Json {
    json!({
        "format": seal.format,
        "batch": seal.batch,
        "entries": seal.entries,
        "root": hex(&seal.root),
        "previous": hex(&seal.previous),
        "sealed": seal.sealed,
        "hash": hex(&seal.hash),
    })
}

//! Seals: a place for each entry, a tree over each batch, and a chain of batches.

use idempotent_runtime::{__audit::Row, BoxError, StoreError, StoreErrorKind};
use sqlx::{Connection as _, pool::PoolConnection};

use crate::{
    anchor::Anchor,
    asked::Asked,
    database::TrailDatabase,
    entry::{Entry, Sealed, Value, columns, encode},
    error::AuditError,
    merkle::{self, Hash, Tree},
    names::Names,
};

const SEALING: &str = "sealing the audit";

/// The version of the hashes.
pub(crate) const FORMAT: i64 = 1;

/// The seal of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) batch: i64,
    pub(crate) format: i64,
    pub(crate) entries: i64,
    pub(crate) root: Vec<u8>,
    /// The hash of the seal before.
    pub(crate) previous: Vec<u8>,
    /// When it was made, by the server's clock.
    pub(crate) sealed: i64,
    pub(crate) hash: Vec<u8>,
}

/// The columns of a seal, in this order.
pub(crate) const COLUMNS: &str = "batch, format, entries, root, previous, sealed, hash";

impl Seal {
    /// The seal of a tree, behind the one before.
    fn of(before: &Self, entries: usize, root: Hash, sealed: i64) -> Self {
        let seal = Self {
            batch: before.batch + 1,
            format: FORMAT,
            entries: i64::try_from(entries).unwrap_or(i64::MAX),
            root: root.into(),
            previous: before.hash.clone(),
            sealed,
            hash: Vec::new(),
        };
        seal.hashed()
    }

    /// The seal of nothing, behind which the chain begins.
    fn first(sealed: i64) -> Self {
        let none = Self {
            batch: -1,
            format: FORMAT,
            entries: 0,
            root: Vec::new(),
            previous: Vec::new(),
            sealed,
            hash: vec![0; 32],
        };
        Self::of(&none, 0, Tree::default().root(), sealed)
    }

    fn hashed(self) -> Self {
        let hash = self.computed().into();
        Self { hash, ..self }
    }

    /// The hash that it must have.
    pub(crate) fn computed(&self) -> Hash {
        merkle::seal(&encode(&[
            Value::Number(self.format),
            Value::Number(self.batch),
            Value::Number(self.entries),
            Value::Bytes(self.root.clone()),
            Value::Bytes(self.previous.clone()),
            Value::Number(self.sealed),
        ]))
    }

    pub(crate) fn read(row: &impl Row) -> Result<Self, BoxError> {
        let missing = || BoxError::from("a seal has a field that is NULL");
        let number = |place| row.number(place)?.ok_or_else(missing);
        let bytes = |place| row.bytes(place)?.ok_or_else(missing);
        Ok(Self {
            batch: number(0)?,
            format: number(1)?,
            entries: number(2)?,
            root: bytes(3)?,
            previous: bytes(4)?,
            sealed: number(5)?,
            hash: bytes(6)?,
        })
    }

    fn insert<DB: TrailDatabase>(&self, names: &Names) -> String {
        let (seals, root) = (names.seals(), DB::bytes(&self.root));
        let (previous, hash) = (DB::bytes(&self.previous), DB::bytes(&self.hash));
        let Self {
            batch,
            format,
            entries,
            sealed,
            ..
        } = self;
        format!(
            "INSERT INTO {seals} ({COLUMNS}) VALUES ({batch}, {format}, {entries}, {root}, {previous}, {sealed}, {hash})"
        )
    }
}

/// The next seals of a part, in their order.
pub(crate) async fn seals_after<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    asked: &Asked,
    last: Option<i64>,
) -> Result<Vec<Seal>, StoreError> {
    /// How many are read at once.
    const PAGE: u32 = 1_000;
    let seals = names.seals();
    let condition = asked.condition(&seals);
    let after = last.unwrap_or(0);
    let page = format!(
        "SELECT {COLUMNS} FROM {seals} WHERE batch > {after} AND {condition} ORDER BY batch LIMIT {PAGE}"
    );
    let rows = DB::query(connection, page, "reading the seals of the audit").await?;
    let page = rows.iter().map(|row| Seal::read(row).map_err(damaged));
    page.collect()
}

pub(crate) fn damaged(error: BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, SEALING).with_source(error)
}

/// Seals the entries that are open: as many as one transaction takes. Returns how many there were;
/// none also if another sealer is at it.
pub(crate) async fn seal_batch<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
) -> Result<usize, AuditError> {
    let failed = |error| DB::store_error(error, SEALING);
    // SQLite reads before it locks the file: an entry never changes.
    let read = match DB::HASHES_LATE {
        true => Some(open_entries::<DB>(connection, names).await?),
        false => None,
    };
    if read.as_ref().is_some_and(Vec::is_empty) {
        return Ok(0);
    }
    if let Some(before) = DB::BEFORE_SEALING {
        DB::query(connection, before.to_owned(), SEALING).await?;
    }
    let begun = connection.begin_with(DB::BEGIN_SEALING).await;
    let mut transaction = begun.map_err(failed)?;
    let sealed = seal_in::<DB>(&mut transaction, names, read).await;
    // Dropped, it would keep its locks until the connection is used again.
    let ended = match sealed {
        Ok(1..) => transaction.commit().await,
        _ => transaction.rollback().await,
    };
    let sealed = sealed?;
    ended.map_err(failed)?;
    Ok(sealed)
}

/// The same in a transaction, which is to be rolled back unless anything was sealed.
async fn seal_in<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    read: Option<Vec<Sealed>>,
) -> Result<usize, AuditError> {
    let Some((before, now)) = last_seal::<DB>(connection, names).await? else {
        return Ok(0);
    };
    let entries = match read {
        Some(read) => read,
        None => open_entries::<DB>(connection, names).await?,
    };
    if entries.is_empty() {
        return Ok(0);
    }
    let mut tree = Tree::default();
    for sealed in &entries {
        tree.push(sealed.leaf);
    }
    let seal = Seal::of(&before, entries.len(), tree.root(), now);
    let text = [
        DB::place_entries(names, seal.batch, &entries),
        seal.insert::<DB>(names),
    ];
    DB::query(connection, text.join("; "), SEALING).await?;
    let (table, batch) = (names.entries(), seal.batch);
    let count = format!("SELECT count(*) FROM {table} WHERE batch = {batch}");
    let rows = DB::query(connection, count, SEALING).await?;
    let count = rows.first().map(|row| row.number(0));
    let count = count.transpose().map_err(damaged)?.flatten();
    // If another one was quicker, its places stand.
    Ok(match count == Some(seal.entries) {
        true => entries.len(),
        false => 0,
    })
}

/// The last seal, locked, and the time; `None` if another sealer has it.
async fn last_seal<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<Option<(Seal, i64)>, AuditError> {
    let seals = names.seals();
    let lock = format!(
        "SELECT {COLUMNS}, {} FROM {seals} ORDER BY batch DESC LIMIT 1{}",
        DB::NOW,
        DB::LOCKED
    );
    let mut rows = match DB::query(connection, lock.clone(), SEALING).await {
        Err(error) if DB::is_locked(&error) => return Ok(None),
        rows => rows?,
    };
    if rows.is_empty() {
        let now = DB::query(connection, format!("SELECT {}", DB::NOW), SEALING).await?;
        let now = now.first().map(|row| row.number(0)).transpose();
        let first = Seal::first(now.map_err(damaged)?.flatten().unwrap_or_default());
        // Another sealer may make it at this moment.
        let first = DB::unless_there(first.insert::<DB>(names));
        DB::query(connection, first, SEALING).await?;
        rows = match DB::query(connection, lock, SEALING).await {
            Err(error) if DB::is_locked(&error) => return Ok(None),
            rows => rows?,
        };
    }
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let seal = Seal::read(row).map_err(damaged)?;
    let now = row.number(7).map_err(damaged)?.unwrap_or_default();
    // Between look and lock another one may have made a later one.
    let latest = format!("SELECT max(batch) FROM {seals}");
    let rows = DB::query(connection, latest, SEALING).await?;
    let latest = rows.first().map(|row| row.number(0)).transpose();
    let is_latest = latest.map_err(damaged)?.flatten() == Some(seal.batch);
    Ok(is_latest.then_some((seal, now)))
}

/// The first entries that have no place, in the order of their numbers.
async fn open_entries<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<Vec<Sealed>, AuditError> {
    let text = DB::open_entries(names, &columns());
    let rows = DB::query(connection, text, SEALING).await?;
    let read = rows.iter().map(|row| {
        let mut entry = Entry::read(row, 0)?;
        if DB::HASHES_LATE {
            entry.hash_late();
        }
        let leaf = entry.leaf();
        Ok(Sealed { entry, leaf })
    });
    let read: Result<_, BoxError> = read.collect();
    Ok(read.map_err(damaged)?)
}

/// The chain as it is now; `None` if nothing was sealed yet.
pub(crate) async fn anchor<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    store: &str,
) -> Result<Option<Anchor>, AuditError> {
    let seals = names.seals();
    let last = format!("SELECT {COLUMNS} FROM {seals} ORDER BY batch DESC LIMIT 1");
    let rows = DB::query(connection, last, SEALING).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let seal = Seal::read(row).map_err(damaged)?;
    let hash = seal.hash[..].try_into();
    let hash = hash.map_err(|_| damaged("a hash has not 32 bytes".into()))?;
    Ok(Some(Anchor::new(store, seal.batch, hash, seal.sealed)))
}

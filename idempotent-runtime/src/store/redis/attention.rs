//! The sorted sets of ids that need somebody. The script that writes a record moves its id. In a
//! cluster a second command does, because no script reaches two slots: it may get lost, and a purge
//! repairs the set.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use redis::Value;

use super::{
    Inner, RedisStore,
    link::Node,
    rows::{Cells, place},
    walk::{self, Walk},
};
use crate::{
    identity::RecordId,
    record::Record,
    store::{
        Handful, ListOrder, ListPosition, ListedPage, ListedRecord, RecordList, StoreError,
        StoreErrorKind,
        notifications::read_id,
        sql::{COLUMNS, Row, snapshot},
    },
};

const DOING: &str = "listing records";

/// How many records one script reads: the server does nothing else meanwhile.
const AT_ONCE: usize = 500;

/// The end of the purge of one record.
pub(super) enum Purged {
    Deleted(RecordId),
    /// It was missing in the set of what needs somebody.
    Repaired,
    Stays,
}

#[async_trait]
impl RecordList for RedisStore {
    /// Only what needs somebody has an order: Redis keeps everything else in none.
    async fn list(
        &self,
        order: ListOrder<'_>,
        after: Option<&ListPosition>,
        limit: u32,
    ) -> Result<Option<ListedPage>, StoreError> {
        if order != ListOrder::Attention || limit == 0 {
            return Ok(None);
        }
        let (after, limit) = (after.map(|after| after.id.to_hex()), limit as usize);
        let page = match self.inner.link.is_to_cluster() {
            true => self.merged(after, limit).await?,
            false => self.inner.attention(after, limit).await?,
        };
        Ok(Some(page))
    }

    /// In a cluster there is none: its nodes have an order each.
    async fn handful(
        &self,
        place: Option<u64>,
        operation: Option<&str>,
    ) -> Result<Option<Handful>, StoreError> {
        if self.inner.link.is_to_cluster() {
            return Ok(None);
        }
        let place = place.unwrap_or_default();
        let mut walk = Walk::at(&self.inner, place, walk::AT_ONCE, DOING).await?;
        let mut ids = walk.step().await?.unwrap_or_default();
        let (met, next) = (ids.len(), walk.goes_on()?);
        if let Some(operation) = operation {
            ids = self.inner.of_operation(ids, operation).await?;
        }
        let look = |inner: Arc<Inner>, id| async move { inner.looked_at(id, |_| true).await };
        let none = RecordId::from_bytes([0; 32]);
        let mut handful = Handful {
            now: self.inner.load(&none, DOING).await?.now,
            records: Vec::new(),
            damaged: 0,
            left_out: (met - ids.len()) as u64,
            next,
        };
        for found in walk::each(&self.inner, ids, look).await? {
            match found {
                Ok(Some((id, it))) => handful.records.push(ListedRecord::of(id, &it)),
                Ok(None) => {}
                Err(Damaged) => handful.damaged += 1,
            }
        }
        handful.records.sort_unstable_by_key(|listed| listed.id);
        Ok(Some(handful))
    }
}

impl RedisStore {
    /// A page of all sets of a cluster.
    async fn merged(&self, after: Option<String>, limit: usize) -> Result<ListedPage, StoreError> {
        let inner = &self.inner;
        let none = RecordId::from_bytes([0; 32]);
        let mut page = ListedPage {
            now: inner.load(&none, DOING).await?.now,
            records: Vec::new(),
            damaged: 0,
            is_last: false,
        };
        let mut after = after;
        while page.records.is_empty() && !page.is_last {
            let mut names = Vec::new();
            for set in inner.prefix.set_keys(true) {
                names.extend(inner.members(&set, after.as_deref(), limit, DOING).await?);
            }
            names.sort_unstable();
            names.truncate(limit);
            page.is_last = names.len() < limit;
            for some in names.chunks(walk::AT_ONCE) {
                let ids = some.iter().filter_map(|name| read_id(name));
                let look = |inner: Arc<Inner>, id| async move {
                    inner.looked_at(id, needs_somebody).await
                };
                for listed in walk::each(inner, ids, look).await? {
                    match listed {
                        Ok(Some((id, it))) => page.records.push(ListedRecord::of(id, &it)),
                        Ok(None) => {}
                        Err(Damaged) => page.damaged += 1,
                    }
                }
            }
            after = names.pop();
        }
        page.records.sort_unstable_by_key(|listed| listed.id);
        Ok(page)
    }

    /// Takes out of the sets what needs nobody any more, as where an older build has written. Tells
    /// the log how many names that were, with those that were `missing`.
    pub(super) async fn repair_sets(&self, missing: u64, doing: &'static str) {
        let mut repaired = missing;
        for set in self.inner.prefix.set_keys(self.inner.link.is_to_cluster()) {
            match self.repair_set(&set, doing).await {
                Ok(taken) => repaired += taken,
                Err(error) => {
                    tracing::warn!(set, %error, "the list of what needs somebody was not repaired");
                }
            }
        }
        if repaired > 0 {
            tracing::info!(repaired, "the list of what needs somebody was repaired");
        }
    }

    async fn repair_set(&self, set: &str, doing: &'static str) -> Result<u64, StoreError> {
        let (mut after, mut repaired) = (None::<String>, 0);
        loop {
            let after_it = after.as_deref();
            let names = self.inner.members(set, after_it, AT_ONCE, doing).await?;
            let ids = names.iter().filter_map(|name| read_id(name));
            for some in ids.collect::<Vec<_>>().chunks(walk::AT_ONCE) {
                let take =
                    move |inner: Arc<Inner>, id| async move { inner.takes(&id, doing).await };
                let taken = walk::each(&self.inner, some.iter().copied(), take).await?;
                repaired += taken.into_iter().filter(|is_taken| *is_taken).count() as u64;
            }
            if names.len() < AT_ONCE {
                return Ok(repaired);
            }
            after = names.into_iter().next_back();
        }
    }
}

impl Inner {
    /// Moves the id of a record whose write has been applied, if the script could not. A set that
    /// does not answer is repaired later.
    pub(super) async fn follow(&self, id: &RecordId, written: &Cells, doing: &'static str) {
        const MOVES: usize = 5;
        if !self.link.is_to_cluster() {
            return;
        }
        match written.number(MOVES) {
            Ok(Some(1)) => drop(self.adds(id, doing).await),
            Ok(Some(-1)) => drop(self.removes(id, doing).await),
            _ => {}
        }
    }

    /// Puts the id into its set in a cluster. Returns whether it was missing there.
    pub(super) async fn adds(&self, id: &RecordId, doing: &'static str) -> bool {
        let mut command = redis::cmd("ZADD");
        command.arg(self.prefix.set_key(id, true)).arg(0);
        command.arg(id.to_hex());
        let added = self.link.send(&command, &Node::Only, doing).await;
        if let Err(error) = &added {
            let id = id.to_hex();
            tracing::warn!(id, %error, "a record is missing in the list of what needs somebody");
        }
        matches!(added, Ok(Value::Int(1)))
    }

    /// Takes the id out of its set in a cluster, and puts it back if the record needs somebody by
    /// now. Returns whether it was there.
    async fn removes(&self, id: &RecordId, doing: &'static str) -> Result<bool, StoreError> {
        let mut command = redis::cmd("ZREM");
        command.arg(self.prefix.set_key(id, true)).arg(id.to_hex());
        let removed = self.link.send(&command, &Node::Only, doing).await? == Value::Int(1);
        let record = self.load(id, doing).await?.record;
        if record.is_some_and(|record| record.state.needs_attention()) {
            self.adds(id, doing).await;
        }
        Ok(removed)
    }

    /// Takes the id out of its set if the record needs nobody. Returns whether it did.
    async fn takes(&self, id: &RecordId, doing: &'static str) -> Result<bool, StoreError> {
        match self.run(&self.scripts.settled, id, &[], doing).await? {
            Value::Int(1) if self.link.is_to_cluster() => self.removes(id, doing).await,
            answer => Ok(answer == Value::Int(1)),
        }
    }

    /// The least names of a set behind `after`.
    async fn members(
        &self,
        set: &str,
        after: Option<&str>,
        limit: usize,
        doing: &'static str,
    ) -> Result<Vec<String>, StoreError> {
        let mut command = redis::cmd("ZRANGEBYLEX");
        command.arg(set).arg(least(after)).arg("+");
        command.arg("LIMIT").arg(0).arg(limit);
        let answer = self.link.send(&command, &Node::Only, doing).await?;
        redis::from_redis_value(answer)
            .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, doing).with_source(error))
    }

    /// Those of these records that are of an operation. A field costs less than a record.
    async fn of_operation(
        self: &Arc<Self>,
        ids: BTreeSet<RecordId>,
        operation: &str,
    ) -> Result<BTreeSet<RecordId>, StoreError> {
        let operation: Arc<str> = operation.into();
        let look = |inner: Arc<Inner>, id| {
            let operation = Arc::clone(&operation);
            async move {
                let mut command = redis::cmd("HGET");
                command.arg(inner.prefix.key(&id)).arg("operation");
                let answer = inner.link.send(&command, &Node::Only, DOING).await?;
                let name = redis::from_redis_value::<Vec<u8>>(answer);
                let is_it = name.is_ok_and(|name| name == operation.as_bytes());
                Ok(is_it.then_some(id))
            }
        };
        let found = walk::each(self, ids, look).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The record under an id that a set or a walk came by, if it is one of those that are `meant`.
    async fn looked_at(
        &self,
        id: RecordId,
        meant: fn(&Record) -> bool,
    ) -> Result<Result<Option<(RecordId, Arc<Record>)>, Damaged>, StoreError> {
        match self.load(&id, DOING).await {
            Ok(found) => {
                let record = found.record.filter(|record| meant(record));
                Ok(Ok(record.map(|record| (id, record))))
            }
            Err(error) if error.is_transient() => Err(error),
            Err(_) => Ok(Err(Damaged)),
        }
    }

    /// A page of the set of one server, so many records in a round trip.
    async fn attention(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<ListedPage, StoreError> {
        let set = self.prefix.set_keys(false).remove(0);
        let (mut after, mut page) = (after, None::<ListedPage>);
        loop {
            let listed = page.as_ref().map_or(0, |page| page.records.len());
            let some = AT_ONCE.min(limit - listed);
            let arguments = [least(after.as_deref()), some.to_string()];
            let arguments = arguments.map(|it| Cow::Owned(it.into_bytes()));
            let script = &self.scripts.attention;
            let answer = self.link.run(script, &set, &arguments, DOING).await?;
            let (next, last) = read_page(answer)?;
            let page = match &mut page {
                None => page.insert(next),
                Some(page) => {
                    page.records.extend(next.records);
                    page.damaged += next.damaged;
                    page.is_last = next.is_last;
                    page
                }
            };
            if page.is_last || page.records.len() >= limit {
                return Ok(page.clone());
            }
            after = last;
        }
    }
}

/// A record holds what no build of ours writes.
struct Damaged;

/// The range of a set that begins behind a name.
fn least(after: Option<&str>) -> String {
    after.map_or_else(|| "-".to_owned(), |name| format!("({name}"))
}

fn needs_somebody(record: &Record) -> bool {
    record.state.needs_attention()
}

/// The page that the script has answered, and the last name that it came by.
fn read_page(answer: Value) -> Result<(ListedPage, Option<String>), StoreError> {
    const HEAD: usize = 2;
    let Value::Array(mut parts) = answer else {
        return Err(Cells::unreadable(DOING));
    };
    let rows = parts.split_off(parts.len().min(HEAD));
    let head = Cells::of(Value::Array(parts), DOING)?;
    let last = head.text(0).ok().flatten().filter(|last| !last.is_empty());
    let mut page = ListedPage {
        now: snapshot(&head, place::NOW, HEAD, DOING)?.now,
        is_last: last.is_none(),
        damaged: 0,
        records: Vec::with_capacity(rows.len()),
    };
    for row in rows {
        match read_row(row) {
            Ok(listed) => page.records.extend(listed),
            Err(_) => page.damaged += 1,
        }
    }
    Ok((page, last))
}

fn read_row(row: Value) -> Result<Option<ListedRecord>, StoreError> {
    let cells = Cells::of(row, DOING)?;
    let id = cells.text(0).ok().flatten();
    let id = id.and_then(|id| read_id(&id));
    let cells = cells.with_id(&id.ok_or_else(|| Cells::unreadable(DOING))?);
    let found = snapshot(&cells, place::NOW, place::RECORD, DOING)?;
    let bytes = cells.number(place::RECORD + COLUMNS.len());
    let bytes = bytes.ok().flatten().unwrap_or_default();
    let needy = found.record.filter(|record| needs_somebody(record));
    Ok(id.zip(needy).map(|(id, record)| ListedRecord {
        id,
        record,
        outcome_bytes: bytes.unsigned_abs(),
    }))
}

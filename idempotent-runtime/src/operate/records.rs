//! Lists of records, by filters and pages.

use std::{collections::HashSet, sync::Arc, time::Duration};

use super::{
    cursor::{Place, RecordCursor},
    filter::Filter,
    row::RecordRow,
};
use crate::{
    duration::IntoDuration,
    error::Error,
    handle::Idempotency,
    key::{Key, KeyPart},
    record::{State, Time},
    store::{
        Handful, ListOrder, ListPosition, ListedPage, ListedRecord, StoreError, StoreErrorKind,
    },
};

/// How many records a page looks at, and how many a count counts.
pub(super) const MOST: u32 = 10_000;

/// How many handfuls one page takes at most: keys of other programs may stand between the records.
const MOST_HANDFULS: u32 = 1_000;

/// How many records a page looks at in any case, so that a damaged one does not fill it.
const LEAST: u32 = 100;

/// Lists records: [`Idempotency::records`] makes it. Without a filter it lists all of them.
///
/// Filters are joined by *and*. A list is no snapshot: records that are written meanwhile may be
/// shown as they were, or not at all.
///
/// # Cancel safety
///
/// It only reads.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Error, Idempotency, operate::State};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), idempotent_runtime::BoxError> {
/// # let idem = Idempotency::memory();
/// # let charge = idem.call("payments.charge").key("order-42").uncertain_errors();
/// # let _ = charge.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer"))).await;
///
/// let page = idem.records().attention().state(State::Uncertain).page(50).await?;
/// for row in page.rows {
///     let key = row.key.unwrap_or_default();
///     println!("{} {key} is {:?} since {:?}", row.operation, row.state, row.finished);
///     // The gateway's dashboard shows the charge.
///     let settle = idem.settle_id(row.id).await?.by("anna").because("dashboard, row 7");
///     settle.with_value(&"receipt-99").await?;
/// }
///
/// assert_eq!(idem.records().attention().count().await?.records, 0);
/// assert_eq!(idem.records().state(State::Done).count().await?.records, 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is listed until a page is asked for"]
pub struct Records<'a> {
    handle: &'a Idempotency,
    attention: bool,
    operation: Option<Arc<str>>,
    scope: Option<Result<Vec<u8>, Error>>,
    key: Option<Result<Vec<u8>, Error>>,
    state: Option<State>,
    older_than: Option<Result<Duration, Error>>,
    abandoned: bool,
    after: Option<RecordCursor>,
}

/// One page of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordPage {
    /// The records that every filter lets through.
    pub rows: Vec<RecordRow>,
    /// How many records the page has looked at: up to 10,000, and less than a handful more.
    pub looked: u64,
    /// How many of them hold what no build of ours writes. They are not in the rows.
    pub damaged: u64,
    /// The time by the store's clock.
    pub now: Time,
    /// The place where the list goes on; `None` at its end. A page may have no row and yet go on.
    pub next: Option<RecordCursor>,
}

/// A number of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordCount {
    /// How many records every filter lets through, of the first 10,000 that were looked at; on
    /// Redis, of some more.
    pub records: u64,
    /// Whether there are more records than were looked at: then there may be more that count.
    pub is_capped: bool,
}

impl Idempotency {
    /// Begins to list the records of the store, for operators.
    pub fn records(&self) -> Records<'_> {
        Records {
            handle: self,
            attention: false,
            operation: None,
            scope: None,
            key: None,
            state: None,
            older_than: None,
            abandoned: false,
            after: None,
        }
    }
}

impl Records<'_> {
    /// Only what needs somebody: records that are uncertain, parked or undoing, streams included,
    /// in the order of their ids. The SQL stores find them by an index, memory and Redis by a set.
    pub fn attention(mut self) -> Self {
        self.attention = true;
        self
    }

    /// Only records of this operation, the newest first, on stores that find them by an index:
    /// memory and the SQL stores. Others look at all records, which come in the order of their ids,
    /// and on Redis in the server's order.
    pub fn operation(mut self, name: &str) -> Self {
        self.operation = Some(name.into());
        self
    }

    /// Only records of this scope, as the attribute says it. It compares the readable text, so it
    /// finds none that a handle wrote which redacts keys.
    pub fn scope<S: KeyPart + ?Sized>(mut self, scope: &S) -> Self {
        self.scope = Some(readable("scope", scope));
        self
    }

    /// Only records of this key, likewise.
    pub fn key<K: KeyPart + ?Sized>(mut self, key: &K) -> Self {
        self.key = Some(readable("key", key));
        self
    }

    /// Only records in this state.
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Only records that were created at least so long ago, by the store's clock.
    pub fn older_than(mut self, age: impl IntoDuration) -> Self {
        self.older_than = Some(age.into_duration());
        self
    }

    /// Only records that are running past the end of their lease: the next call takes over, or
    /// leaves them uncertain. No index knows them, so that this is a look at every record.
    pub fn abandoned(mut self) -> Self {
        self.abandoned = true;
        self
    }

    /// Goes on behind a page before this one.
    pub fn after(mut self, cursor: RecordCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Lists at most `limit` records, 1 at least, and looks at 10,000 at most. A store that hands
    /// out records by handfuls, as Redis does, may list some more.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] when the key or the scope cannot be one, [`Error::InvalidPolicy`] when
    /// the age is no duration, [`Error::Store`] when the store fails.
    pub async fn page(&self, limit: u32) -> Result<RecordPage, Error> {
        let (filter, limit) = (self.filter()?, limit.max(1));
        let looks = match filter.is_open() {
            true => limit.clamp(LEAST, MOST),
            false => MOST,
        };
        let page = match self.look_past_damage(looks).await? {
            Looked::Listed(page) => page,
            Looked::Handful(first) => return self.walked(first, &filter, limit).await,
        };
        let mut rows = Vec::new();
        let (mut looked, mut next) = (0, None);
        for record in &page.records {
            if rows.len() >= limit as usize {
                break;
            }
            looked += 1;
            next = Some(RecordCursor(Place::Behind(record.position())));
            if filter.lets_through(&record.record, page.now) {
                rows.push(RecordRow::from(record));
            }
        }
        let is_through = looked == page.records.len() && page.is_last;
        Ok(RecordPage {
            rows,
            looked: looked as u64 + page.damaged,
            damaged: page.damaged,
            now: page.now,
            next: next.or(self.after).filter(|_| !is_through),
        })
    }

    /// A page of handfuls, each of them whole.
    async fn walked(
        &self,
        first: Handful,
        filter: &Filter<'_>,
        limit: u32,
    ) -> Result<RecordPage, Error> {
        let mut page = RecordPage {
            rows: Vec::new(),
            looked: 0,
            damaged: 0,
            now: first.now,
            next: None,
        };
        // The server may move a record about, and hand it out again.
        let (mut handful, mut met) = (first, HashSet::new());
        for handfuls in 1.. {
            page.damaged += handful.damaged;
            page.looked += handful.damaged + handful.left_out + handful.records.len() as u64;
            page.now = handful.now;
            let new = handful.records.iter().filter(|it| met.insert(it.id));
            let through = new.filter(|it| filter.lets_through(&it.record, page.now));
            page.rows.extend(through.map(RecordRow::from));
            page.next = handful.next.map(|next| RecordCursor(Place::At(next)));
            let is_full = page.rows.len() >= limit as usize
                || page.looked >= u64::from(MOST)
                || handfuls == MOST_HANDFULS;
            match handful.next.filter(|_| !is_full) {
                Some(next) => handful = self.handful(Some(next)).await?.ok_or_else(no_handful)?,
                None => break,
            }
        }
        Ok(page)
    }

    /// Counts the records, of the first 10,000 at most.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page).
    pub async fn count(&self) -> Result<RecordCount, Error> {
        let filter = self.filter()?;
        let page = match self.look(MOST + 1).await? {
            Looked::Listed(page) => page,
            Looked::Handful(first) => {
                let page = self.walked(first, &filter, u32::MAX).await?;
                return Ok(RecordCount {
                    records: page.rows.len() as u64,
                    is_capped: page.next.is_some(),
                });
            }
        };
        let most = MOST as usize;
        let counted = page.records.iter().take(most);
        let counted = counted.filter(|it| filter.lets_through(&it.record, page.now));
        Ok(RecordCount {
            records: counted.count() as u64,
            is_capped: !page.is_last || page.records.len() > most,
        })
    }

    /// The records that the store lists along its best index.
    async fn look(&self, limit: u32) -> Result<Looked, StoreError> {
        let after = match self.after {
            None => None,
            Some(RecordCursor(Place::Behind(position))) => Some(position),
            Some(RecordCursor(Place::At(place))) => {
                let handful = self.handful(Some(place)).await?;
                return handful.map(Looked::Handful).ok_or_else(no_handful);
            }
        };
        let order = match &self.operation {
            _ if self.attention => ListOrder::Attention,
            Some(name) => ListOrder::Operation(name),
            None => ListOrder::Everything,
        };
        // The filter drops what an index would have left out.
        let rest = match order {
            ListOrder::Everything => limit,
            _ => limit.max(MOST),
        };
        let store = self.handle.store();
        if let Some(lists) = store.lists() {
            if let Some(page) = lists.list(order, after.as_ref(), limit).await? {
                return Ok(Looked::Listed(page));
            }
            if after.is_none()
                && let Some(first) = self.handful(None).await?
            {
                return Ok(Looked::Handful(first));
            }
            let page = lists.list(ListOrder::Everything, after.as_ref(), rest);
            if let Some(page) = page.await? {
                return Ok(Looked::Listed(page));
            }
        }
        self.walk(after, rest).await.map(Looked::Listed)
    }

    /// The same, and more of them where none can be read.
    async fn look_past_damage(&self, limit: u32) -> Result<Looked, StoreError> {
        match self.look(limit).await {
            Err(error) if error.kind() == StoreErrorKind::Corrupt && limit < MOST => {
                self.look(MOST).await
            }
            looked => looked,
        }
    }

    async fn handful(&self, place: Option<u64>) -> Result<Option<Handful>, StoreError> {
        match self.handle.store().lists() {
            Some(lists) => lists.handful(place, self.operation.as_deref()).await,
            None => Ok(None),
        }
    }

    /// The records as a store without lists has them.
    async fn walk(
        &self,
        after: Option<ListPosition>,
        limit: u32,
    ) -> Result<ListedPage, StoreError> {
        let store = self.handle.store();
        let after = after.map(|after| after.id);
        let records = store.scan(after, limit).await?;
        let any = records.first().map(|(id, _)| *id).or(after);
        let any = any.unwrap_or_else(|| crate::identity::RecordId::from_bytes([0; 32]));
        let now = store.load(&any).await?.now;
        Ok(ListedPage {
            now,
            is_last: records.len() < limit as usize,
            damaged: 0,
            records: records
                .iter()
                .map(|(id, it)| ListedRecord::of(*id, it))
                .collect(),
        })
    }

    fn filter(&self) -> Result<Filter<'_>, Error> {
        // An index lists nothing else.
        Ok(Filter {
            attention: self.attention,
            operation: self.operation.as_deref(),
            scope: self.scope.as_ref().map(said).transpose()?,
            key: self.key.as_ref().map(said).transpose()?,
            state: self.state,
            older_than: self.older_than.clone().transpose()?,
            abandoned: self.abandoned,
            lists: self.handle.store().lists().is_some(),
        })
    }
}

/// The records that a store has listed, behind or at the cursor.
enum Looked {
    Listed(ListedPage),
    Handful(Handful),
}

/// The cursor is of another store.
fn no_handful() -> StoreError {
    StoreError::new(StoreErrorKind::Configuration, "listing records")
        .with_source("the cursor is of a list of another store")
}

/// The readable text of a key or a scope.
fn readable<K: KeyPart + ?Sized>(part: &'static str, given: &K) -> Result<Vec<u8>, Error> {
    let key = Key::from_part(given);
    let key = key.map_err(Error::invalid_key(&Arc::from("?"), part))?;
    Ok(key.into_readable())
}

fn said(given: &Result<Vec<u8>, Error>) -> Result<&[u8], Error> {
    given.as_deref().map_err(Clone::clone)
}

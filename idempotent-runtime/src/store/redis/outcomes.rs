//! Copies of finished records in Redis, for all processes.

use std::{borrow::Cow, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    RedisStore,
    prefix::PrimaryName,
    rows::{Cells, place},
    scripts::Text,
};
use crate::{
    identity::RecordId,
    record::Record,
    store::{
        OutcomeTier, StoreError, StoreErrorKind,
        sql::{self, COLUMNS},
    },
};

/// Copies of finished outcomes in Redis or Valkey: the fast tier that processes share.
///
/// It decides nothing, so what [Redis can lose](RedisStore#what-redis-can-lose) is lost without
/// harm, and any `maxmemory-policy` will do: if memory is used up and Redis evicts nothing, nothing
/// new is copied. Each copy is a hash of its own under `idempotent:outcome@<primary>:<id>`, with an
/// expiry; a store with the same [prefix](super::RedisBuilder::key_prefix) is not disturbed by it.
/// An outcome takes about 1.9 KB and its bytes; one of more than 64 KiB is not copied, unless
/// [`largest`](Self::largest) says otherwise. A copy that cannot be read is as good as none, and
/// the next one takes its place.
///
/// # The name of the primary store
///
/// A record's id is made of operation, scope and key. Two services, or two stages of one, may have
/// the same ones in databases of their own. A Redis that both reach would answer one with the
/// outcomes of the other. So the store that decides has a name, which stands in the key of every
/// copy. All processes in front of one store say the same name. No two stores that reach one Redis
/// with the same prefix have one name. Two schemas of a database are two stores, and so are two
/// table prefixes. A store that was restored from a backup is another one: it has forgotten
/// outcomes of which there are copies.
///
/// # Examples
///
/// ```no_run
/// # use idempotent_runtime::{Idempotency, MemoryStore, store::{RedisOutcomes, RedisStore, TieredStore}};
/// # async fn set_up(primary: MemoryStore) -> Result<(), idempotent_runtime::BoxError> {
/// let redis = RedisStore::connect("redis://localhost").await?;
/// let outcomes = RedisOutcomes::new(&redis, "payments-eu")?;
/// Idempotency::new(TieredStore::new(primary, outcomes)).install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RedisOutcomes {
    store: RedisStore,
    primary: PrimaryName,
    largest: usize,
}

impl RedisOutcomes {
    /// Puts copies where `store` would put records, over its connection. `primary` names the store
    /// that they are copies from: 1 to 64 ASCII letters, digits and `.`, `_`, `-`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`] for a name that cannot be used.
    pub fn new(store: &RedisStore, primary: &str) -> Result<Self, StoreError> {
        let primary = PrimaryName::new(primary).map_err(|unusable| {
            StoreError::new(
                StoreErrorKind::Configuration,
                "naming the primary store behind copies",
            )
            .with_source(unusable)
        })?;
        Ok(Self {
            store: store.clone(),
            primary,
            largest: LARGEST,
        })
    }

    /// Sets how many bytes an encoded outcome may have to be copied. If Redis does not give one
    /// within the [patience](crate::store::TieredStore::builder), all copies are left alone for a
    /// while, and all callers share the connection.
    #[must_use]
    pub fn largest(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    async fn look(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError> {
        const DOING: &str = "looking for a copy of a record";
        let scripts = &self.store.inner.scripts;
        let answer = self.run(&scripts.load, id, &[], DOING).await?;
        let cells = Cells::of(answer, DOING)?.with_id(id);
        let snapshot = sql::snapshot(&cells, place::NOW, place::RECORD, DOING)?;
        Ok(snapshot.record)
    }

    async fn run(
        &self,
        script: &Text,
        id: &RecordId,
        arguments: &[Cow<'_, [u8]>],
        doing: &'static str,
    ) -> Result<redis::Value, StoreError> {
        let inner = &self.store.inner;
        let key = inner.prefix.outcome_key(&self.primary, id);
        inner.link.run(script, &key, arguments, doing).await
    }
}

#[async_trait]
impl OutcomeTier for RedisOutcomes {
    async fn find(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError> {
        match self.look(id).await {
            Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                tracing::warn!(%error, "a copy of a record cannot be read, and is as good as none");
                Ok(None)
            }
            answer => answer,
        }
    }

    async fn put(
        &self,
        id: &RecordId,
        record: &Arc<Record>,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        const DOING: &str = "putting a copy of a record";
        let outcome = record.outcome.as_ref();
        if outcome.is_some_and(|outcome| outcome.bytes.len() > self.largest) {
            return self.forget(id).await;
        }
        let at_most = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX);
        // Redis takes no moment beyond its clock, and none that is over already.
        let at_most = at_most.clamp(1, LONGEST);
        let mut arguments = vec![Cow::Owned(at_most.to_string().into_bytes())];
        for (name, value) in fields(record) {
            arguments.extend([Cow::Borrowed(name.as_bytes()), value]);
        }
        let scripts = &self.store.inner.scripts;
        self.run(&scripts.put, id, &arguments, DOING)
            .await
            .map(drop)
    }

    async fn forget(&self, id: &RecordId) -> Result<(), StoreError> {
        const DOING: &str = "forgetting a copy of a record";
        let scripts = &self.store.inner.scripts;
        self.run(&scripts.forget, id, &[], DOING).await.map(drop)
    }
}

/// How many bytes an outcome may have to be copied, unless the application says otherwise.
const LARGEST: usize = 64 * 1024;

/// A hundred years, in milliseconds.
const LONGEST: u64 = 100 * 366 * 24 * 60 * 60 * 1000;

/// The columns of a record except its id, which stands in the key; absent ones are left out.
fn fields(record: &Record) -> impl Iterator<Item = (&'static str, Cow<'_, [u8]>)> {
    let number = |number: i64| Some(Cow::Owned(number.to_string().into_bytes()));
    let token = Cow::Owned(record.token.as_u64().to_string().into_bytes());
    let (subject, holder) = (&record.subject, &record.holder);
    let (outcome, note) = (record.outcome.as_ref(), record.note.as_deref());
    let trace_parent = holder.trace_parent.as_deref().map(str::as_bytes);
    let values = [
        Some(Cow::Owned(record.version.to_bytes().to_vec())),
        Some(Cow::Borrowed(subject.operation.as_bytes())),
        Some(Cow::Borrowed(&*subject.scope)),
        Some(Cow::Borrowed(&*subject.key)),
        Some(Cow::Owned(
            subject.fingerprint.fingerprint().as_bytes().to_vec(),
        )),
        Some(Cow::Owned(subject.fingerprint.digests().to_bytes())),
        number(record.state.code().into()),
        Some(token),
        number(record.attempt.into()),
        Some(Cow::Owned(record.attempt_id.to_bytes().to_vec())),
        Some(Cow::Borrowed(holder.label.as_bytes())),
        trace_parent.map(Cow::Borrowed),
        number(record.on_crash.code().into()),
        number(record.lease_end.as_micros()),
        number(record.created.as_micros()),
        record.finished.and_then(|at| number(at.as_micros())),
        number(record.expires.as_micros()),
        outcome.and_then(|outcome| number(outcome.kind.code().into())),
        outcome.and_then(|outcome| number(outcome.schema.into())),
        outcome.map(|outcome| Cow::Borrowed(&*outcome.bytes)),
        note.map(|note| Cow::Borrowed(note.text.as_bytes())),
        note.and_then(|note| Some(Cow::Borrowed(note.by.as_deref()?.as_bytes()))),
        note.map(|_| Cow::Owned(record.version.to_bytes().to_vec())),
    ];
    COLUMNS[1..]
        .iter()
        .zip(values)
        .filter_map(|(name, value)| Some((*name, value?)))
}

//! The one front of all SQL stores: work that others wait for goes to a task of its own, unless
//! there is a permit to do it in the caller's.

/// Makes a store of what its clones share, `inner`, and of the methods `heartbeats` and `$wait`. The
/// last two of a server do together what comes together.
macro_rules! sql_store {
    ($store:ident, $database:ident, name: $name:literal, wait: $wait:ident, one_writer: $one_writer:literal $(, together: ($pass_look:ident, $pass_swap:ident))?) => {
        const _: () = {
            use std::{sync::Arc, time::Duration};

            use async_trait::async_trait;
            use $crate::{
                identity::RecordId,
                record::{Draft, ListedStep, Record, Step, StepName, StepNames, Version},
                store::{
                    JoinedConnection, ListOrder, ListPosition, ListedPage, RecordList, Snapshot,
                    StepStore, StepWrite, Store, StoreError, StoreHealth, Swap, TransactionStore,
                    spawned::spawned,
                    sql::{Dialect, Reads, heads, list},
                    waiters::look::PollInterval,
                },
            };

            impl $store {
                /// Makes the store's tables, or brings them up to date. Safe at every start, also
                /// of several processes at once, and apart from the application's own migrations.
                ///
                /// Tables of an earlier build get the columns and the index that they lack, which
                /// needs the rights of their owner. Writes wait while an index is made, so make a
                /// large one beforehand: `CREATE INDEX CONCURRENTLY` on Postgres, as `ddl` has it.
                /// Builds of both kinds may work beside each other, before and after.
                ///
                /// Call it again after all tables were emptied, as a test suite does between its
                /// tests. The store is another one then, and refuses transactions of the
                /// application's until it is called.
                ///
                /// # Errors
                ///
                /// [`Schema`] where a newer release left no room for this one or a table is gone,
                /// [`Denied`] where the tables may not be made, [`Busy`] where another process
                /// migrates for longer than 30 seconds or keeps a file locked, [`Unavailable`]
                /// where the database does not tell in time what is there.
                ///
                /// [`Schema`]: crate::store::StoreErrorKind::Schema
                /// [`Denied`]: crate::store::StoreErrorKind::Denied
                /// [`Busy`]: crate::store::StoreErrorKind::Busy
                /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
                pub async fn migrate(&self) -> Result<(), StoreError> {
                    self.inner.migrate().await
                }

                /// Tells whether this build can use the tables, for people who run their own
                /// migrations.
                ///
                /// # Errors
                ///
                /// [`Schema`](crate::store::StoreErrorKind::Schema) where one of them is missing,
                /// they are older, or a newer release left no room for this one.
                pub async fn check_schema(&self) -> Result<(), StoreError> {
                    self.inner.check_schema().await
                }

                /// The statements that [`migrate`](Self::migrate) runs on an empty database, for
                /// people who run their own migrations.
                #[must_use]
                pub fn ddl(&self) -> String {
                    $crate::store::sql::migrate::ddl::<sqlx::$database>(&self.inner.prefix)
                }

                async fn look_at_steps(
                    &self,
                    call: &RecordId,
                    names: &StepNames,
                    reads: Reads,
                ) -> Result<Vec<Arc<Step>>, StoreError> {
                    let Some(_permit) = self.inner.inline_permit() else {
                        let (inner, call, names) = (Arc::clone(&self.inner), *call, names.clone());
                        let loading = async move { inner.load_steps(&call, &names, reads).await };
                        return spawned("loading steps", loading).await;
                    };
                    self.inner.load_steps(call, names, reads).await
                }

                /// Waits for a change of which no notification comes.
                async fn wait_alone(
                    &self,
                    id: &RecordId,
                    seen: Version,
                    at_most: Duration,
                ) -> Result<(), StoreError> {
                    let waiting = self
                        .inner
                        .waiters
                        .wait(self, id, seen, at_most, || PollInterval::POLLING);
                    waiting.await
                }
            }

            #[async_trait]
            impl Store for $store {
                async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
                    $(let _alone = match self.inner.$pass_look(id).await {
                        $crate::store::lane::Passed::Answered(answer) => return answer,
                        $crate::store::lane::Passed::Alone(alone) => alone,
                    };)?
                    let Some(_permit) = self.inner.inline_permit() else {
                        let (inner, id) = (Arc::clone(&self.inner), *id);
                        return spawned("loading a record", async move { inner.load(&id).await })
                            .await;
                    };
                    self.inner.load(id).await
                }

                async fn swap(
                    &self,
                    id: &RecordId,
                    seen: Option<Version>,
                    next: &Draft,
                ) -> Result<Swap, StoreError> {
                    $(let _alone = match self.inner.$pass_swap(id, seen, next).await {
                        $crate::store::lane::Passed::Answered(answer) => return answer,
                        $crate::store::lane::Passed::Alone(alone) => alone,
                    };)?
                    let Some(_permit) = self.inner.inline_permit() else {
                        let (inner, id, next) = (Arc::clone(&self.inner), *id, next.clone());
                        let swapping = async move { inner.swap(&id, seen, &next).await };
                        return spawned("writing a record", swapping).await;
                    };
                    self.inner.swap(id, seen, next).await
                }

                async fn wait(
                    &self,
                    id: &RecordId,
                    seen: Version,
                    at_most: Duration,
                ) -> Result<(), StoreError> {
                    self.$wait(id, seen, at_most).await
                }

                async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
                    let inner = Arc::clone(&self.inner);
                    let purging = async move { inner.purge(limit, keep).await };
                    spawned("purging expired records", purging).await
                }

                async fn scan(
                    &self,
                    after: Option<RecordId>,
                    limit: u32,
                ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
                    let inner = Arc::clone(&self.inner);
                    let listing = async move { inner.scan(after, limit).await };
                    spawned("listing records", listing).await
                }

                async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
                    self.heartbeats().await
                }

                fn steps(&self) -> Option<&dyn StepStore> {
                    Some(self)
                }

                fn lists(&self) -> Option<&dyn RecordList> {
                    Some(self)
                }

                fn transactions(&self) -> Option<&dyn TransactionStore> {
                    Some(self)
                }

                fn name(&self) -> &'static str {
                    $name
                }

                fn health(&self) -> StoreHealth {
                    self.inner.health()
                }
            }

            #[async_trait]
            impl RecordList for $store {
                async fn list(
                    &self,
                    order: ListOrder<'_>,
                    after: Option<&ListPosition>,
                    limit: u32,
                ) -> Result<Option<ListedPage>, StoreError> {
                    let inner = Arc::clone(&self.inner);
                    let text = list::text::<sqlx::$database>(&inner.prefix, order, after, limit);
                    let listing = async move { inner.list(text, limit).await };
                    spawned(list::DOING, listing).await.map(Some)
                }
            }

            #[async_trait]
            impl StepStore for $store {
                async fn load_steps(
                    &self,
                    call: &RecordId,
                    names: &StepNames,
                ) -> Result<Vec<Arc<Step>>, StoreError> {
                    self.look_at_steps(call, names, Reads::Whole).await
                }

                async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
                    let steps = self.look_at_steps(call, &StepName::ALL, Reads::Heads);
                    Ok(heads(&steps.await?))
                }

                async fn write_step(
                    &self,
                    call: &RecordId,
                    seen: Option<Version>,
                    next: &Step,
                ) -> Result<StepWrite, StoreError> {
                    let Some(_permit) = self.inner.inline_permit() else {
                        let (inner, call, next) = (Arc::clone(&self.inner), *call, next.clone());
                        let writing = async move { inner.write_step(&call, seen, &next).await };
                        return spawned("writing a step", writing).await;
                    };
                    self.inner.write_step(call, seen, next).await
                }
            }

            #[async_trait]
            impl TransactionStore for $store {
                async fn swap_in(
                    &self,
                    connection: &mut JoinedConnection<'_>,
                    id: &RecordId,
                    seen: Option<Version>,
                    next: &Draft,
                ) -> Result<Swap, StoreError> {
                    let swapping = self.inner.swap_in(self, connection, id, seen, next);
                    swapping.await
                }

                fn version_query(&self, id: &RecordId) -> Option<String> {
                    let id = <sqlx::$database as Dialect>::bytes(id.as_bytes());
                    let prefix = &self.inner.prefix;
                    Some(format!(
                        "SELECT version FROM {prefix}records WHERE id = {id}"
                    ))
                }

                async fn store_id(&self) -> Result<Option<String>, StoreError> {
                    let inner = Arc::clone(&self.inner);
                    let looking = async move { inner.store_id().await.map(Some) };
                    spawned("looking for the store", looking).await
                }

                fn one_writer(&self) -> bool {
                    $one_writer
                }

                async fn write_step_in(
                    &self,
                    connection: &mut JoinedConnection<'_>,
                    call: &RecordId,
                    seen: Option<Version>,
                    next: &Step,
                ) -> Result<StepWrite, StoreError> {
                    let writing = self.inner.write_step_in(self, connection, call, seen, next);
                    writing.await
                }
            }
        };
    };
}
pub(crate) use sql_store;

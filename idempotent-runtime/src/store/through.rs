//! A wrapper of a store whose calls pass through it on their way.

/// Implements [`Store`](crate::store::Store) and [`StepStore`](crate::store::StepStore) for a
/// wrapper that has a store `inner`. A call goes `through` the wrapper, with its kind of this enum,
/// and a swap goes `through_write`, with its draft. The wrapper's own methods of `Store` stand in
/// the braces.
macro_rules! through {
    ($wrapper:ident, $kind:ident { $($own:tt)* }) => {
        const _: () = {
            use crate::{
                record::{ListedStep, Record, Step, StepNames, Version},
                store::{
                    Handful, ListOrder, ListPosition, ListedPage, RecordList, Snapshot, StepStore, StepWrite,
                    StoreHealth, Swap,
                },
            };

            impl $wrapper {
                fn inner_steps(&self) -> &dyn StepStore {
                    let steps = self.inner.steps();
                    steps.expect("`steps` offers what the store inside does")
                }
            }

            #[async_trait]
            impl Store for $wrapper {
                async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
                    self.through($kind::Load, self.inner.load(id)).await
                }

                async fn swap(
                    &self,
                    id: &RecordId,
                    seen: Option<Version>,
                    next: &Draft,
                ) -> Result<Swap, StoreError> {
                    self.through_write(next, self.inner.swap(id, seen, next)).await
                }

                async fn wait(
                    &self,
                    id: &RecordId,
                    seen: Version,
                    at_most: Duration,
                ) -> Result<(), StoreError> {
                    let waiting = self.inner.wait(id, seen, at_most);
                    self.through($kind::Wait, waiting).await
                }

                async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
                    let purging = self.inner.purge(limit, keep);
                    self.through($kind::Purge, purging).await
                }

                async fn scan(
                    &self,
                    after: Option<RecordId>,
                    limit: u32,
                ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
                    let listing = self.inner.scan(after, limit);
                    self.through($kind::Scan, listing).await
                }

                fn name(&self) -> &'static str {
                    self.inner.name()
                }

                fn health(&self) -> StoreHealth {
                    self.inner.health()
                }

                fn lists(&self) -> Option<&dyn RecordList> {
                    self.inner.lists().map(|_| self as _)
                }

                fn steps(&self) -> Option<&dyn StepStore> {
                    self.inner.steps().map(|_| self as _)
                }

                $($own)*
            }

            #[async_trait]
            impl RecordList for $wrapper {
                async fn list(
                    &self,
                    order: ListOrder<'_>,
                    after: Option<&ListPosition>,
                    limit: u32,
                ) -> Result<Option<ListedPage>, StoreError> {
                    let lists = self.inner.lists();
                    let lists = lists.expect("`lists` offers what the store inside does");
                    let listing = lists.list(order, after, limit);
                    self.through($kind::Scan, listing).await
                }

                async fn handful(
                    &self,
                    place: Option<u64>,
                    operation: Option<&str>,
                ) -> Result<Option<Handful>, StoreError> {
                    let lists = self.inner.lists();
                    let lists = lists.expect("`lists` offers what the store inside does");
                    let listing = lists.handful(place, operation);
                    self.through($kind::Scan, listing).await
                }
            }

            #[async_trait]
            impl StepStore for $wrapper {
                async fn load_steps(
                    &self,
                    call: &RecordId,
                    names: &StepNames,
                ) -> Result<Vec<Arc<Step>>, StoreError> {
                    let loading = self.inner_steps().load_steps(call, names);
                    self.through($kind::LoadSteps, loading).await
                }

                async fn list_steps(
                    &self,
                    call: &RecordId,
                ) -> Result<Vec<ListedStep>, StoreError> {
                    let listing = self.inner_steps().list_steps(call);
                    self.through($kind::LoadSteps, listing).await
                }

                async fn write_step(
                    &self,
                    call: &RecordId,
                    seen: Option<Version>,
                    next: &Step,
                ) -> Result<StepWrite, StoreError> {
                    let writing = self.inner_steps().write_step(call, seen, next);
                    self.through($kind::WriteStep, writing).await
                }
            }
        };
    };
}

/// Implements [`TransactionStore`](crate::store::TransactionStore) for the same wrapper.
macro_rules! transactions_through {
    ($wrapper:ident, $kind:ident) => {
        const _: () = {
            use crate::{
                record::{Step, Version},
                store::{JoinedConnection, StepWrite, Swap, TransactionStore},
            };

            impl $wrapper {
                fn inner_transactions(&self) -> &dyn TransactionStore {
                    let transactions = self.inner.transactions();
                    transactions.expect("`transactions` offers what the store inside does")
                }
            }

            #[async_trait]
            impl TransactionStore for $wrapper {
                async fn swap_in(
                    &self,
                    connection: &mut JoinedConnection<'_>,
                    id: &RecordId,
                    seen: Option<Version>,
                    next: &Draft,
                ) -> Result<Swap, StoreError> {
                    let inner = self.inner_transactions();
                    let swapping = inner.swap_in(connection, id, seen, next);
                    self.through_write(next, swapping).await
                }

                fn version_query(&self, id: &RecordId) -> Option<String> {
                    self.inner_transactions().version_query(id)
                }

                async fn store_id(&self) -> Result<Option<String>, StoreError> {
                    self.inner_transactions().store_id().await
                }

                fn one_writer(&self) -> bool {
                    self.inner_transactions().one_writer()
                }

                async fn write_step_in(
                    &self,
                    connection: &mut JoinedConnection<'_>,
                    call: &RecordId,
                    seen: Option<Version>,
                    next: &Step,
                ) -> Result<StepWrite, StoreError> {
                    let inner = self.inner_transactions();
                    let writing = inner.write_step_in(connection, call, seen, next);
                    self.through($kind::WriteStep, writing).await
                }
            }
        };
    };
}

pub(crate) use {through, transactions_through};

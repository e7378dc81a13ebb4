//! A wrapper of a store that does some of its methods otherwise.

/// Implements [`Store`](super::Store) for a wrapper. Its own methods stand in the braces, and the
/// other ones go to the store inside.
macro_rules! forward {
    (impl[$($generics:tt)*] $wrapper:ty, |$it:ident| $inside:expr, { $($own:tt)* }) => {
        #[async_trait]
        impl<$($generics)*> Store for $wrapper {
            $($own)*

            async fn wait(
                &self,
                id: &RecordId,
                seen: Version,
                at_most: Duration,
            ) -> Result<(), StoreError> {
                let $it = self;
                $inside.wait(id, seen, at_most).await
            }

            async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
                let $it = self;
                $inside.purge(limit, keep).await
            }

            async fn scan(
                &self,
                after: Option<RecordId>,
                limit: u32,
            ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
                let $it = self;
                $inside.scan(after, limit).await
            }

            fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
                let $it = self;
                $inside.accepts(on_crash)
            }

            fn steps(&self) -> Option<&dyn StepStore> {
                let $it = self;
                $inside.steps()
            }

            fn lists(&self) -> Option<&dyn $crate::store::RecordList> {
                let $it = self;
                $inside.lists()
            }

            fn name(&self) -> &'static str {
                let $it = self;
                $inside.name()
            }

            fn health(&self) -> $crate::store::StoreHealth {
                let $it = self;
                $inside.health()
            }

            fn transactions(&self) -> Option<&dyn TransactionStore> {
                let $it = self;
                $inside.transactions()
            }
        }
    };
}

pub(super) use forward;

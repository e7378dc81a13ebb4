//! Builders that do their work when they are awaited.

/// Writes the `IntoFuture` of a builder: awaited, it runs.
macro_rules! awaited {
    ([$($generics:tt)*] $builder:ty => $output:ty) => {
        impl<'a, $($generics)*> IntoFuture for $builder {
            type Output = $output;
            type IntoFuture =
                std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.run())
            }
        }
    };
}
pub(crate) use awaited;

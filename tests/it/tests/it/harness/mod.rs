//! The surroundings of a scenario: one body, every store.
//!
//! A scenario is an `async fn(World)`, listed once in [`on_every_store!`]; it then runs over every
//! store that needs no server. Time stands still until the scenario moves it, and it waits for
//! events, never for time.

mod drafts;
#[cfg(unix)]
mod library;
mod log;
mod owner;
mod said;
mod world;

use std::time::Duration;

use idempotent_runtime::{
    BoxError, Error, NotSettled, StoreError, StoreErrorKind, testing::ManualClock,
};
use tokio::runtime::Runtime;

#[cfg(unix)]
pub(crate) use self::library::library;
pub(crate) use self::{
    drafts::{abandoned, applied, claim, completion, heartbeat, only},
    log::{Event, Log},
    owner::Owner,
    said::{Said, runtime_in_the_background, said_during, said_in_the_background},
    world::World,
};

/// Makes a test of each of these scenarios on each store: `memory::a01_…`, `sqlite_file::a01_…`.
macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        on_every_store! { @on memory [] [$($scenario)*] }
        on_every_store! { @on memory_at_hand [] [$($scenario)*] }
        on_every_store! { @on sqlite_memory [] [$($scenario)*] }
        on_every_store! { @on sqlite_file [] [$($scenario)*] }
        on_every_store! { @on postgres [#[ignore = "needs a server: cargo xtask test"]] [$($scenario)*] }
        on_every_store! { @on mariadb [#[ignore = "needs a server: cargo xtask test"]] [$($scenario)*] }
        on_every_store! { @on redis [#[ignore = "needs a server: cargo xtask test"]] [$($scenario)*] }
        on_every_store! { @on redis_cluster [#[ignore = "needs a server: cargo xtask test"]] [$($scenario)*] }
    };
    (@on $store:ident $attributes:tt [$($scenario:ident)*]) => {
        mod $store {
            on_every_store! { @each $store [$([$scenario $attributes])*] }
        }
    };
    (@each $store:ident [$([$scenario:ident [$($attribute:tt)*]])*]) => {
        $(
            $($attribute)*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                let world = crate::harness::World::$store().await;
                crate::harness::in_time(super::$scenario(world)).await;
            }
        )*
    };
}

/// Why nothing was settled; `None` if something was.
pub(crate) fn not_settled<E: Into<BoxError>>(settled: Result<(), E>) -> Option<NotSettled> {
    let error = settled.err()?.into();
    match error.downcast_ref() {
        Some(Error::NotSettled { reason, .. }) => Some(*reason),
        _ => panic!("{error}"),
    }
}

/// Lets the time of a handle go on until `work` is done, so that retries take place.
pub(crate) async fn while_time_goes_on<F>(timer: &ManualClock, work: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut work = tokio::spawn(work);
    loop {
        // This wait is longer than any store takes, so only a retry is late.
        match tokio::time::timeout(Duration::from_millis(1), &mut work).await {
            Ok(done) => return done.expect("no panic"),
            Err(_) => timer.advance(Duration::from_millis(5)),
        }
    }
}

/// Asserts that this refusal names the missing records table of this prefix.
pub(crate) fn says_that_it_is_missing(refused: Result<(), StoreError>, table: &str) {
    let error = refused.expect_err("a table is gone");
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    let said = std::error::Error::source(&error).map(ToString::to_string);
    let named = format!("the table `{table}` is missing");
    assert!(
        said.as_ref().is_some_and(|said| said.starts_with(&named)),
        "{said:?}"
    );
}

/// A runtime of its own, with so many threads.
pub(crate) fn runtime(threads: usize) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(threads).enable_all();
    builder.build().expect("a runtime")
}

/// A runtime of its own on the thread at hand.
pub(crate) fn runtime_here() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// Ends a scenario that waits for an event that never comes. It then fails with a message, instead
/// of hanging.
pub(crate) async fn in_time<F: Future>(scenario: F) -> F::Output {
    let longest = match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => Duration::from_secs(300),
        _ => Duration::from_secs(60),
    };
    tokio::time::timeout(longest, scenario)
        .await
        .expect("the scenario waits for something that never happens")
}

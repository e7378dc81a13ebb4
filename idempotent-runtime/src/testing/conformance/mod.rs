//! The duties of every store, as a suite that any store can run.
//!
//! A store's test is a [`StoreUnderTest`], which says how to reach the store, and one line:
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//! use async_trait::async_trait;
//! use idempotent_runtime::{store::{MemoryStore, Store}, testing::{ManualClock, conformance::StoreUnderTest}};
//!
//! struct Memory { store: Arc<MemoryStore>, clock: ManualClock }
//!
//! impl Memory {
//!     fn new() -> Self {
//!         let clock = ManualClock::new();
//!         Self { store: Arc::new(MemoryStore::with_clock(clock.clone())), clock }
//!     }
//! }
//!
//! #[async_trait]
//! impl StoreUnderTest for Memory {
//!     async fn store(&self) -> Arc<dyn Store> { self.store.clone() }
//!     async fn advance(&self, by: Duration) { self.clock.advance(by); }
//! }
//!
//! idempotent_runtime::conformance_tests!(Memory::new());
//! ```
//!
//! [`conformance_tests!`](crate::conformance_tests) makes one test of each case; [`run_all`] runs
//! them in a row where there is no test harness. Every case begins on an empty store.

mod cells;
mod clocks;
mod crowds;
mod fields;
mod histories;
mod owners;
mod purges;
pub(crate) mod sample;
mod scans;
mod step_notes;
pub(crate) mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod waits;

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::store::Store;

/// A store under test, empty at first.
#[async_trait]
pub trait StoreUnderTest: Send + Sync {
    /// Gives a client of the same records that shares as little as possible with those given
    /// before: connections of its own, where the store has connections.
    async fn store(&self) -> Arc<dyn Store>;

    /// Moves the store's clock on, so that the records show it: by a manual clock, or by ageing the
    /// records that stand there. To age them, take `by` away from `lease_end`, `created`,
    /// `finished` and `expires` of every record, and from the moment that tells the life of a step.
    async fn advance(&self, by: Duration);
}

#[async_trait]
impl<S: StoreUnderTest + ?Sized> StoreUnderTest for Arc<S> {
    async fn store(&self) -> Arc<dyn Store> {
        (**self).store().await
    }
    async fn advance(&self, by: Duration) {
        (**self).advance(by).await;
    }
}

/// One thing that every store must do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    name: &'static str,
    begin: fn(Arc<dyn StoreUnderTest>) -> JoinHandle<()>,
}

impl Case {
    /// The name of the case, which is that of its test.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the case on an empty store.
    ///
    /// # Panics
    ///
    /// It panics if the store fails the case.
    pub async fn run(&self, subject: Arc<dyn StoreUnderTest>) {
        if let Err(ended) = (self.begin)(subject).await {
            resume_unwind(ended.into_panic());
        }
    }
}

/// Every case, by name.
#[must_use]
pub fn cases() -> Vec<Case> {
    crate::conformance_tests!(@with list [])
}

/// Runs the case of this name, for [`conformance_tests!`](crate::conformance_tests).
#[doc(hidden)]
pub async fn run_named<S: StoreUnderTest + 'static>(name: &str, subject: S) {
    let case = cases().into_iter().find(|case| case.name == name);
    let case = case.expect("the macro names the cases of the list");
    case.run(Arc::new(subject)).await;
}

/// Runs every case in a row, each on the empty store that `fresh` gives.
///
/// # Panics
///
/// It panics at the first case that the store fails; the name of the case is printed before, by the
/// `tracing` event that announces it.
pub async fn run_all<S: StoreUnderTest + 'static>(fresh: impl AsyncFn() -> S) {
    for case in cases() {
        tracing::info!(case = case.name, "conformance");
        case.run(Arc::new(fresh().await)).await;
    }
}

/// Makes a test of every [case](crate::testing::conformance::cases).
///
/// The expression gives a [`StoreUnderTest`](crate::testing::conformance::StoreUnderTest) with an
/// empty store. It is evaluated for each test, and may await. Attributes behind it, such as
/// `#[ignore = "needs a server"]`, go to every test. The tests need `tokio` with its features
/// `macros` and `rt-multi-thread`.
#[macro_export]
macro_rules! conformance_tests {
    (@each [$($module:ident { $($case:ident)* })*] [$attributes:tt $subject:expr]) => {
        $crate::conformance_tests! { @every [$($([$case $attributes])*)*] [$subject] }
    };
    (@every [$([$case:ident [$(#[$attribute:meta])*]])*] [$subject:expr]) => {
        $(
            $(#[$attribute])*
            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::testing::conformance::run_named(stringify!($case), $subject).await;
            }
        )*
    };
    (@list [$($module:ident { $($case:ident)* })*] []) => {
        vec![$($(Case {
            name: stringify!($case),
            begin: |subject| tokio::spawn(async move { $module::$case(&*subject).await }),
        },)*)*]
    };
    (@with $how:ident $rest:tt) => {
        $crate::conformance_tests! { @$how [
            cells {
                nothing_stands_under_a_new_id
                a_claim_stands_as_written
                a_second_claim_is_refused_and_shown_what_stands
                a_swap_over_the_version_seen_is_applied
                a_swap_over_another_version_is_refused
                a_swap_where_nothing_stands_creates_nothing
                a_claim_where_an_expired_record_stands_is_refused
                a_completion_keeps_the_subject
                a_claim_over_a_record_replaces_its_subject
                a_released_record_is_claimed_at_once
                what_a_draft_keeps_stays
                where_nothing_stood_nothing_is_kept
                a_record_begins_in_any_state
                a_claim_of_what_is_done_is_shown_what_stands
            }
            owners {
                a_client_that_has_seen_nothing_is_told_what_it_wrote
            }
            cells {
                ids_and_versions_are_compared_whole
                a_peek_sees_what_stands
            }
            owners {
                a_stale_owner_cannot_complete
                a_stale_owner_cannot_prolong
                a_stale_owner_cannot_release
                a_refused_duplicate_deletes_nothing
                a_lost_claim_is_recognised_by_its_attempt
                a_lost_completion_is_recognised_by_its_attempt
                heartbeats_go_to_the_same_records
            }
            clocks {
                a_lease_ends_by_the_clock_of_the_store
                tokens_grow_over_takeovers
                tokens_grow_over_purge_and_a_new_beginning
                a_token_follows_a_floor_above_the_clock
                a_moment_beyond_all_time_is_the_last_one
                a_moment_far_away_is_exact
            }
            crowds {
                of_many_claims_at_once_one_wins
                of_many_takeovers_at_once_one_wins
                of_many_endings_at_once_one_wins
                many_ids_at_once_do_not_mix
            }
            histories {
                a_sequence_is_that_of_the_model
                a_history_is_linearizable
            }
            waits {
                a_wait_ends_when_the_record_changes
                a_wait_ends_when_the_record_is_deleted
                a_wait_for_a_version_that_is_gone_ends_at_once
                a_wait_ends_at_its_deadline
                waiting_holds_nothing
                a_dropped_wait_changes_nothing
            }
            purges {
                purge_deletes_only_what_is_expired
                purge_deletes_what_was_resumed_and_left
                purge_goes_in_bounded_batches
                purge_spares_what_was_claimed_again
                a_purge_beside_a_takeover_takes_nothing_that_was_claimed
                purge_spares_what_is_kept
                purge_counts_what_is_kept_from_its_expiry
                what_is_kept_stays_until_then
                a_purge_says_how_long_is_kept
                purgers_at_once_count_each_record_once
            }
            scans {
                scan_lists_in_the_order_of_ids
                scan_goes_in_pages
                lists_find_what_needs_somebody
                lists_find_the_newest_of_an_operation
                the_steps_of_a_life_are_listed
            }
            steps {
                a_step_comes_back_whole
                the_first_write_of_a_step_wins
                a_step_of_a_stale_owner_is_refused
                a_takeover_goes_on_with_the_steps
                a_step_ends_with_its_life
                of_many_writes_of_a_step_one_wins
                many_steps_at_once_do_not_mix
                a_step_beside_a_takeover_is_before_it_or_refused
            }
            step_notes {
                a_note_of_a_step_belongs_to_one_version
            }
            fields {
                every_field_comes_back
                a_note_belongs_to_one_version
                any_key_comes_back
                any_outcome_comes_back
                a_stream_comes_back_in_every_state
                an_outcome_of_16_mib_comes_back
            }
        ] $rest }
    };
    ($subject:expr $(, $(#[$attribute:meta])*)?) => {
        $crate::conformance_tests! { @with each [[$($(#[$attribute])*)?] $subject] }
    };
}

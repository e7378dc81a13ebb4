//! The suite must be able to fail: a sound store passes every case, and each deliberate defect is
//! found by the case that is named for it.

mod simple;
mod simple_lists;
mod simple_steps;
pub(crate) mod wrappers;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::watch;

use self::{
    simple::{Cells, Simple},
    simple_steps::Steps,
};
use super::{Case, StoreUnderTest, cases};
use crate::{store::Store, testing::ManualClock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    NoVersionCheck,
    VersionsComparedInPart,
    IdsComparedInPart,
    ClaimOverExpired,
    ClaimOverAnything,
    WriteWhereNothingStands,
    CheckThenAct,
    RefusalShowsNothing,
    StaleLooks,
    StalePeeks,
    TokenWithoutClock,
    TokenKeptByTakeover,
    TokenWithoutFloor,
    ClockOfTheClient,
    MomentsWrap,
    LeaseKeptByHeartbeat,
    CreatedAtEveryWrite,
    SubjectKeptByClaim,
    ScopeKeptByClaim,
    LeaseWhereNothingStood,
    FinishedForgottenAtTheBeginning,
    RefusalTellsNoTime,
    HolderKept,
    DigestsForgotten,
    StampOfAnother,
    MomentsRounded,
    FinishedForgotten,
    OutcomeKept,
    OutcomeTruncated,
    EmptyOutcomeForgotten,
    SchemaForgotten,
    OutcomeOnlyOfTheDone,
    OnCrashForgotten,
    KeyEndsAtNul,
    KeyCutAt255,
    WaitSleeps,
    WaitIgnoresDeletes,
    WaitHolds,
    WaitForgetsDeadline,
    PurgeOfRunning,
    PurgeOfUncertain,
    PurgeOfNothingRunning,
    PurgeUnbounded,
    PurgeCountsLimit,
    PurgeCheckThenAct,
    PurgeOfWhatIsKept,
    PurgeOfWhatWasToBeKept,
    KeptFromTheClaim,
    ForgetsWhatIsKept,
    HeartbeatsElsewhere,
    ScanUnordered,
    ScanRepeats,
    NoteForgotten,
    NoteKept,
    StepNoteForgotten,
    ListsOldestFirst,
    ListsTheSettled,
    StepLabelForgotten,
    StepsListedBackwards,
    StepLastWriteWins,
    StepWithoutFence,
    StepsOfTheAttempt,
    StepsOfEveryLife,
    StepCheckThenAct,
    StepNamesComparedInPart,
    StepFenceReadEarly,
}

/// Clients of one simple store. With [`Defect::ClockOfTheClient`] their clocks differ.
struct Clients {
    defect: Defect,
    cells: Arc<Mutex<Cells>>,
    steps: Arc<Mutex<Steps>>,
    changes: watch::Sender<u64>,
    held: Arc<tokio::sync::Mutex<()>>,
    clock: ManualClock,
    given: Mutex<u32>,
}

impl Clients {
    fn new(defect: Defect) -> Self {
        Self {
            defect,
            cells: Arc::default(),
            steps: Arc::default(),
            changes: watch::Sender::new(0),
            held: Arc::default(),
            clock: ManualClock::new(),
            given: Mutex::new(0),
        }
    }
}

#[async_trait]
impl StoreUnderTest for Clients {
    async fn store(&self) -> Arc<dyn Store> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        *given += 1;
        let skewed = self.defect == Defect::ClockOfTheClient && *given % 2 == 1;
        Arc::new(Simple {
            defect: self.defect,
            cells: Arc::clone(&self.cells),
            steps: Arc::clone(&self.steps),
            changes: self.changes.clone(),
            held: Arc::clone(&self.held),
            clock: self.clock.clone(),
            skew: if skewed {
                Duration::from_secs(600)
            } else {
                Duration::ZERO
            },
            stale: Mutex::new(None),
        })
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

async fn holds(case: Case, defect: Defect) -> bool {
    tokio::spawn(async move { case.run(Arc::new(Clients::new(defect))).await })
        .await
        .is_ok()
}

async fn found_by(defect: Defect) -> Vec<&'static str> {
    let mut found = Vec::new();
    for case in cases() {
        if !holds(case, defect).await {
            found.push(case.name());
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_sound_store_passes_every_case() {
    assert_eq!(found_by(Defect::None).await, [""; 0]);
}

macro_rules! defects {
    ($($test:ident: $defect:ident => $case:ident;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                let case = cases().into_iter().find(|case| case.name() == stringify!($case)).expect("a case of the suite");
                assert!(!holds(case, Defect::$defect).await, "`{}` does not find `{:?}`", case.name(), Defect::$defect);
            }
        )*

        #[test]
        fn every_case_has_a_defect_that_it_finds() {
            let named = [$(stringify!($case)),*];
            let idle: Vec<_> = cases().iter().map(Case::name).filter(|case| !named.contains(case)).collect();
            assert_eq!(idle, [""; 0]);
        }
    };
}

defects! {
    an_id_cut_short_is_found: IdsComparedInPart => ids_and_versions_are_compared_whole;
    a_look_at_another_id_is_found: IdsComparedInPart => nothing_stands_under_a_new_id;
    a_peek_at_the_past_is_found: StalePeeks => a_peek_sees_what_stands;
    a_version_cut_short_is_found: VersionsComparedInPart => ids_and_versions_are_compared_whole;
    a_clock_of_the_client_is_found_by_a_claim: ClockOfTheClient => a_claim_stands_as_written;
    a_claim_over_a_claim_is_found: ClaimOverAnything => a_second_claim_is_refused_and_shown_what_stands;
    a_finish_that_is_forgotten_is_found: FinishedForgotten => a_swap_over_the_version_seen_is_applied;
    a_swap_without_a_version_is_found: NoVersionCheck => a_swap_over_another_version_is_refused;
    a_write_where_nothing_stands_is_found: WriteWhereNothingStands => a_swap_where_nothing_stands_creates_nothing;
    a_claim_over_what_is_expired_is_found: ClaimOverExpired => a_claim_where_an_expired_record_stands_is_refused;
    a_creation_at_every_write_is_found: CreatedAtEveryWrite => a_completion_keeps_the_subject;
    a_subject_that_stays_is_found: SubjectKeptByClaim => a_claim_over_a_record_replaces_its_subject;
    a_scope_that_stays_is_found: ScopeKeptByClaim => a_claim_over_a_record_replaces_its_subject;
    a_lease_where_nothing_stood_is_found: LeaseWhereNothingStood => where_nothing_stood_nothing_is_kept;
    a_finish_that_is_forgotten_at_once_is_found: FinishedForgottenAtTheBeginning => a_record_begins_in_any_state;
    a_refusal_without_the_time_is_found: RefusalTellsNoTime => a_claim_of_what_is_done_is_shown_what_stands;
    digests_that_are_forgotten_are_found: DigestsForgotten => every_field_comes_back;
    a_stamp_of_another_record_is_found: StampOfAnother => a_client_that_has_seen_nothing_is_told_what_it_wrote;
    a_holder_that_stays_is_found: HolderKept => every_field_comes_back;
    a_moment_that_is_rounded_is_found: MomentsRounded => a_moment_far_away_is_exact;
    a_purge_that_spares_what_was_to_be_kept_is_found: PurgeOfWhatWasToBeKept => a_purge_says_how_long_is_kept;
    a_token_that_stays_after_a_release_is_found: TokenKeptByTakeover => a_released_record_is_claimed_at_once;
    a_creation_that_is_not_kept_is_found: CreatedAtEveryWrite => what_a_draft_keeps_stays;
    a_stale_completion_is_found: NoVersionCheck => a_stale_owner_cannot_complete;
    a_stale_heartbeat_is_found: NoVersionCheck => a_stale_owner_cannot_prolong;
    a_stale_release_is_found: NoVersionCheck => a_stale_owner_cannot_release;
    a_duplicate_that_releases_is_found: NoVersionCheck => a_refused_duplicate_deletes_nothing;
    a_refusal_that_shows_nothing_is_found_by_a_claim: RefusalShowsNothing => a_lost_claim_is_recognised_by_its_attempt;
    a_refusal_that_shows_nothing_is_found_by_a_completion: RefusalShowsNothing => a_lost_completion_is_recognised_by_its_attempt;
    heartbeats_that_go_elsewhere_are_found: HeartbeatsElsewhere => heartbeats_go_to_the_same_records;
    a_clock_of_the_client_is_found_by_a_lease: ClockOfTheClient => a_lease_ends_by_the_clock_of_the_store;
    a_heartbeat_that_prolongs_nothing_is_found: LeaseKeptByHeartbeat => a_lease_ends_by_the_clock_of_the_store;
    a_token_that_stays_is_found: TokenKeptByTakeover => tokens_grow_over_takeovers;
    a_token_that_starts_again_is_found: TokenWithoutClock => tokens_grow_over_purge_and_a_new_beginning;
    a_token_without_its_floor_is_found: TokenWithoutFloor => a_token_follows_a_floor_above_the_clock;
    a_moment_that_wraps_is_found: MomentsWrap => a_moment_beyond_all_time_is_the_last_one;
    two_claims_at_once_are_found: CheckThenAct => of_many_claims_at_once_one_wins;
    two_takeovers_at_once_are_found: CheckThenAct => of_many_takeovers_at_once_one_wins;
    two_endings_at_once_are_found: CheckThenAct => of_many_endings_at_once_one_wins;
    calls_that_mix_are_found: KeyEndsAtNul => many_ids_at_once_do_not_mix;
    an_outcome_that_stays_is_found: OutcomeKept => a_sequence_is_that_of_the_model;
    a_check_before_the_act_is_found: CheckThenAct => a_history_is_linearizable;
    a_stale_look_is_found: StaleLooks => a_history_is_linearizable;
    a_wait_that_sleeps_is_found: WaitSleeps => a_wait_ends_when_the_record_changes;
    a_wait_that_misses_a_delete_is_found: WaitIgnoresDeletes => a_wait_ends_when_the_record_is_deleted;
    a_wait_for_the_past_is_found: WaitSleeps => a_wait_for_a_version_that_is_gone_ends_at_once;
    a_wait_without_a_deadline_is_found: WaitForgetsDeadline => a_wait_ends_at_its_deadline;
    a_wait_that_holds_is_found: WaitHolds => waiting_holds_nothing;
    a_wait_that_nobody_wakes_is_found: WaitSleeps => a_dropped_wait_changes_nothing;
    a_purge_of_what_runs_is_found: PurgeOfRunning => purge_deletes_only_what_is_expired;
    a_purge_of_what_is_uncertain_is_found: PurgeOfUncertain => purge_deletes_only_what_is_expired;
    a_purge_that_leaves_the_abandoned_is_found: PurgeOfNothingRunning => purge_deletes_only_what_is_expired;
    a_purge_that_leaves_what_was_resumed_is_found: PurgeOfNothingRunning => purge_deletes_what_was_resumed_and_left;
    a_purge_without_a_bound_is_found: PurgeUnbounded => purge_goes_in_bounded_batches;
    a_purge_of_what_is_kept_is_found: PurgeOfWhatIsKept => purge_spares_what_is_kept;
    a_purge_that_counts_what_is_kept_from_the_claim_is_found: KeptFromTheClaim => purge_counts_what_is_kept_from_its_expiry;
    a_store_that_forgets_what_is_kept_is_found: ForgetsWhatIsKept => what_is_kept_stays_until_then;
    a_purge_that_miscounts_is_found: PurgeCountsLimit => purgers_at_once_count_each_record_once;
    a_purge_of_what_was_claimed_meanwhile_is_found: PurgeCheckThenAct => a_purge_beside_a_takeover_takes_nothing_that_was_claimed;
    a_purge_that_miscounts_what_was_spared_is_found: PurgeCountsLimit => purge_spares_what_was_claimed_again;
    a_scan_without_order_is_found: ScanUnordered => scan_lists_in_the_order_of_ids;
    a_scan_that_repeats_is_found: ScanRepeats => scan_lists_in_the_order_of_ids;
    a_note_that_is_forgotten_is_found: NoteForgotten => a_note_belongs_to_one_version;
    a_note_that_stays_is_found: NoteKept => a_note_belongs_to_one_version;
    a_note_of_a_step_that_is_forgotten_is_found: StepNoteForgotten => a_note_of_a_step_belongs_to_one_version;
    a_list_that_begins_with_the_oldest_is_found: ListsOldestFirst => lists_find_the_newest_of_an_operation;
    a_list_of_what_needs_nobody_is_found: ListsTheSettled => lists_find_what_needs_somebody;
    a_choice_that_is_forgotten_is_found: OnCrashForgotten => every_field_comes_back;
    a_schema_that_is_forgotten_is_found: SchemaForgotten => every_field_comes_back;
    a_key_that_ends_at_nul_is_found: KeyEndsAtNul => any_key_comes_back;
    a_key_cut_short_is_found: KeyCutAt255 => any_key_comes_back;
    an_outcome_cut_short_is_found: OutcomeTruncated => an_outcome_of_16_mib_comes_back;
    an_outcome_cut_a_little_is_found: OutcomeTruncated => any_outcome_comes_back;
    an_empty_outcome_that_is_forgotten_is_found: EmptyOutcomeForgotten => any_outcome_comes_back;
    an_outcome_of_what_is_done_only_is_found: OutcomeOnlyOfTheDone => a_stream_comes_back_in_every_state;
    a_page_that_repeats_is_found: ScanRepeats => scan_goes_in_pages;
    steps_listed_backwards_are_found: StepsListedBackwards => the_steps_of_a_life_are_listed;
    a_label_that_is_forgotten_is_found: StepLabelForgotten => a_step_comes_back_whole;
    a_last_write_that_wins_is_found: StepLastWriteWins => the_first_write_of_a_step_wins;
    a_step_without_a_fence_is_found: StepWithoutFence => a_step_of_a_stale_owner_is_refused;
    steps_of_an_attempt_are_found: StepsOfTheAttempt => a_takeover_goes_on_with_the_steps;
    steps_of_every_life_are_found: StepsOfEveryLife => a_step_ends_with_its_life;
    two_writes_of_a_step_at_once_are_found: StepCheckThenAct => of_many_writes_of_a_step_one_wins;
    a_name_cut_short_is_found: StepNamesComparedInPart => many_steps_at_once_do_not_mix;
    a_fence_that_is_read_early_is_found: StepFenceReadEarly => a_step_beside_a_takeover_is_before_it_or_refused;
}

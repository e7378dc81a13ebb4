//! Deliberate faults, each of which the model must catch: they show that every promise can be
//! broken.

use idempotent_runtime::policy::OnCrash::{self, Reconcile, Rerun, Uncertain};

use crate::{
    canonical::Merging,
    driver::Protocol,
    watch::Promise::{self, *},
    world::Caller,
};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    CompletionUnchecked,
    ReleaseUnchecked,
    HeartbeatUnchecked,
    TakeoverUnchecked,
    TokenRestartsAfterPurge,
    NoFingerprint,
    CheckThenInsert,
    ReconcileReleases,
    CancelReleases,
    PurgeOfRunning,
    /// A lease is judged by the clock of a client, which is ahead of the store's.
    ClientsClock,
    /// A claim whose answer was lost is sent again under the same version.
    RetryKeepsVersion,
    /// A worker does not know its own claim when it sees it.
    ClaimsAreStrangers,
    /// A lease lasts longer than the holder asked for.
    LeaseOutlastsItsPromise,
    TakeoverDoesNotCount,
    NeverParks,
    /// A holder whose body was dropped keeps its lease.
    StoppedHolds,
    /// A holder says that it does not know where that stands already.
    UncertainTwice,
    /// A claim that was given up is only ended where it stands already.
    GivesUpWhatStandsOnly,
    /// A takeover whose body says that nothing happened speaks for the body before it, too.
    TakeoverReleases,
    /// A takeover that was given up leaves what it found under its own name.
    LeavesItsName,
    SettlementUnchecked,
    /// An operator may let what is uncertain be tried again.
    ResumesUncertain,
    /// Heartbeats go on over the version that an ending learned.
    HeartbeatOverAnEnding,
}

/// Checks that the fault breaks the promise, and that without it the same callers cannot.
fn caught(fault: Fault, modes: [OnCrash; 2], breaks: Promise) {
    let protocol = |fault, merging| {
        let other = u8::from(breaks == MismatchFound);
        let callers = [(0, modes[0]), (other, modes[1])].map(|(arguments, on_crash)| Caller {
            arguments,
            on_crash,
        });
        Protocol {
            callers: callers.to_vec(),
            calls: 3,
            stragglers: u8::from(breaks == GivenUpStays || fault == Fault::SettlementUnchecked),
            settlements: u8::from(matches!(
                fault,
                Fault::SettlementUnchecked | Fault::ResumesUncertain
            )),
            fault,
            merging,
        }
    };
    let models = (
        protocol(fault, Merging::NamesOnly),
        protocol(Fault::None, Merging::Everything),
    );
    model::caught_alone(fault, models, breaks.name());
}

macro_rules! each_is_caught {
    ($($test:ident: $fault:ident, $one:ident and $other:ident, breaks $promise:ident;)*) => {
        $(#[test]
        fn $test() {
            caught(Fault::$fault, [$one, $other], $promise);
        })*
    };
}

each_is_caught! {
    a_completion_without_a_version_check_records_a_second_outcome: CompletionUnchecked, Rerun and Rerun, breaks OneOutcome;
    a_completion_without_a_version_check_replays_another_value: CompletionUnchecked, Rerun and Rerun, breaks FirstIsReplayed;
    a_completion_without_a_version_check_overwrites_another_holder: CompletionUnchecked, Rerun and Rerun, breaks StaleHolder;
    a_release_without_a_version_check_overwrites_another_holder: ReleaseUnchecked, Rerun and Rerun, breaks StaleHolder;
    a_release_without_a_version_check_lets_two_hold: ReleaseUnchecked, Rerun and Rerun, breaks OneHolder;
    a_release_without_a_version_check_forgets_an_outcome: ReleaseUnchecked, Rerun and Rerun, breaks OneOutcome;
    a_heartbeat_without_a_version_check_prolongs_what_is_lost: HeartbeatUnchecked, Rerun and Rerun, breaks StaleHolder;
    a_heartbeat_without_a_version_check_undoes_an_outcome: HeartbeatUnchecked, Uncertain and Uncertain, breaks OneOutcome;
    a_takeover_without_a_version_check_lets_two_hold: TakeoverUnchecked, Rerun and Rerun, breaks OneHolder;
    a_token_that_restarts_after_a_purge_shrinks: TokenRestartsAfterPurge, Rerun and Rerun, breaks TokensGrow;
    without_a_fingerprint_other_arguments_are_answered: NoFingerprint, Rerun and Rerun, breaks MismatchFound;
    a_check_and_then_an_insert_lets_two_hold: CheckThenInsert, Rerun and Rerun, breaks OneHolder;
    a_check_and_then_an_insert_runs_twice: CheckThenInsert, Uncertain and Uncertain, breaks AtMostOnce;
    a_reconciliation_that_releases_begins_afresh: ReconcileReleases, Reconcile and Reconcile, breaks FreshOnlyWhenSettled;
    a_release_on_cancel_begins_a_polled_call_afresh: CancelReleases, Uncertain and Uncertain, breaks FreshOnlyWhenSettled;
    a_release_on_cancel_runs_a_polled_body_twice: CancelReleases, Uncertain and Uncertain, breaks AtMostOnce;
    a_purge_of_a_running_record_forgets_what_binds: PurgeOfRunning, Uncertain and Uncertain, breaks PurgeOnlyExpired;
    a_purge_of_a_running_record_runs_twice: PurgeOfRunning, Uncertain and Uncertain, breaks AtMostOnce;
    a_lease_judged_by_the_clients_clock_lets_two_hold: ClientsClock, Rerun and Rerun, breaks OneHolder;
    a_retry_under_the_same_version_lets_two_hold: RetryKeepsVersion, Rerun and Rerun, breaks OneHolder;
    a_claim_that_is_not_recognised_waits_for_itself: ClaimsAreStrangers, Rerun and Rerun, breaks OwnIsRecognised;
    a_lease_that_outlasts_its_promise_keeps_calls_waiting: LeaseOutlastsItsPromise, Rerun and Rerun, breaks AlwaysAnswered;
    a_takeover_that_does_not_count_runs_uncounted_bodies: TakeoverDoesNotCount, Rerun and Rerun, breaks BodiesCounted;
    a_budget_that_is_not_looked_at_is_overdrawn: NeverParks, Rerun and Rerun, breaks BudgetKept;
    a_takeover_that_does_not_count_is_taken_for_a_first_claim: TakeoverDoesNotCount, Rerun and Rerun, breaks KnowsWhatItWon;
    a_dropped_body_that_keeps_its_lease_keeps_calls_waiting: StoppedHolds, Rerun and Rerun, breaks StoppedFrees;
    an_uncertain_verdict_written_twice_loosens_the_record: UncertainTwice, Rerun and Uncertain, breaks StricterWins;
    a_claim_given_up_where_it_stands_only_stands_later: GivesUpWhatStandsOnly, Rerun and Rerun, breaks GivenUpStays;
    a_takeover_given_up_where_it_stands_only_stands_later: GivesUpWhatStandsOnly, Reconcile and Reconcile, breaks GivenUpStays;
    a_takeover_that_releases_forgets_what_the_body_before_it_began: TakeoverReleases, Rerun and Rerun, breaks ReleasesNothingBegun;
    a_takeover_given_up_under_its_name_is_taken_for_a_first_claim: LeavesItsName, Rerun and Rerun, breaks ReleasesNothingBegun;
    a_settlement_without_a_version_check_records_a_second_outcome: SettlementUnchecked, Uncertain and Uncertain, breaks OneOutcome;
    an_operator_who_resumes_what_is_uncertain_runs_it_twice: ResumesUncertain, Uncertain and Uncertain, breaks AtMostOnce;
    a_heartbeat_over_an_ending_revives_it: HeartbeatOverAnEnding, Uncertain and Uncertain, breaks StaleHolder;
}

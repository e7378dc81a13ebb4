//! Deliberate faults, each of which the model must catch: they show that every promise can be
//! broken.

use idempotent_runtime::{
    policy::OnCrash::{self, Rerun, Uncertain},
    protocol::sequence::Gaps,
};

use crate::{
    driver::Protocol,
    pack::Choice,
    watch::Promise::{self, *},
};

/// The mistake that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A claim moves the number before its body has run.
    MovesBeforeTheBody,
    /// A release forgets the last number.
    ReleaseForgets,
    /// A larger number takes the place of an abandoned one where gaps are refused.
    TakeoverSkips,
    /// A tier copies the record, and its copy answers claims.
    TierCopies,
    /// A completion is written whatever version stands.
    CompletionUnchecked,
    /// A body that stopped is released.
    CancelReleases,
    /// A stream with an uncertain or parked number is looked at as if nothing ran.
    StoppedGoesOn,
    /// An operator releases a number whose holder is alive.
    ReleasesTheLiving,
    /// A claim that was given up is only ended where it stands already.
    GivesUpWhatStandsOnly,
    /// A lease is judged by the clock of a client, which is ahead of the store's.
    ClientsClock,
    /// A claim keeps the token that stands.
    TokenStays,
    NeverParks,
    /// A larger number that did nothing forgets the one that it passed.
    PassedIsForgotten,
    /// A larger number passes one that may not run again.
    PassesTheUncertain,
}

/// Checks that the fault breaks the promise, and that without it the same callers cannot.
fn caught(fault: Fault, on_crash: OnCrash, breaks: Promise) {
    let gaps = match fault {
        Fault::PassedIsForgotten | Fault::PassesTheUncertain => Gaps::Accept,
        _ => Gaps::Refuse(1),
    };
    let protocol = |fault| Protocol {
        workers: 2,
        choice: Choice { gaps, on_crash },
        stragglers: u8::from(breaks == GivenUpStays),
        fault,
        forgets: fault == Fault::None,
    };
    model::caught_alone(
        fault,
        (protocol(fault), protocol(Fault::None)),
        breaks.name(),
    );
}

macro_rules! each_is_caught {
    ($($test:ident: $fault:ident, $on_crash:ident, breaks $promise:ident;)*) => {
        $(#[test]
        fn $test() {
            caught(Fault::$fault, $on_crash, $promise);
        })*
    };
}

each_is_caught! {
    a_number_that_moves_before_its_body_is_skipped: MovesBeforeTheBody, Rerun, breaks NoneSkipped;
    a_number_that_moves_before_its_body_runs_after_its_end: MovesBeforeTheBody, Uncertain, breaks NeverAgain;
    a_release_that_forgets_the_last_number_goes_back: ReleaseForgets, Rerun, breaks LastKept;
    a_release_that_forgets_the_last_number_runs_it_again: ReleaseForgets, Uncertain, breaks AtMostOnce;
    a_takeover_by_a_larger_number_skips_the_one_before: TakeoverSkips, Rerun, breaks NoneSkipped;
    a_takeover_by_a_larger_number_claims_what_is_not_next: TakeoverSkips, Rerun, breaks OnlyTheNext;
    a_copy_in_a_tier_answers_with_what_is_past: TierCopies, Rerun, breaks AnsweredByRecord;
    a_completion_without_a_version_check_ends_what_is_lost: CompletionUnchecked, Rerun, breaks StaleHolder;
    a_completion_without_a_version_check_goes_back: CompletionUnchecked, Rerun, breaks LastKept;
    a_release_on_cancel_runs_a_polled_body_twice: CancelReleases, Uncertain, breaks AtMostOnce;
    a_stopped_stream_that_goes_on_runs_what_is_uncertain: StoppedGoesOn, Uncertain, breaks StoppedStops;
    a_stopped_stream_that_goes_on_runs_twice: StoppedGoesOn, Uncertain, breaks AtMostOnce;
    an_operator_who_releases_what_is_alive_runs_it_twice: ReleasesTheLiving, Uncertain, breaks AtMostOnce;
    a_claim_given_up_where_it_stands_only_stands_later: GivesUpWhatStandsOnly, Rerun, breaks GivenUpStays;
    a_number_that_moves_before_its_body_stands_in_the_way: MovesBeforeTheBody, Rerun, breaks GoesOn;
    a_lease_judged_by_the_clients_clock_lets_two_hold: ClientsClock, Rerun, breaks OneHolder;
    a_claim_without_a_token_of_its_own_is_not_fenced_off: TokenStays, Rerun, breaks TokensGrow;
    a_claim_without_a_token_of_its_own_has_its_effect_late: TokenStays, Rerun, breaks InOrder;
    a_claim_without_a_token_of_its_own_has_its_effect_again: TokenStays, Rerun, breaks NeverAgain;
    a_budget_that_is_not_looked_at_is_overdrawn: NeverParks, Rerun, breaks BudgetKept;
    a_release_that_forgets_what_it_passed_lets_smaller_ones_go_late: PassedIsForgotten, Rerun, breaks InOrder;
    a_larger_number_that_passes_the_uncertain_leaves_it_behind: PassesTheUncertain, Uncertain, breaks OnlyAbandonedIsPassed;
}

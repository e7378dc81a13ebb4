//! Deliberate faults, each of which the model must catch: they show that every promise can be
//! broken.

use idempotent_runtime::policy::OnCrash;

use crate::{
    driver::Protocol,
    watch::Promise::{self, *},
};

/// The mistake that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The store takes a step where the token of its writer stands.
    FencedByToken,
    /// The store reads the record first, and writes the step later.
    FenceReadBefore,
    /// The store puts a step over whatever stands.
    LastWriteWins,
    /// A claim that begins a life leaves the steps of the life before.
    StepsOutliveTheirLife,
    /// Every claim forgets the steps.
    TakeoverForgets,
    /// A body that returns an error releases the record, steps or not.
    ReleaseFreesSteps,
    /// A record is given back under the name of the attempt that held it.
    GivenBackByName,
    /// Only a write that was answered counts as a step of the life.
    OnlyAnsweredCounts,
    /// An attempt writes that a step has begun once its body has run.
    BegunAfterTheBody,
    /// A body runs although no answer said that the step has begun.
    BeginsUnanswered,
    /// A takeover looks nothing up.
    LooksNothingUp,
    /// A look-up counts although the lease is over when its answer comes.
    LooksUpLate,
    /// An attempt takes its own write for one of another attempt.
    OwnIsTakenForForeign,
    /// An attempt goes on with its own value although another one stands.
    OwnValueKept,
    /// An attempt goes on with a value that no answer confirmed.
    PoisonedCompletes,
    /// An attempt forgets that it claimed a record that was given back.
    GoesOnForgotten,
}

/// Checks that the fault breaks the promise. Without it the same callers cannot break it:
/// `exhaustive` has them.
fn caught(fault: Fault, at_most_once: bool, breaks: Promise) {
    let protocol = Protocol {
        workers: 2,
        on_crash: OnCrash::Rerun,
        at_most_once,
        claims: 3,
        stragglers: 1,
        drops: u8::from(!at_most_once),
        fault,
        forgets: false,
    };
    model::caught(fault, protocol, breaks.name());
}

macro_rules! each_is_caught {
    ($($test:ident: $fault:ident, $at_most_once:literal, breaks $promise:ident;)*) => {
        $(#[test]
        fn $test() {
            caught(Fault::$fault, $at_most_once, $promise);
        })*
    };
}

each_is_caught! {
    a_fence_by_the_token_takes_steps_of_what_was_given_back: FencedByToken, false, breaks Fenced;
    a_record_given_back_by_name_takes_steps_of_who_gave_it_back: GivenBackByName, false, breaks Fenced;
    a_fence_read_before_takes_steps_of_an_earlier_attempt: FenceReadBefore, false, breaks Fenced;
    a_fence_read_before_lets_a_life_see_another: FenceReadBefore, false, breaks OwnLife;
    a_last_write_that_wins_changes_an_outcome: LastWriteWins, false, breaks OutcomeStays;
    a_last_write_that_wins_is_not_what_was_answered: LastWriteWins, false, breaks OutcomeOfSteps;
    steps_that_outlive_their_life_are_seen_in_another: StepsOutliveTheirLife, false, breaks OwnLife;
    steps_that_a_takeover_forgets_get_another_outcome: TakeoverForgets, false, breaks OutcomeStays;
    steps_that_a_takeover_forgets_run_again: TakeoverForgets, false, breaks NotRunAgain;
    steps_that_a_takeover_forgets_happen_twice: TakeoverForgets, true, breaks AtMostOnce;
    a_release_frees_steps: ReleaseFreesSteps, false, breaks StepsBind;
    a_release_after_a_write_without_an_answer_frees_steps: OnlyAnsweredCounts, false, breaks StepsBind;
    a_step_that_begins_after_its_body_happens_twice: BegunAfterTheBody, true, breaks AtMostOnce;
    a_step_that_begins_unanswered_happens_twice: BeginsUnanswered, true, breaks AtMostOnce;
    a_takeover_that_looks_nothing_up_runs_a_step_again: LooksNothingUp, false, breaks NotRunAgain;
    a_look_up_after_the_lease_sees_another_life: LooksUpLate, false, breaks OwnLife;
    a_begun_step_taken_for_foreign_makes_its_own_call_uncertain: OwnIsTakenForForeign, true, breaks UncertainOfAnother;
    a_value_kept_although_another_stands_is_not_the_steps: OwnValueKept, false, breaks OutcomeOfSteps;
    a_poisoned_attempt_that_completes_has_no_step_for_its_value: PoisonedCompletes, false, breaks OutcomeOfSteps;
    a_record_given_back_and_taken_for_new_runs_a_step_again: GoesOnForgotten, false, breaks NotRunAgain;
    a_record_given_back_and_taken_for_new_is_released: GoesOnForgotten, false, breaks StepsBind;
}

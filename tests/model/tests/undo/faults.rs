//! Deliberate faults, each of which the model must catch: they show that every promise can be
//! broken.

use crate::{
    driver::Protocol,
    exhaustive::SAGA,
    watch::Promise::{self, *},
};

/// The mistake that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A takeover of a call that is being undone runs its body forward.
    RunsForward,
    /// A takeover forgets that undos are open.
    TakeoverForgetsUndos,
    /// A heartbeat forgets that undos are open.
    HeartbeatForgetsUndos,
    /// A step takes the word of another one, which is about to write that undos are open, for the
    /// record's.
    MarkTakenForStanding,
    /// A takeover lists the undos when it looks first, and not once it stands.
    ListedBefore,
    /// A step is registered once its body has run.
    RegisteredAfterTheBody,
    /// A step whose registration is answered after the end of the body begins all the same.
    BeginsBehindTheEnd,
    /// A heartbeat of a body puts the record back to *running* after its call failed for good.
    HeartbeatOverTheDecision,
    /// A step is recorded as undone before its undo has run.
    MarkedBeforeItRan,
    /// The first step is undone first.
    FirstIsUndoneFirst,
    /// A call is done although an undo failed.
    LeftIsForgotten,
    /// Undos begin before it is recorded that the call failed.
    UndoesUndecided,
    /// A caller that leaves while steps are undone counts as a holder that vanished.
    LeavingCounts,
    /// A dead letter parks a call that another delivery holds.
    ParksWhatIsHeld,
}

/// Checks that the fault breaks the promise. Without it the same callers cannot: `exhaustive` has
/// them.
fn caught(fault: Fault, breaks: Promise) {
    let is_of_tasks = fault == Fault::BeginsBehindTheEnd;
    let protocol = Protocol {
        side_by_side: is_of_tasks || fault == Fault::MarkTakenForStanding,
        in_tasks: is_of_tasks,
        words: u8::from(fault == Fault::ParksWhatIsHeld),
        undo_fails: fault == Fault::LeftIsForgotten,
        fault,
        forgets: false,
        ..SAGA
    };
    model::caught(fault, protocol, breaks.name());
}

macro_rules! each_is_caught {
    ($($test:ident: $fault:ident breaks $promise:ident;)*) => {
        $(#[test]
        fn $test() {
            caught(Fault::$fault, $promise);
        })*
    };
}

each_is_caught! {
    a_takeover_that_runs_forward_begins_a_body: RunsForward breaks NotForward;
    a_takeover_that_forgets_undos_lets_a_purge_delete_them: TakeoverForgetsUndos breaks Kept;
    a_heartbeat_that_forgets_undos_lets_a_purge_delete_them: HeartbeatForgetsUndos breaks Kept;
    a_mark_that_is_about_to_stand_lets_a_purge_delete_undos: MarkTakenForStanding breaks Kept;
    a_list_from_before_the_takeover_misses_a_step: ListedBefore breaks AllUndone;
    a_registration_after_the_body_comes_after_its_effect: RegisteredAfterTheBody breaks RegisteredBefore;
    a_registration_after_the_body_lets_a_step_be_forgotten: RegisteredAfterTheBody breaks Kept;
    a_step_that_begins_behind_the_end_runs_forward: BeginsBehindTheEnd breaks NotForward;
    a_step_that_begins_behind_the_end_is_not_undone: BeginsBehindTheEnd breaks AllUndone;
    a_heartbeat_over_the_decision_takes_the_error_away: HeartbeatOverTheDecision breaks OutcomeStays;
    a_heartbeat_over_the_decision_lets_a_body_run_again: HeartbeatOverTheDecision breaks NotForward;
    a_mark_before_the_undo_skips_it: MarkedBeforeItRan breaks AllUndone;
    undos_from_the_first_step_on_run_in_the_wrong_order: FirstIsUndoneFirst breaks LatestFirst;
    an_undo_that_failed_and_is_forgotten_leaves_its_effect: LeftIsForgotten breaks AllUndone;
    callers_that_leave_and_are_counted_park_a_call: LeavingCounts breaks OnlyCrashesPark;
    a_dead_letter_parks_no_call_that_is_held: ParksWhatIsHeld breaks NoneIsParkedHeld;
    an_undo_before_the_decision_may_be_of_a_call_that_goes_on: UndoesUndecided breaks DecidedBefore;
}

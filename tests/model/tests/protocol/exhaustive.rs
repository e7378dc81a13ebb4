//! Every world that can be reached, in every mode: no promise is broken in any of them.

use idempotent_runtime::policy::OnCrash;

use crate::{
    canonical::Merging,
    driver::Protocol,
    faults::Fault,
    sights::Sight::{self, *},
    world::Caller,
};

const RERUN: Caller = calling_with(OnCrash::Rerun);
const RECONCILE: Caller = calling_with(OnCrash::Reconcile);
const AT_MOST_ONCE: Caller = calling_with(OnCrash::Uncertain);

const fn calling_with(on_crash: OnCrash) -> Caller {
    Caller {
        arguments: 0,
        on_crash,
    }
}

fn other_arguments(caller: Caller) -> Caller {
    Caller {
        arguments: 1,
        ..caller
    }
}

/// How often the workers call, all together, how many of their requests may straggle, and how often
/// an operator settles.
#[derive(Clone, Copy)]
struct Bounds {
    calls: u8,
    stragglers: u8,
    settlements: u8,
}

const CALLING: Bounds = Bounds {
    calls: 6,
    stragglers: 0,
    settlements: 0,
};
const STRAGGLING: Bounds = Bounds {
    calls: 3,
    stragglers: 1,
    settlements: 0,
};
const SETTLING: Bounds = Bounds {
    calls: 4,
    stragglers: 0,
    settlements: 1,
};

/// Seen wherever there is time for it.
const EVERYWHERE: &[Sight] = &[
    Recorded,
    Released,
    Uncertain,
    Waiting,
    Recognised,
    WaiterReplays,
    Purged,
    BegunAnew,
];

/// Each chose differently.
const MIXED: [Caller; 3] = [RERUN, RECONCILE, AT_MOST_ONCE];

/// Checks everything that `callers` can do when they call most often, and that these can be seen,
/// too, beside what is seen everywhere.
fn holds_for_long(name: &str, callers: &[Caller], further: &[Sight]) {
    holds(name, callers, CALLING, &[EVERYWHERE, further].concat());
}

/// Checks everything that `callers` can do, and that all of `sights` can be seen in it.
fn holds(name: &str, callers: &[Caller], bounds: Bounds, sights: &[Sight]) {
    let protocol = Protocol {
        callers: callers.to_vec(),
        calls: bounds.calls,
        stragglers: bounds.stragglers,
        settlements: bounds.settlements,
        fault: Fault::None,
        merging: Merging::Everything,
    };
    let sights: Vec<_> = sights.iter().map(|sight| sight.name()).collect();
    model::holds(name, protocol, &sights);
}

#[test]
fn three_workers_that_rerun() {
    let further = [Parked, TakenOver, Outlived];
    holds_for_long("rerun", &[RERUN; 3], &further);
}

#[test]
fn three_workers_at_most_once() {
    holds_for_long("at most once", &[AT_MOST_ONCE; 3], &[Settled]);
}

#[test]
fn three_workers_that_reconcile() {
    let further = [Parked, Asked, RunAgain, Outlived, AskedOfUncertain];
    holds_for_long("reconcile", &[RECONCILE; 3], &further);
}

#[test]
fn three_workers_of_which_each_chose_differently() {
    let reconciled = [Asked, RunAgain, AskedOfUncertain];
    let further = [&[Parked, TakenOver, Outlived, Settled][..], &reconciled].concat();
    holds_for_long("each its own mode", &MIXED, &further);
}

#[test]
fn three_workers_of_which_one_brings_other_arguments() {
    let sights = [Recorded, Released, TakenOver, Outlived, KeyReused, Purged];
    let callers = [RERUN, RERUN, other_arguments(RERUN)];
    holds("other arguments", &callers, CALLING, &sights);
}

#[test]
fn three_workers_at_most_once_of_which_one_brings_other_arguments() {
    let sights = [Recorded, Released, Uncertain, KeyReused];
    let callers = [AT_MOST_ONCE, AT_MOST_ONCE, other_arguments(AT_MOST_ONCE)];
    holds("other arguments, at most once", &callers, CALLING, &sights);
}

#[test]
fn three_workers_that_rerun_while_a_request_straggles() {
    let sights = [
        Recorded, Released, Uncertain, TakenOver, Outlived, Recognised,
    ];
    holds("rerun, straggling", &[RERUN; 3], STRAGGLING, &sights);
}

#[test]
fn three_workers_at_most_once_while_a_request_straggles() {
    let sights = [Recorded, Released, Uncertain, Recognised, Settled];
    holds(
        "at most once, straggling",
        &[AT_MOST_ONCE; 3],
        STRAGGLING,
        &sights,
    );
}

#[test]
fn three_workers_that_reconcile_while_a_request_straggles() {
    let sights = [
        Recorded, Released, Uncertain, Asked, RunAgain, Outlived, Recognised,
    ];
    holds(
        "reconcile, straggling",
        &[RECONCILE; 3],
        STRAGGLING,
        &sights,
    );
}

#[test]
fn three_workers_of_which_each_chose_differently_while_a_request_straggles() {
    let sights = [
        Recorded, Released, Uncertain, TakenOver, Asked, RunAgain, Outlived, Settled,
    ];
    holds("each its own mode, straggling", &MIXED, STRAGGLING, &sights);
}

#[test]
fn three_workers_of_which_one_brings_other_arguments_while_a_request_straggles() {
    let sights = [Recorded, Released, TakenOver, Outlived, KeyReused];
    let callers = [RERUN, RERUN, other_arguments(RERUN)];
    holds("other arguments, straggling", &callers, STRAGGLING, &sights);
}

#[test]
fn three_workers_that_rerun_and_an_operator() {
    let sights = [Recorded, Parked, Resumed, SettledByOperator, TakenOver];
    holds("rerun, settling", &[RERUN; 3], SETTLING, &sights);
}

#[test]
fn three_workers_at_most_once_and_an_operator() {
    let sights = [Recorded, Uncertain, SettledByOperator, Settled, BegunAnew];
    holds(
        "at most once, settling",
        &[AT_MOST_ONCE; 3],
        SETTLING,
        &sights,
    );
}

#[test]
fn three_workers_that_reconcile_and_an_operator() {
    let sights = [Recorded, Parked, Resumed, SettledByOperator, RunAgain];
    holds("reconcile, settling", &[RECONCILE; 3], SETTLING, &sights);
}

#[test]
fn three_workers_of_which_each_chose_differently_and_an_operator() {
    let sights = [Recorded, Parked, Resumed, SettledByOperator, Settled];
    holds("each its own mode, settling", &MIXED, SETTLING, &sights);
}

//! Every world that can be reached, under each rule for gaps and after each choice for a crash: no
//! promise is broken in any of them.

use idempotent_runtime::{policy::OnCrash, protocol::sequence::Gaps};

use crate::{
    driver::Protocol,
    faults::Fault,
    pack::Choice,
    sights::Sight::{self, *},
};

const REFUSE: Gaps = Gaps::Refuse(1);
const WAIT: Gaps = Gaps::Wait(1);

/// Seen under every rule.
const EVERYWHERE: &[Sight] = &[AllApplied, Released, Uncertain, InProgress, Past, Mine];
/// Seen too where a body may run again.
const AGAIN: &[Sight] = &[Parked, TakenOver, PutBack, Skipped, Outlived, Refused];
const ONCE: &[Sight] = &[PausedCompletes];

fn protocol(workers: usize, (gaps, on_crash): (Gaps, OnCrash), stragglers: u8) -> Protocol {
    Protocol {
        workers,
        choice: Choice { gaps, on_crash },
        stragglers,
        fault: Fault::None,
        forgets: true,
    }
}

/// Checks everything that so many workers can do, and that all of `sights` can be seen in it.
fn holds(name: &str, workers: usize, choice: (Gaps, OnCrash), stragglers: u8, sights: &[&[Sight]]) {
    let protocol = protocol(workers, choice, stragglers);
    let sights = sights.concat();
    let sights = EVERYWHERE.iter().chain(&sights);
    let sights: Vec<_> = sights.map(|sight| sight.name()).collect();
    model::holds(name, protocol, &sights);
}

#[test]
fn three_workers_that_refuse_gaps_and_rerun() {
    holds(
        "refuse, rerun",
        3,
        (REFUSE, OnCrash::Rerun),
        0,
        &[AGAIN, &[Gap]],
    );
}

#[test]
fn three_workers_that_refuse_gaps_at_most_once() {
    holds(
        "refuse, at most once",
        3,
        (REFUSE, OnCrash::Uncertain),
        0,
        &[ONCE, &[Gap]],
    );
}

#[test]
fn two_workers_that_wait_for_gaps_and_rerun() {
    holds(
        "wait, rerun",
        2,
        (WAIT, OnCrash::Rerun),
        0,
        &[AGAIN, &[AwaitGap]],
    );
}

#[test]
fn two_workers_that_wait_for_gaps_at_most_once() {
    holds(
        "wait, at most once",
        2,
        (WAIT, OnCrash::Uncertain),
        0,
        &[ONCE, &[AwaitGap]],
    );
}

#[test]
fn two_workers_that_accept_gaps_and_rerun() {
    holds(
        "accept, rerun",
        2,
        (Gaps::Accept, OnCrash::Rerun),
        0,
        &[AGAIN, &[Passed, Overtaken]],
    );
}

#[test]
fn two_workers_that_accept_gaps_at_most_once() {
    holds(
        "accept, at most once",
        2,
        (Gaps::Accept, OnCrash::Uncertain),
        0,
        &[ONCE],
    );
}

#[test]
fn two_workers_that_refuse_gaps_and_rerun_while_a_request_straggles() {
    holds(
        "refuse, rerun, straggling",
        2,
        (REFUSE, OnCrash::Rerun),
        1,
        &[AGAIN],
    );
}

#[test]
fn two_workers_that_refuse_gaps_at_most_once_while_a_request_straggles() {
    holds(
        "refuse, at most once, straggling",
        2,
        (REFUSE, OnCrash::Uncertain),
        1,
        &[ONCE],
    );
}

#[test]
fn two_workers_that_accept_gaps_and_rerun_while_a_request_straggles() {
    holds(
        "accept, rerun, straggling",
        2,
        (Gaps::Accept, OnCrash::Rerun),
        1,
        &[AGAIN, &[Passed]],
    );
}

/// No worker that was forgotten could have broken a promise.
#[test]
fn two_workers_of_whom_nothing_is_forgotten() {
    for (gaps, on_crash) in [
        (REFUSE, OnCrash::Rerun),
        (REFUSE, OnCrash::Uncertain),
        (Gaps::Accept, OnCrash::Uncertain),
    ] {
        let protocol = Protocol {
            forgets: false,
            ..protocol(2, (gaps, on_crash), 0)
        };
        model::holds(&format!("{gaps:?}, {on_crash:?}"), protocol, &[]);
    }
}

//! Every world that can be reached: no promise is broken in any of them.

use idempotent_runtime::policy::OnCrash;

use crate::{
    driver::Protocol,
    faults::Fault,
    sights::Sight::{self, *},
};

/// Seen by all workers.
const EVERYWHERE: &[Sight] = &[Recognised, WentOn, Mixed, NextLife];

const RERUN: Protocol = Protocol {
    workers: 2,
    on_crash: OnCrash::Rerun,
    at_most_once: false,
    claims: 3,
    stragglers: 0,
    drops: 0,
    fault: Fault::None,
    forgets: true,
};

/// Checks everything that the workers can do, and that all of `sights` can be seen in it.
fn holds(name: &str, protocol: Protocol, sights: &[Sight]) {
    let sights = EVERYWHERE.iter().chain(sights);
    let sights: Vec<_> = sights.map(|sight| sight.name()).collect();
    model::holds(name, protocol, &sights);
}

#[test]
fn two_workers_that_rerun() {
    holds("rerun", RERUN, &[Replayed]);
}

#[test]
fn three_workers_that_rerun() {
    let protocol = Protocol {
        workers: 3,
        claims: 4,
        ..RERUN
    };
    holds("rerun, three", protocol, &[Replayed]);
}

#[test]
fn two_workers_that_rerun_while_a_step_is_dropped_and_a_request_straggles() {
    let protocol = Protocol {
        stragglers: 1,
        drops: 1,
        ..RERUN
    };
    let sights = &[Replayed, StragglerRefused, FoundItsOwn, StoppedWrites];
    holds("rerun, dropped, straggling", protocol, sights);
}

#[test]
fn two_workers_with_steps_at_most_once_while_a_request_straggles() {
    let protocol = Protocol {
        at_most_once: true,
        stragglers: 1,
        ..RERUN
    };
    let sights = &[Replayed, StragglerRefused, StoppedWrites, Uncertain];
    holds("at most once, straggling", protocol, sights);
}

#[test]
fn two_workers_whose_record_is_left_uncertain() {
    let protocol = Protocol {
        on_crash: OnCrash::Uncertain,
        stragglers: 1,
        drops: 1,
        ..RERUN
    };
    holds("uncertain record", protocol, &[PausedWrites, FoundItsOwn]);
}

/// No worker that was forgotten could have broken a promise.
#[test]
fn two_workers_of_whom_nobody_is_forgotten() {
    let rerun = Protocol {
        claims: 2,
        stragglers: 1,
        forgets: false,
        ..RERUN
    };
    let at_most_once = Protocol {
        at_most_once: true,
        ..rerun.clone()
    };
    holds(
        "rerun, nobody forgotten",
        rerun,
        &[Replayed, StalledRefused],
    );
    holds(
        "at most once, nobody forgotten",
        at_most_once,
        &[StalledRefused],
    );
}

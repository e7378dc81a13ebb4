//! Every world that can be reached: no promise is broken in any of them.

use crate::{
    driver::Protocol,
    faults::Fault,
    sights::Sight::{self, *},
};

/// Seen by all workers.
const EVERYWHERE: &[Sight] = &[UndoneByItself, UndoneByAnother, OpenAndAbandoned];

pub(crate) const SAGA: Protocol = Protocol {
    claims: 3,
    stragglers: 0,
    words: 0,
    side_by_side: false,
    in_tasks: false,
    loses: true,
    undo_fails: false,
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
fn two_workers_undo_one_step_after_the_other() {
    let sights = &[UndoneByTwo, ValueAfterTakeover];
    holds("undo", SAGA, sights);
}

#[test]
fn two_workers_undo_while_a_request_straggles() {
    let protocol = Protocol {
        stragglers: 1,
        ..SAGA
    };
    holds("undo, straggling", protocol, &[UndoneByTwo]);
}

#[test]
fn two_workers_undo_steps_that_run_side_by_side() {
    let protocol = Protocol {
        side_by_side: true,
        ..SAGA
    };
    let sights = &[UndoneByTwo, LargerNumberFirst];
    holds("undo, side by side", protocol, sights);
}

#[test]
fn two_workers_undo_while_a_registration_is_under_way() {
    let protocol = Protocol {
        side_by_side: true,
        in_tasks: true,
        ..SAGA
    };
    holds("undo, in tasks", protocol, &[LateRegistration]);
}

#[test]
fn two_workers_whose_undos_fail_are_resumed() {
    let protocol = Protocol {
        claims: 4,
        words: 1,
        undo_fails: true,
        ..SAGA
    };
    let sights = &[NotUndone, UndoneAfterAll, Spent, LeftByThree];
    holds("undo, failing", protocol, sights);
}

/// No worker that was forgotten could have broken a promise.
#[test]
fn two_workers_of_whom_nobody_is_forgotten() {
    let protocol = Protocol {
        claims: 2,
        loses: false,
        forgets: false,
        ..SAGA
    };
    holds("undo, nobody forgotten", protocol, &[]);
}

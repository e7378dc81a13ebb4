//! The protocol, checked exhaustively: the models stand in `tests/`, and the code that runs them
//! stands here.

#![allow(
    clippy::print_stdout,
    reason = "how much was looked at is for people to read"
)]

pub mod call;

use std::{
    fmt::{Debug, Write},
    hash::Hash,
    time::Instant,
};

use stateright::{Checker, HasDiscoveries, Model, Path};

/// A value that a trace can show.
pub trait Plain: Clone + Debug + PartialEq + Send + Sync {}

impl<T: Clone + Debug + PartialEq + Send + Sync> Plain for T {}

/// Checks every world that `model` can reach, and that each of `sights` can be seen in one.
///
/// # Panics
///
/// If a promise is broken, or a sight is never seen.
pub fn holds<M>(name: &str, model: M, sights: &[&'static str])
where
    M: Model<State: Plain + Hash, Action: Plain> + Send + Sync + 'static,
{
    let began = Instant::now();
    let checker = model.checker().spawn_bfs().join();
    assert!(checker.is_done());
    println!(
        "{name}: {} states, {:?}",
        checker.unique_state_count(),
        began.elapsed()
    );
    for (promise, path) in checker.discoveries() {
        let broken = checker
            .model()
            .property(promise)
            .expectation
            .discovery_is_failure();
        assert!(!broken, "{promise}\n{}", trace(path));
    }
    for sight in sights {
        assert!(
            checker.discovery(sight).is_some(),
            "{name}: it was never seen that {sight}"
        );
    }
}

/// Checks that `fault`, which `model` makes, breaks a promise.
///
/// # Panics
///
/// If it goes unnoticed.
pub fn caught<M>(fault: impl Debug, model: M, breaks: &'static str)
where
    M: Model<State: Plain + Hash, Action: Plain> + Send + Sync + 'static,
{
    let began = Instant::now();
    let found = HasDiscoveries::AnyOf([breaks].into());
    let faulty = model.checker().finish_when(found).spawn_bfs().join();
    let states = faulty.unique_state_count();
    let Some(path) = faulty.discovery(breaks) else {
        panic!("{fault:?} went unnoticed in {states} states")
    };
    let elapsed = began.elapsed();
    println!("{fault:?} breaks `{breaks}` ({states} states, {elapsed:?}):");
    println!("    {:?}", path.into_actions());
}

/// Checks that `fault`, which `faulty` makes, is what breaks a promise: `sound` does not make it,
/// and keeps the promise.
///
/// # Panics
///
/// If the fault goes unnoticed, or the promise is broken without it.
pub fn caught_alone<M>(fault: impl Debug, (faulty, sound): (M, M), breaks: &'static str)
where
    M: Model<State: Plain + Hash, Action: Plain> + Send + Sync + 'static,
{
    caught(&fault, faulty, breaks);
    let found = HasDiscoveries::AnyOf([breaks].into());
    let sound = sound.checker().finish_when(found).spawn_bfs().join();
    assert!(sound.is_done());
    assert!(
        sound.discovery(breaks).is_none(),
        "{fault:?} is not what breaks `{breaks}`"
    );
}

/// The worlds and the actions, one after the other.
fn trace<S: Plain, A: Plain>(path: Path<S, A>) -> String {
    let steps = path.into_vec().into_iter();
    steps.fold(String::new(), |mut trace, (world, action)| {
        let _ = writeln!(trace, "    {world:?}\n{action:?}");
        trace
    })
}

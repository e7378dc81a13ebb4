//! The answers of a copy, and records that are never copied.

use super::*;
use crate::answers::{is_in_progress, is_reused, is_uncertain};

#[tokio::test]
async fn a24_a_replay_from_a_copy_asks_the_store_nothing() {
    let process = Process::new();
    assert_eq!(process.charge("k", 1).await, Ok(1));
    assert_eq!(
        process.primary.round_trips(),
        2,
        "a first call costs the same"
    );
    assert_eq!(
        process.trips("k").await,
        1,
        "a replay that finds no copy, too"
    );
    for _ in 0..3 {
        assert_eq!(process.trips("k").await, 0);
    }
    let (id, _) = only(&process.primary).await;
    let loads = process.primary.calls(StoreOperation::Load);
    assert_eq!(shown(&process.store, &id).await.state, State::Done);
    assert_eq!(
        process.primary.calls(StoreOperation::Load),
        loads,
        "nor does a look"
    );
}

/// The next number moves it, and another process may be the one that claims that.
#[tokio::test]
async fn a_stream_is_never_copied() {
    let process = Process::new();
    process.warm("k").await;
    let (id, record) = only(&process.primary).await;
    let stream = Draft {
        outcome: record.outcome.clone().map(|outcome| RawOutcome {
            kind: OutcomeKind::Stream,
            ..outcome
        }),
        token: TokenRule::Keep,
        ..completion(&claim(), Vec::new())
    };
    let swapped = process.store.swap(&id, Some(record.version), &stream).await;
    assert!(matches!(swapped, Ok(Swap::Applied(_))), "{swapped:?}");

    for _ in 0..2 {
        let loads = process.primary.calls(StoreOperation::Load);
        assert!(shown(&process.store, &id).await.is_stream());
        assert_eq!(process.primary.calls(StoreOperation::Load), loads + 1);
        assert!(process.store.peek(&id).is_none());
    }
}

#[tokio::test]
async fn a24_other_arguments_are_found_in_a_copy() {
    let process = Process::new();
    process.warm("k").await;
    let before = process.primary.round_trips();

    let refused = process.charge("k", 2).await;

    assert!(is_reused(&refused), "{refused:?}");
    assert_eq!(process.primary.round_trips(), before);
}

#[tokio::test]
async fn a25_what_runs_is_never_copied() {
    let process = Process::new();
    let gate = Gate::new();
    let (elsewhere, held) = (over(process.primary.clone(), &process.clock), gate.clone());
    let running = tokio::spawn(async move {
        let call = elsewhere.call("tiered.charge").key("k").arguments(&1_u32);
        let body = |_| async move {
            held.pass().await;
            Ok::<_, Error>(1_u32)
        };
        call.run(body).await
    });
    gate.arrived(1).await;
    for _ in 0..3 {
        let before = process.primary.round_trips();
        let call = process.idem.call("tiered.charge").key("k");
        let call = call.arguments(&1_u32).in_flight(InFlight::Reject);
        let refused = call.run(|_| async { Ok::<u32, Error>(2) }).await;
        assert!(is_in_progress(&refused), "{refused:?}");
        assert_eq!(process.primary.round_trips(), before + 1);
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(1));
    assert_eq!(process.charge("k", 1).await, Ok(1));
}

#[tokio::test]
async fn what_is_settled_is_never_given_as_it_was() {
    let process = Process::new();
    let call = process.idem.call("tiered.charge").key("k");
    let call = call.arguments(&1_u32);
    let call = call.on_crash(OnCrash::Uncertain).uncertain_errors();
    let left = call.run(|_| async { Err::<u32, BoxError>("who knows".into()) });
    assert!(left.await.is_err());
    for _ in 0..2 {
        let refused = process.charge("k", 1).await;
        assert!(is_uncertain(&refused), "{refused:?}");
    }

    let settle = process.idem.settle("tiered.charge", None::<&str>, "k");
    let settled = settle.expect("a key").with_value(&7_u32).await;

    assert!(settled.is_ok());
    for _ in 0..3 {
        assert_eq!(process.charge("k", 1).await, Ok(7));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_duplicates_at_once_are_answered_alike() {
    let process = Arc::new(Process::new());
    let mut callers = Vec::new();
    for _ in 0..8 {
        let process = Arc::clone(&process);
        callers.push(tokio::spawn(async move {
            let mut answers = Vec::new();
            for number in 0..50 {
                answers.push(process.charge(&format!("k{}", number % 5), 1).await);
            }
            answers
        }));
    }
    for caller in callers {
        let answers = caller.await.expect("no panic");
        assert!(answers.iter().all(|answer| *answer == Ok(1)), "{answers:?}");
    }
    assert_eq!(process.primary.swaps_to(State::Done), 5);
    let before = process.primary.round_trips();
    for number in 0..5 {
        process.charge(&format!("k{number}"), 1).await.expect("1");
    }
    assert_eq!(process.primary.round_trips(), before, "all are copied");
}

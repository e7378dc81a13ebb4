//! Calls of which the server says that they are running.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const RETRY_IN_EIGHT_SECONDS: Next = Next::RetryAfter(Duration::from_secs(8));

fn in_progress(retry_after: Option<u64>) -> [Observed; 2] {
    let words = [
        problem(409, Kind::RequestInProgress),
        stripe(409, "invalid_request_error", "idempotency_key_in_use"),
    ];
    words.map(|word| {
        Observed::Answer(Answered {
            retry_after: retry_after.map(Duration::from_secs),
            ..word
        })
    })
}

#[test]
fn cl12_what_is_running_is_waited_for_until_the_deadline() {
    let waiting = Progress {
        attempts: 24,
        waits: 20,
        may_have_happened: true,
        budget_left: false,
        ..progress()
    };
    for running in in_progress(Some(1)) {
        assert_eq!(ietf(&waiting, &running), RETRY_IN_EIGHT_SECONDS);
        let late = Progress {
            elapsed: Duration::from_secs(115),
            ..waiting
        };
        let asked = Next::RetryAfter(Duration::from_secs(1));
        assert_eq!(ietf(&late, &running), asked, "there is no time for more");
        let over = Progress {
            elapsed: Duration::from_secs(119),
            ..waiting
        };
        let later = Next::Stop(Stopped::RetryLater(Duration::from_secs(1)));
        assert_eq!(ietf(&over, &running), later);
    }
    for running in in_progress(None) {
        assert_eq!(ietf(&waiting, &running), RETRY_IN_EIGHT_SECONDS);
        let over = Progress {
            elapsed: Duration::from_millis(119_800),
            ..waiting
        };
        let unknown = unknown(StopReason::Deadline);
        assert_eq!(ietf(&over, &running), unknown);
    }
}

/// A pause that is longer than what is left is no reason to give up before that is over.
#[test]
fn cl12_what_is_running_is_asked_for_as_long_as_there_is_time() {
    let limits = Limits::default().backoff(SECOND, 60 * SECOND);
    for running in in_progress(None) {
        let after = |elapsed| {
            let waiting = Progress {
                attempts: 7,
                waits: 6,
                elapsed,
                may_have_happened: true,
                ..progress()
            };
            decide(&Profile::ietf(), &limits, &waiting, &running, 0.0)
        };
        assert_eq!(after(59 * SECOND), Next::RetryAfter(60 * SECOND));
        assert_eq!(after(64 * SECOND), Next::RetryAfter(28 * SECOND));
        assert_eq!(after(92 * SECOND), Next::RetryAfter(14 * SECOND));
        assert_eq!(after(119 * SECOND), Next::RetryAfter(SECOND / 2));
    }
}

/// After the wait there are as many attempts as if there had been none.
#[test]
fn cl12_what_was_waited_for_used_up_no_attempt() {
    let waited = |attempts| Progress {
        attempts,
        waits: 20,
        may_have_happened: true,
        ..progress()
    };
    let lost = |attempts| ietf(&waited(attempts), &Observed::Lost);
    assert_eq!(lost(21), HALF_A_SECOND);
    assert_eq!(lost(22), Next::RetryAfter(Duration::from_secs(1)));
    let unknown = unknown(StopReason::Attempts);
    assert_eq!(lost(24), unknown);
}

#[test]
fn cl12_who_sends_nothing_again_does_not_wait_either() {
    let once = Limits::default().attempts(1);
    for running in in_progress(Some(1)) {
        let next = decide(&Profile::ietf(), &once, &progress(), &running, 0.0);
        assert_eq!(next, unknown(StopReason::Attempts));
    }
}

/// However short the pauses are that were meant for a few attempts: no server is asked as fast as
/// it answers.
#[test]
fn cl12_what_is_running_is_never_asked_for_without_a_pause() {
    let (zero, short) = (Duration::ZERO, Duration::from_millis(1));
    for (first, longest) in [(zero, zero), (zero, 8 * SECOND), (short, short)] {
        let limits = Limits::default().backoff(first, longest);
        let pause = |waits, running: &Observed| {
            let waiting = Progress {
                attempts: waits + 1,
                waits,
                may_have_happened: true,
                ..progress()
            };
            decide(&Profile::ietf(), &limits, &waiting, running, 1.0)
        };
        for running in in_progress(None).into_iter().chain(in_progress(Some(0))) {
            let Next::RetryAfter(early) = pause(2, &running) else {
                panic!("it is waited for");
            };
            assert!(early <= short, "the attempts have their own pauses");
            for waits in [3, 20, u32::MAX - 1] {
                let tenth = Next::RetryAfter(Duration::from_millis(100));
                assert_eq!(pause(waits, &running), tenth);
            }
        }
    }
}

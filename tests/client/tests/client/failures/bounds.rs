//! Pauses, budgets, timeouts and deadlines: when the client asks again, and where it stops.

use std::{pin::Pin, time::Duration};

use idempotent_client::{Budget, ClientCall, IdempotencyKeys, Limits, Profile, StopReason};
use idempotent_runtime::{clock::Timer, testing::Gate};

use crate::kit::{
    Ending, Process, Server, Step, Timeout, answer, client, client_with, outcome, patient,
};

#[tokio::test]
async fn cl28_pauses_grow_and_differ() {
    let mut first = Vec::new();
    for _ in 0..8 {
        let server = Server::doing(vec![answer(500); 3]).await;
        let client = client();
        client.pay(&server).await;
        let pauses = client.pauses.taken();
        for (pause, full) in pauses.iter().zip([500, 1_000, 2_000]) {
            let full = Duration::from_millis(full);
            assert!(*pause >= full / 2 && *pause <= full, "{pauses:?}");
        }
        first.push(pauses[0]);
    }
    first.dedup();
    assert!(first.len() > 1, "every pause is the same: {first:?}");
}

/// It goes without a socket, so that tokio's own clock stands still between pauses.
#[tokio::test(start_paused = true)]
async fn cl28_pauses_go_by_tokio_s_time() {
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let process = Process::around(keys, Busy);
    let before = tokio::time::Instant::now();

    let call = process.client.post("http://api.example.com/pay");
    let ended = call.body("pay").send().await;

    assert_eq!(ended.unknown().0, StopReason::Attempts);
    let took = before.elapsed();
    assert!(
        took >= Duration::from_millis(1_750) && took <= Duration::from_millis(3_510),
        "{took:?}"
    );
}

struct Busy;

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Busy {
    async fn handle(
        &self,
        _: reqwest::Request,
        _: &mut http::Extensions,
        _: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let response = http::Response::builder().status(500).body("");
        Ok(response.expect("a response").into())
    }
}

#[tokio::test]
async fn cl29_attempts_and_the_budget_of_an_origin_are_bounds() {
    let server = Server::doing(vec![answer(500); 99]).await;
    let limits = patient().attempts(3).budget(Budget::new(3, 0.0));
    let client = client_with(|keys| keys.limits(limits));
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let ended = client.post(&server.url("/pay")).send().await;
        let (why, call) = ended.unknown();
        reasons.push((why, call.attempts));
    }
    assert_eq!(
        reasons,
        [
            (StopReason::Attempts, 3),
            (StopReason::Budget, 2),
            (StopReason::Budget, 1)
        ]
    );

    // Another origin has a budget of its own.
    let other = Server::doing([answer(500), answer(201)]).await;
    client.pay(&other).await;
}

#[tokio::test]
async fn cl29_calls_that_go_well_pay_for_the_retries_of_others() {
    let script = [500, 201, 500, 201, 500, 201].map(answer);
    let server = Server::doing(script).await;
    let limits = patient().budget(Budget::new(1, 0.5));
    let client = client_with(|keys| keys.limits(limits));
    let attempts = async || outcome(&client.pay(&server).await).attempts;
    assert_eq!(attempts().await, 2);
    let half = client.post(&server.url("/pay")).send().await;
    assert_eq!(half.unknown().0, StopReason::Budget, "half a retry is none");
    assert_eq!(attempts().await, 1);
    assert_eq!(attempts().await, 2);
}

#[tokio::test]
async fn cl29_the_deadline_ends_an_attempt_that_is_under_way() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let server = Server::doing([answer(500).into(), Step::Hang]).await;
    let gate = Gate::new();
    let timeout = Timeout::of(DEADLINE, 2, &gate);
    let keys = IdempotencyKeys::builder(Profile::ietf()).timer(timeout.clone());
    let call = Process::of(keys).post(&server);
    let call = call.with_extension(ClientCall::new().deadline(DEADLINE));
    let call = tokio::spawn(call.send());
    server.await_requests(2).await;

    gate.open();

    let ended = call.await.expect("it ends");
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Deadline);
    assert_eq!(call.attempts, 2);
    assert_eq!(timeout.given(), [DEADLINE, DEADLINE]);
}

/// An attempt may take as long as it is given, and no longer than the call.
#[tokio::test]
async fn cl29_the_deadline_ends_an_attempt_that_may_take_longer_by_itself() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let server = Server::doing([Step::Hang]).await;
    let gate = Gate::new();
    let timeout = Timeout::of(DEADLINE, 1, &gate);
    let limits = Limits::default()
        .deadline(DEADLINE)
        .attempt_timeout(2 * DEADLINE);
    let keys = IdempotencyKeys::builder(Profile::ietf())
        .limits(limits)
        .timer(timeout.clone());
    let call = tokio::spawn(Process::of(keys).post(&server).send());
    server.await_requests(1).await;

    gate.open();

    let ended = call.await.expect("it ends");
    assert_eq!(ended.unknown().0, StopReason::Deadline);
    assert_eq!(timeout.given(), [DEADLINE]);
}

/// A timer of the application's will do if there is none of tokio's: nothing else is asked how much
/// time has passed.
#[tokio::test]
async fn cl46_pauses_and_timeouts_go_by_a_timer_of_one_s_own() {
    let attempt = Duration::from_secs(30);
    let (timeout, pause) = (Gate::new(), Gate::new());
    let server = Server::doing([Step::Hang, answer(201).into()]).await;
    let timer = OneOfEach {
        attempt,
        timeout: timeout.clone(),
        pause: pause.clone(),
    };
    let keys = IdempotencyKeys::builder(Profile::ietf()).timer(timer);
    let keys = keys.limits(patient().attempt_timeout(attempt));
    let call = tokio::spawn(Process::of(keys).post(&server).send());
    server.await_requests(1).await;
    timeout.arrived(1).await;
    timeout.open();
    pause.arrived(1).await;
    assert_eq!(server.seen().len(), 1, "it pauses");
    timeout.close();
    pause.open();

    let response = call.await.expect("it ends").expect("an answer");

    assert_eq!(outcome(&response).attempts, 2);
}

/// A timer that a test moves on by its gates.
#[derive(Debug)]
struct OneOfEach {
    attempt: Duration,
    timeout: Gate,
    pause: Gate,
}

impl Timer for OneOfEach {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let is_timeout = duration == self.attempt;
        let gate = if is_timeout {
            &self.timeout
        } else {
            &self.pause
        };
        let gate = gate.clone();
        Box::pin(async move { gate.pass().await })
    }
}

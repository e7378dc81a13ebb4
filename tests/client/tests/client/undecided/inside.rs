//! A middleware inside that does something with a call, and does not tell it: the call stays open.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use http::Extensions;
use idempotent_client::{
    ClientError, IdempotencyKeys, KeysBuilder, MemoryJournal, Profile, StopReason,
};
use reqwest::{
    Request, Response,
    dns::{Name, Resolve, Resolving},
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

use crate::kit::{
    Ending, Passing, Pauses, Process, Server, Step, answer, nobody, patient, problem, unfinished,
    wish,
};

/// Changes what comes after the first attempt.
fn later(change: impl Fn(&mut Request) + Send + Sync + 'static) -> impl Middleware {
    let sent = AtomicUsize::default();
    Passing(move |request: &mut Request| {
        if sent.fetch_add(1, Ordering::Relaxed) > 0 {
            change(request);
        }
    })
}

/// An attempt that reached no server says nothing of the one before it.
#[tokio::test]
async fn cl39_a_call_that_gives_up_without_a_connection_is_open_where_it_may_have_been_done() {
    let server = Server::doing([Step::Cut]).await;
    let keys = IdempotencyKeys::builder(Profile::undeclared())
        .timer(Pauses::default())
        .limits(patient().attempts(2));
    let process = Process::around(keys, later(to(nobody().await)));

    let call = process.client.put(server.url("/order")).body("order");
    let ended = call.with_extension(wish()).send().await;

    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(server.seen().len(), 1);
    assert_eq!(process.open().await, 1);
}

/// Pays by a client that retries inside, where something comes between the two attempts.
async fn retried(
    server: &Server,
    keys: KeysBuilder,
    http: reqwest::ClientBuilder,
    change: impl Fn(&mut Request) + Send + Sync + 'static,
) -> (Process, reqwest_middleware::Result<Response>) {
    let backoff = ExponentialBackoff::builder()
        .retry_bounds(Duration::ZERO, Duration::ZERO)
        .build_with_max_retries(1);
    let (http, keys) = keys.build(http).expect("a client");
    let client = ClientBuilder::new(http)
        .with(keys.clone())
        .with(RetryTransientMiddleware::new_with_policy(backoff))
        .with(later(change))
        .build();
    let process = Process { client, keys };
    let ended = process.charge(server).send().await;
    (process, ended)
}

/// A retry inside tells of the last attempt alone, and that there may have been others.
#[tokio::test]
async fn cl02_a_retry_inside_that_did_not_connect_leaves_the_attempt_before_it_open() {
    let server = Server::doing([Step::Cut]).await;
    let keys = IdempotencyKeys::builder(Profile::ietf())
        .timer(Pauses::default())
        .limits(patient().attempts(1));
    let http = reqwest::Client::builder();

    let (process, ended) = retried(&server, keys, http, to(nobody().await)).await;

    ended.unknown();
    assert_eq!(server.seen().len(), 1);
    assert_eq!(process.open().await, 1);
}

/// Leads to an address at which no server listens.
fn to(nobody: SocketAddr) -> impl Fn(&mut Request) + Send + Sync + 'static {
    move |request| {
        let port = Some(nobody.port());
        request.url_mut().set_port(port).expect("it has a host");
    }
}

/// Leads to a server whose certificate is not taken, as encryption reports it.
fn to_the_portal(request: &mut Request) {
    let url = request.url_mut();
    url.set_host(Some("portal.example.com")).expect("a host");
}

struct Untrusted;

impl Resolve for Untrusted {
    fn resolve(&self, _: Name) -> Resolving {
        let untrusted = io::Error::from(io::ErrorKind::InvalidData);
        Box::pin(async move { Err(untrusted.into()) })
    }
}

/// As when a machine changes its network between two attempts.
#[tokio::test]
async fn cl02_a_retry_inside_that_took_no_certificate_leaves_the_attempt_before_it_open() {
    let server = Server::doing([Step::Cut]).await;
    let keys = IdempotencyKeys::builder(Profile::ietf()).timer(Pauses::default());
    let http = reqwest::Client::builder().dns_resolver(Arc::new(Untrusted));

    let (process, ended) = retried(&server, keys, http, to_the_portal).await;

    assert_eq!(ended.unknown().0, StopReason::Middleware);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(process.open().await, 1);
}

/// A client with a journal, and with something inside that sends in its place.
fn around(inside: impl Middleware) -> Process {
    let keys = IdempotencyKeys::builder(Profile::ietf())
        .timer(Pauses::default())
        .journal(MemoryJournal::new());
    Process::around(keys, inside)
}

/// Sends what it is given, and fails for a reason of its own.
struct Impatient;

#[async_trait]
impl Middleware for Impatient {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        next.run(request, extensions).await?;
        let failure = io::Error::from(io::ErrorKind::TimedOut);
        Err(reqwest_middleware::Error::middleware(failure))
    }
}

/// A call that the journal sends again at a restart is not to be done in another way meanwhile.
#[tokio::test]
async fn cl21_a_failure_of_a_middleware_inside_leaves_the_call_open_and_says_so() {
    let server = Server::doing([answer(201)]).await;
    let process = around(Impatient);

    let ended = process.post(&server).send().await;

    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Middleware);
    assert!(call.failure.is_some());
    assert_eq!(unfinished(&process.keys).await[0].key(), &call.key);

    let read = process.client.get(server.url("/pay")).send().await;
    let error = read.expect_err("the middleware fails");
    assert!(ClientError::from_error(&error).is_none(), "it is handed on");
}

/// Sends what it is given, and then another call, whose failure it hands on.
struct Notifies(ClientWithMiddleware, String);

#[async_trait]
impl Middleware for Notifies {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        next.run(request, extensions).await?;
        self.0.post(&self.1).body("paid").send().await
    }
}

/// Another call that was not done says nothing of this one.
#[tokio::test]
async fn cl21_the_failure_of_another_call_inside_is_not_taken_for_that_of_the_call() {
    let overloaded = problem(503, "idempotency-overloaded");
    let other = Server::doing([overloaded]).await;
    let notice = super::process(Profile::ietf(), patient().attempts(1));
    let server = Server::doing([answer(201)]).await;
    let process = around(Notifies(notice.client, other.url("/notices")));

    let ended = process.post(&server).send().await;

    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Middleware);
    assert_eq!(unfinished(&process.keys).await[0].key(), &call.key);
}

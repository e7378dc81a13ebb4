//! Tools that the tests of the client share: a server and time that do as they say, and clients.

use std::{
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http::Extensions;
use idempotent_client::{
    CallSummary, ClientCall, ClientError, ClientOutcome, IdempotencyKeys, Intent, KeysBuilder,
    Limits, PendingCall, Profile, StopReason,
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, RequestBuilder};
use tokio::net::TcpListener;

pub(crate) use self::{
    server::{Answer, Frames, Seen, Server, Step, answer, json, problem},
    time::{Pauses, Timeout},
};

mod server;
mod time;

/// Looks at every request that passes, or changes it.
pub(crate) struct Passing<F>(pub(crate) F);

#[async_trait]
impl<F: Fn(&mut reqwest::Request) + Send + Sync + 'static> Middleware for Passing<F> {
    async fn handle(
        &self,
        mut request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        (self.0)(&mut request);
        next.run(request, extensions).await
    }
}

/// Asks once more after such an answer.
pub(crate) struct OnceMore(pub(crate) fn(&reqwest_middleware::Result<reqwest::Response>) -> bool);

#[async_trait]
impl Middleware for OnceMore {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let again = request.try_clone().expect("its body is in memory");
        let answered = next.clone().run(request, extensions).await;
        match (self.0)(&answered) {
            true => next.run(again, extensions).await,
            false => answered,
        }
    }
}

/// A client that pauses for no time at all, and almost never gives up.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) http: ClientWithMiddleware,
    pub(crate) pauses: Pauses,
}

pub(crate) fn client() -> Client {
    client_with(|keys| keys)
}

pub(crate) fn client_with(set_up: impl FnOnce(KeysBuilder) -> KeysBuilder) -> Client {
    let pauses = Pauses::default();
    let keys = set_up(builder(&pauses));
    let http = keys.client(reqwest::Client::builder());
    Client {
        http: http.expect("a client"),
        pauses,
    }
}

/// A client to which this server is as the profile says.
pub(crate) fn client_at(server: &Server, profile: Profile) -> Client {
    let url = server.url("/").parse().expect("a URL");
    client_with(|keys| keys.server(&url, profile))
}

pub(crate) fn builder(pauses: &Pauses) -> KeysBuilder {
    IdempotencyKeys::builder(Profile::ietf())
        .limits(patient())
        .timer(pauses.clone())
}

pub(crate) fn patient() -> Limits {
    Limits::default().deadline(Duration::from_secs(3_600))
}

impl Client {
    pub(crate) fn post(&self, url: &str) -> RequestBuilder {
        self.http.post(url).body("pay")
    }

    /// The call of the [`wish`].
    pub(crate) fn charge(&self, server: &Server) -> RequestBuilder {
        self.post(&server.url("/pay")).with_extension(wish())
    }

    /// The answer to a call that says nothing of itself.
    pub(crate) async fn pay(&self, server: &Server) -> reqwest::Response {
        let answered = self.post(&server.url("/pay")).send().await;
        answered.expect("an answer")
    }
}

/// One life of a program.
pub(crate) struct Process {
    pub(crate) client: ClientWithMiddleware,
    pub(crate) keys: IdempotencyKeys,
}

impl Process {
    pub(crate) fn of(keys: KeysBuilder) -> Self {
        let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
        let client = ClientBuilder::new(http).with(keys.clone()).build();
        Self { client, keys }
    }

    /// The same with something inside, through which every attempt passes.
    pub(crate) fn around(keys: KeysBuilder, inside: impl Middleware) -> Self {
        let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
        let client = ClientBuilder::new(http).with(keys.clone()).with(inside);
        let client = client.build();
        Self { client, keys }
    }

    /// A call that says nothing of itself.
    pub(crate) fn post(&self, server: &Server) -> RequestBuilder {
        self.client.post(server.url("/pay")).body("pay")
    }

    /// The call of the [`wish`].
    pub(crate) fn charge(&self, server: &Server) -> RequestBuilder {
        self.post(server).with_extension(wish())
    }

    /// How many calls the journal holds open.
    pub(crate) async fn open(&self) -> usize {
        unfinished(&self.keys).await.len()
    }
}

/// One operation, whichever process asks for it.
pub(crate) fn wish() -> ClientCall {
    ClientCall::new().intent(Intent::new("payments.charge", "order-42"))
}

/// An address at which no server listens.
pub(crate) async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

pub(crate) fn outcome(response: &reqwest::Response) -> &ClientOutcome {
    ClientOutcome::from_response(response).expect("every response has one")
}

/// The calls that the journal holds open, each of which can be read.
pub(crate) async fn unfinished(keys: &IdempotencyKeys) -> Vec<PendingCall> {
    let open = keys.unfinished(9).await.expect("a list");
    let open = open.into_iter();
    open.map(|call| call.expect("it can be read")).collect()
}

/// The ending of a call that has no outcome.
pub(crate) trait Ending {
    fn ending(&self) -> &ClientError;

    /// It is unknown whether the call took effect: why it ended, and how it went.
    #[track_caller]
    fn unknown(&self) -> (StopReason, &CallSummary) {
        match self.ending() {
            ClientError::Unknown { why, call, .. } => (*why, call),
            other => panic!("nobody knows, and it says {other:?}"),
        }
    }

    /// The journal knows the key from another request.
    #[track_caller]
    fn is_another_request(&self) {
        let ended = self.ending();
        let is_another = matches!(ended, ClientError::KeyReusedLocally { .. });
        assert!(is_another, "{ended:?}");
    }
}

impl Ending for reqwest_middleware::Result<reqwest::Response> {
    #[track_caller]
    fn ending(&self) -> &ClientError {
        let error = self.as_ref().expect_err("there is no outcome");
        ClientError::from_error(error).unwrap_or_else(|| panic!("an error of ours, not {error:?}"))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

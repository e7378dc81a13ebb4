//! What the manual says of changing a client whose journal holds an open call, row by row.

use std::{sync::Arc, time::Duration};

use http::HeaderName;
use idempotent_client::{
    ClientCall, ClientError, IdempotencyKeys, Intent, KeyStyle, KeysBuilder, MemoryJournal,
    Profile, Resend, StopReason,
};
use idempotent_runtime::testing::ManualClock;
use reqwest::Response;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

use crate::kit::{Ending, Pauses, Server, Step, answer, patient, unfinished};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A journal that outlives the builds of a program, and the time that goes by meanwhile.
#[derive(Default)]
struct Open {
    journal: Arc<MemoryJournal>,
    clock: ManualClock,
}

/// One build of the program.
struct Build {
    client: ClientWithMiddleware,
    keys: IdempotencyKeys,
}

impl Open {
    fn build(&self, profile: Profile, set_up: impl FnOnce(KeysBuilder) -> KeysBuilder) -> Build {
        let keys = IdempotencyKeys::builder(profile)
            .timer(Pauses::default())
            .limits(patient().attempts(1))
            .journal(Arc::clone(&self.journal))
            .clock(self.clock.clone());
        let (http, keys) = set_up(keys)
            .build(reqwest::Client::builder())
            .expect("a client");
        let client = ClientBuilder::new(http).with(keys.clone()).build();
        Build { client, keys }
    }

    /// Leaves one call open whose answer is lost.
    async fn left_by(server: &Server) -> Self {
        let open = Self::default();
        let old = open.build(Profile::ietf(), |keys| keys);
        assert!(old.charge(server).await.is_err());
        open
    }
}

impl Build {
    async fn charge(&self, server: &Server) -> reqwest_middleware::Result<Response> {
        self.charge_with(server, "token").await
    }

    async fn charge_with(
        &self,
        server: &Server,
        token: &str,
    ) -> reqwest_middleware::Result<Response> {
        let call = self.client.post(server.url("/pay")).body("pay");
        let call = call.header("x-version", "1").bearer_auth(token);
        let wish = ClientCall::new().intent(Intent::new("payments.charge", "order-42"));
        call.with_extension(wish).send().await
    }

    /// Sends the one call that is listed as open.
    async fn resume(&self) -> reqwest_middleware::Result<Response> {
        let open = unfinished(&self.keys).await;
        let [call] = &open[..] else {
            panic!("one call is open: {open:?}")
        };
        let request = call.request(&self.client).expect("it can be sent");
        request.send().await
    }
}

async fn server(answers: usize) -> Server {
    let answers = vec![Step::from(answer(201)); answers];
    Server::doing([Step::Cut].into_iter().chain(answers)).await
}

#[tokio::test]
async fn changed_limits_count_for_an_open_call() {
    let steps = [Step::Cut, answer(503).into(), answer(201).into()];
    let server = Server::doing(steps).await;
    let open = Open::left_by(&server).await;

    let more = open.build(Profile::ietf(), |keys| keys.limits(patient().attempts(2)));

    assert!(more.charge(&server).await.is_ok());
    let keys = server.keys();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

/// A server that takes keys as they stand would do the call again.
#[tokio::test]
async fn a_style_that_changes_leaves_a_call_its_key_as_it_was_written() {
    for (style, changed) in [
        (KeyStyle::Quoted, KeyStyle::Bare),
        (KeyStyle::Bare, KeyStyle::Quoted),
    ] {
        let server = server(3).await;
        let open = Open::default();
        let styled = |style| open.build(Profile::ietf().style(style), |keys| keys);
        assert!(styled(style).charge(&server).await.is_err());
        let new = styled(changed);

        assert!(new.charge(&server).await.is_ok());
        // What is over is asked for with other credentials.
        assert!(new.charge_with(&server, "renewed").await.is_ok());

        let keys = server.keys();
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        let another = new.client.post(server.url("/pay")).body("pay");
        assert!(another.send().await.is_ok());
        let written = server.keys()[3].clone().expect("a key");
        assert_eq!(written.starts_with('"'), changed == KeyStyle::Quoted);
    }
}

#[tokio::test]
async fn a_shorter_retention_leaves_an_open_call_unsent_until_it_is_rolled_back() {
    let server = server(1).await;
    let open = Open::left_by(&server).await;
    open.clock.advance(HOUR);

    let shorter = open.build(Profile::ietf().retention(HOUR), |keys| keys);
    let told = shorter.charge(&server).await;
    let why = StopReason::Age;
    assert!(
        matches!(told.ending(), ClientError::Unknown { why: told, .. } if *told == why),
        "{told:?}"
    );
    assert_eq!(
        unfinished(&shorter.keys).await[0].replay_plan(),
        Resend::TooOld
    );
    assert_eq!(server.seen().len(), 1);

    let rolled_back = open.build(Profile::ietf(), |keys| keys);
    assert!(rolled_back.charge(&server).await.is_ok());
}

#[tokio::test]
async fn a_header_that_is_named_makes_an_open_call_that_has_it_another_request() {
    let server = server(1).await;
    let open = Open::left_by(&server).await;
    let named = |name| Profile::ietf().request_header(HeaderName::from_static(name));

    let told = open
        .build(named("x-version"), |keys| keys)
        .charge(&server)
        .await;
    assert!(
        matches!(told.ending(), ClientError::KeyReusedLocally { .. }),
        "{told:?}"
    );
    assert_eq!(server.seen().len(), 1);

    let another = open.build(named("x-another"), |keys| keys);
    assert!(another.charge(&server).await.is_ok());
}

#[tokio::test]
async fn a_namespace_or_an_account_that_changes_makes_an_intent_a_new_call() {
    type SetUp = fn(KeysBuilder) -> KeysBuilder;
    let changes: [SetUp; 2] = [|keys| keys.namespace("shop"), |keys| keys.account("A")];
    for change in changes {
        let server = server(2).await;
        let open = Open::left_by(&server).await;
        let new = open.build(Profile::ietf(), change);

        assert!(new.charge(&server).await.is_ok());
        // What is listed keeps its key.
        assert!(new.resume().await.is_ok());

        let keys = server.keys();
        assert_ne!(keys[0], keys[1]);
        assert_eq!(keys[0], keys[2]);
    }
}

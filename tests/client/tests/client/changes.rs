//! The manual's rules for changing a client whose journal holds an open call, row by row.

use std::{sync::Arc, time::Duration};

use http::HeaderName;
use idempotent_client::{
    IdempotencyKeys, KeyStyle, KeysBuilder, MemoryJournal, Profile, Resend, StopReason,
};
use idempotent_runtime::testing::ManualClock;
use reqwest::Response;

use crate::kit::{Ending, Pauses, Process, Server, Step, answer, patient, unfinished};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A journal that outlives the builds of a program, and the time that goes by meanwhile.
#[derive(Default)]
struct Open {
    journal: Arc<MemoryJournal>,
    clock: ManualClock,
}

/// One build of the program.
struct Build(Process);

impl Open {
    fn build(&self, profile: Profile, set_up: impl FnOnce(KeysBuilder) -> KeysBuilder) -> Build {
        let keys = IdempotencyKeys::builder(profile)
            .timer(Pauses::default())
            .limits(patient().attempts(1))
            .journal(Arc::clone(&self.journal))
            .clock(self.clock.clone());
        Build(Process::of(set_up(keys)))
    }

    /// Leaves one call open, whose answer is lost.
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
        let call = self.0.charge(server).header("x-version", "1");
        call.bearer_auth(token).send().await
    }

    /// Sends the one call that is listed as open.
    async fn resume(&self) -> reqwest_middleware::Result<Response> {
        let open = unfinished(&self.0.keys).await;
        let [call] = &open[..] else {
            panic!("one call is open: {open:?}")
        };
        let request = call.request(&self.0.client).expect("it can be sent");
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
    server.requests_with_one_key();
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
        // A call that is over is asked for with other credentials.
        assert!(new.charge_with(&server, "renewed").await.is_ok());

        assert_eq!(server.requests_with_one_key(), 3);
        assert!(new.0.post(&server).send().await.is_ok());
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
    assert_eq!(told.unknown().0, StopReason::Age);
    assert_eq!(
        unfinished(&shorter.0.keys).await[0].replay_plan(),
        Resend::TooOld
    );
    assert_eq!(server.seen().len(), 1);

    let rolled_back = open.build(Profile::ietf(), |keys| keys);
    assert!(rolled_back.charge(&server).await.is_ok());
}

#[tokio::test]
async fn a_header_that_is_named_makes_an_open_call_that_has_it_another_request() {
    let with_account = |keys: KeysBuilder| keys.account("A");
    let server = server(1).await;
    let open = Open::default();
    let old = open.build(Profile::ietf(), with_account);
    assert!(old.charge(&server).await.is_err());
    let named = |name| Profile::ietf().request_header(HeaderName::from_static(name));

    let told = open.build(named("x-version"), with_account);
    told.charge(&server).await.is_another_request();
    assert_eq!(server.seen().len(), 1);

    let another = open.build(named("x-another"), with_account);
    assert!(another.charge(&server).await.is_ok());
}

/// It may be of another account, so the server decides.
#[tokio::test]
async fn mend_36_a_header_that_counts_no_more_makes_an_open_call_another_callers() {
    let version = || HeaderName::from_static("x-version");
    for profile in [
        Profile::ietf().request_header(version()),
        Profile::ietf().volatile_header(version()),
    ] {
        let server = server(2).await;
        let open = Open::left_by(&server).await;
        let new = open.build(profile, |keys| keys);

        assert!(new.charge(&server).await.is_ok());
        assert_eq!(new.0.open().await, 1, "it stays open");

        assert!(new.resume().await.is_ok());
        assert_eq!(new.0.open().await, 0, "the list ends it");
        assert_eq!(server.requests_with_one_key(), 3);
    }
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
        // A call that is listed keeps its key.
        assert!(new.resume().await.is_ok());

        let keys = server.keys();
        assert_ne!(keys[0], keys[1]);
        assert_eq!(keys[0], keys[2]);
    }
}

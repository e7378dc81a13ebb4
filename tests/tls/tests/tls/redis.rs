//! Redis that has no port except the encrypted one.

use std::time::Duration;

use idempotent_runtime::{
    StoreError, StoreErrorKind,
    store::{RedisStore, redis::RedisBuilder},
};
use redis::{Client, Msg, TlsCertificates};
use tokio_stream::{Stream, StreamExt};

use super::{
    AUTHORITY, CONNECT_TIMEOUT, choose_cryptography, in_time, is_refused, prefix, variable,
    where_the_authority_is_trusted, works,
};

const URL: &str = "IDEMPOTENT_TEST_REDIS_TLS_URL";
const PLAIN_URL: &str = "IDEMPOTENT_TEST_REDIS_URL";

/// Trust in the private authority.
pub(super) fn certificates() -> TlsCertificates {
    let root_cert = std::fs::read(variable(AUTHORITY)).expect("the authority's file");
    TlsCertificates {
        client_tls: None,
        root_cert: Some(root_cert),
    }
}

/// A client that trusts the private authority.
fn client() -> Client {
    Client::build_with_tls(variable(URL), certificates()).expect("a URL")
}

pub(super) fn builder(prefix: &str) -> RedisBuilder {
    let builder = RedisStore::builder().key_prefix(prefix);
    builder.connect_timeout(CONNECT_TIMEOUT)
}

/// Listens to this channel.
pub(super) async fn listen(client: &Client, channel: &str) -> impl Stream<Item = Msg> + Unpin {
    let told = client.get_async_pubsub().await;
    let mut told = told.expect("the server answers");
    told.subscribe(channel).await.expect("it listens");
    told.into_on_message()
}

/// The store's own word that it listens.
pub(super) async fn says_hello(told: &mut (impl Stream<Item = Msg> + Unpin)) {
    let hello = told.next().await.expect("the server tells");
    assert_eq!(hello.get_payload_bytes(), b"hello");
}

/// A call that waits listens, on a server that has no port without encryption.
async fn encrypts_all(holder: RedisStore, waiter: RedisStore, prefix: &str) {
    let client = client();
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.expect("the server answers");
    let mut command = redis::cmd("CONFIG");
    let plain = command.arg("GET").arg("port");
    let plain: (String, u16) = plain.query_async(&mut connection).await.expect("an answer");
    assert_eq!(plain, ("port".to_owned(), 0));
    let channel = format!("{prefix}moved");
    let mut told = listen(&client, &channel).await;

    let sees = async || {
        says_hello(&mut told).await;
        let mut listening = redis::cmd("PUBSUB");
        let listening = listening.arg("NUMSUB").arg(&channel);
        let listening = listening.query_async(&mut connection).await;
        let (_, listening): (String, u64) = listening.expect("an answer");
        assert_eq!(listening, 2, "this test and the store");
    };
    works(holder, waiter, sees).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_a_url_is_encrypted() {
    let name = "redis::every_connection_of_a_url_is_encrypted";
    where_the_authority_is_trusted(name, async || {
        let (prefix, url) = (prefix(), variable(URL));
        let open = async || {
            let made = builder(&prefix).connect(&url).await;
            made.expect("the server answers")
        };
        encrypts_all(open().await, open().await, &prefix).await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_a_client_is_encrypted() {
    let prefix = prefix();
    let open = async || {
        let made = builder(&prefix).client(client()).await;
        made.expect("the server answers")
    };
    encrypts_all(open().await, open().await, &prefix).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn the_connection_of_an_application_is_used_as_it_is() {
    let prefix = prefix();
    choose_cryptography();
    let open = async || {
        let manager = client().get_connection_manager().await;
        let manager = manager.expect("the server answers");
        let made = builder(&prefix).connection(manager).await;
        made.expect("the server answers")
    };
    works(open().await, open().await, async || ()).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_that_nobody_trusted_vouches_for_is_refused() {
    let (prefix, url) = (prefix(), variable(URL));
    let connecting = builder(&prefix).connect(&url);
    is_refused(in_time(connecting).await, "certificate");
}

/// The protocol has no word for encryption. A client that does not encrypt gets no answer, and
/// neither does a client that encrypts alone.
pub(super) async fn nobody_answers(
    connect: impl AsyncFnOnce(RedisBuilder) -> Result<RedisStore, StoreError>,
) {
    let builder = RedisStore::builder().connect_timeout(Duration::from_millis(500));
    let answer = in_time(connect(builder)).await;
    let error = answer.expect_err("it cannot be made");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_plain_connection_gets_no_answer() {
    let url = variable(URL).replace("rediss://", "redis://");
    nobody_answers(async |builder| builder.connect(&url).await).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_server_without_encryption_gives_no_answer() {
    let url = variable(PLAIN_URL).replace("redis://", "rediss://");
    nobody_answers(async |builder| builder.connect(&url).await).await;
}

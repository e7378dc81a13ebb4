//! A Redis Cluster whose nodes have no port except the encrypted one, neither for clients nor for
//! each other.

use redis::{Client, FromRedisValue, cluster::ClusterClient};
use tokio_stream::StreamExt;

use super::{
    choose_cryptography, in_time, is_refused, prefix,
    redis::{builder, certificates, listen, nobody_answers, says_hello},
    variable, where_the_authority_is_trusted, works,
};

const URLS: &str = "IDEMPOTENT_TEST_REDIS_CLUSTER_TLS_URLS";
const PLAIN_URLS: &str = "IDEMPOTENT_TEST_REDIS_CLUSTER_URLS";

fn urls(name: &str) -> Vec<String> {
    let urls = variable(name);
    urls.split(',').map(str::to_owned).collect()
}

/// Clients of the single nodes, which trust the private authority.
fn nodes() -> Vec<Client> {
    choose_cryptography();
    let urls = urls(URLS).into_iter();
    let clients = urls.map(|url| Client::build_with_tls(url, certificates()));
    clients.map(|client| client.expect("a URL")).collect()
}

/// The answer of each node.
async fn each<T: FromRedisValue>(nodes: &[Client], question: &str) -> Vec<T> {
    let mut answers = Vec::new();
    for node in nodes {
        let connection = node.get_multiplexed_async_connection().await;
        let mut connection = connection.expect("the node answers");
        let mut words = question.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        let command = command.arg(words.collect::<Vec<_>>());
        let answer = command.query_async(&mut connection).await;
        answers.push(answer.expect("an answer"));
    }
    answers
}

/// A client of the whole cluster, which trusts the private authority.
fn client() -> ClusterClient {
    choose_cryptography();
    let builder = ClusterClient::builder(urls(URLS)).certs(certificates());
    builder.build().expect("URLs")
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_urls_is_encrypted() {
    let name = "redis_cluster::every_connection_of_urls_is_encrypted";
    where_the_authority_is_trusted(name, async || {
        let nodes = nodes();
        for (setting, encrypted) in [("port", "0"), ("tls-cluster", "yes")] {
            let question = format!("CONFIG GET {setting}");
            for said in each::<(String, String)>(&nodes, &question).await {
                assert_eq!(said, (setting.to_owned(), encrypted.to_owned()));
            }
        }
        let prefix = prefix();
        let channel = format!("{prefix}moved");
        // The store listens at the first node, and what it is told comes to the last one by way of
        // the others.
        let last = nodes.last().expect("there are six");
        let mut told = listen(last, &channel).await;
        let open = async || {
            let made = builder(&prefix).connect_cluster(urls(URLS)).await;
            made.expect("the cluster answers")
        };

        let sees = async || {
            says_hello(&mut told).await;
            let question = format!("PUBSUB NUMSUB {channel}");
            let listening = each::<(String, u64)>(&nodes, &question).await;
            let listening: u64 = listening.iter().map(|(_, count)| count).sum();
            assert_eq!(listening, 2, "this test and the store");
        };
        works(open().await, open().await, sees).await;
        let moved = in_time(told.next()).await.expect("the node tells");
        assert_ne!(moved.get_payload_bytes(), b"hello");
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_a_client_is_encrypted() {
    let prefix = prefix();
    let open = async || {
        let made = builder(&prefix).cluster_client(client()).await;
        made.expect("the cluster answers")
    };
    works(open().await, open().await, async || ()).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn the_connection_of_an_application_is_used_as_it_is() {
    let prefix = prefix();
    let open = async || {
        let connection = client().get_async_connection().await;
        let connection = connection.expect("the cluster answers");
        let made = builder(&prefix).cluster_connection(connection).await;
        made.expect("the cluster answers")
    };
    works(open().await, open().await, async || ()).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn nodes_that_nobody_trusted_vouches_for_are_refused() {
    let (prefix, urls) = (prefix(), urls(URLS));
    let connecting = builder(&prefix).connect_cluster(&urls);
    is_refused(in_time(connecting).await, "certificate");
    // If the first ones are gone, the others say why.
    let gone = ["rediss://127.0.0.1:1", urls[0].as_str()];
    let connecting = builder(&prefix).connect_cluster(gone);
    is_refused(in_time(connecting).await, "certificate");
    // An application's own client does not say which ones those are.
    let client = ClusterClient::new(urls).expect("URLs");
    nobody_answers(async |builder| builder.cluster_client(client).await).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn who_alone_encrypts_or_does_not_gets_no_answer() {
    for (servers, actual, wrong) in [
        (URLS, "rediss://", "redis://"),
        (PLAIN_URLS, "redis://", "rediss://"),
    ] {
        let urls = variable(servers).replace(actual, wrong);
        let urls: Vec<_> = urls.split(',').collect();
        nobody_answers(async |builder| builder.connect_cluster(&urls).await).await;
    }
}

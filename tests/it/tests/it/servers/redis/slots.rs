//! A cluster: every record in one slot, and all of them over all nodes.

use std::sync::Arc;

use idempotent_runtime::{
    Error, Idempotency,
    store::{RedisStore, Store, StoreErrorKind},
    testing::conformance::StoreUnderTest,
};
use redis::{cluster::ClusterClient, cluster_read_routing::RandomReplicaStrategy};

use super::{
    Redis, RedisCluster, keys, past_the_library,
    private::{Private, kind},
};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn records_spread_over_the_nodes_and_are_listed_from_all() {
    let cluster = RedisCluster::new();
    let store = cluster.store().await;
    let idem = Idempotency::new(Arc::clone(&store));
    for number in 0..50_u32 {
        let call = idem.call("charge").key(&number);
        let answer = call.run(|_| async { Ok::<_, Error>(number) }).await;
        assert_eq!(answer, Ok(number));
    }
    let listed = store.scan(None, 100).await.expect("a list");
    assert_eq!(listed.len(), 50);
    let mut of_each = Vec::new();
    for url in &cluster.urls {
        let mut node = past_the_library(url).await;
        of_each.push(keys(&mut node, &cluster.prefix).await.expect("the keys"));
    }
    assert!(
        of_each.iter().all(|keys| keys.len() < 50),
        "no node has all of them"
    );
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_client_and_a_connection_of_the_applications_reach_every_node() {
    let cluster = RedisCluster::new();
    // One node is enough to find the others.
    let client = ClusterClient::new(cluster.urls[..1].to_vec()).expect("a URL");
    let connection = client.get_async_connection().await;
    let connection = connection.expect("the cluster answers");
    let builder = || RedisStore::builder().key_prefix(&cluster.prefix);
    let own = builder().cluster_client(client).await;
    let own = own.expect("the cluster answers");
    let bare = builder().cluster_connection(connection).await;
    let bare = bare.expect("the cluster answers");
    assert!(own.for_heartbeats().await.expect("an answer").is_some());
    assert!(bare.for_heartbeats().await.expect("an answer").is_none());
    for (store, expected) in [(own, 1), (bare, 1)] {
        let idem = Idempotency::new(store);
        for number in 0..20_u32 {
            let call = idem.call("charge").key(&number);
            let answer = call.run(|_| async { Ok::<_, Error>(expected) }).await;
            assert_eq!(answer, Ok(1));
        }
    }
}

/// A replica may not know yet what its primary has forgotten.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn no_replica_is_asked_also_where_the_application_asks_them() {
    let cluster = RedisCluster::new();
    let client =
        ClusterClient::builder(cluster.urls.clone()).read_routing_strategy(RandomReplicaStrategy);
    let store = RedisStore::builder().key_prefix(&cluster.prefix);
    let store = store.cluster_client(client.build().expect("URLs"));
    let idem = Idempotency::new(store.await.expect("the cluster answers"));
    let before = read_from_replicas(&cluster).await;
    for number in (0..20_u32).chain(0..20) {
        let call = idem.call("charge").key(&number);
        let answer = call.run(|_| async { Ok::<_, Error>(number) }).await;
        assert_eq!(answer, Ok(number));
    }
    assert_eq!(read_from_replicas(&cluster).await, before);
}

/// Each replica's statistics of the reads of hash fields that it has answered.
async fn read_from_replicas(cluster: &RedisCluster) -> Vec<String> {
    let mut reads = Vec::new();
    for url in &cluster.urls {
        let mut node = past_the_library(url).await;
        let info = redis::cmd("INFO")
            .arg("replication")
            .arg("commandstats")
            .take();
        let said: String = info.query_async(&mut node).await.expect("it tells");
        if said.contains("role:slave") {
            let of_hashes = said.lines().find(|line| line.starts_with("cmdstat_hmget:"));
            reads.push(of_hashes.unwrap_or_default().to_owned());
        }
    }
    assert!(!reads.is_empty(), "there are replicas");
    reads
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_node_is_no_server_and_a_server_is_no_cluster() {
    let cluster = RedisCluster::new();
    let node = RedisStore::connect(&cluster.urls[0]).await;
    assert_eq!(kind(node), Some(StoreErrorKind::Configuration));
    let alone = Private::new().await;
    let cluster = RedisStore::connect_cluster([alone.url()]).await;
    assert_eq!(kind(cluster), Some(StoreErrorKind::Configuration));
    let alone = Redis::new().await;
    let cluster = RedisStore::connect_cluster([alone.url]).await;
    assert_eq!(kind(cluster), Some(StoreErrorKind::Configuration));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_wrong_password_of_a_cluster_is_configuration() {
    let urls = RedisCluster::new().urls.into_iter();
    let urls: Vec<_> = urls
        .map(|url| url.replace("redis://", "redis://nobody:gu3ss@"))
        .collect();
    let answer = RedisStore::connect_cluster(&urls).await;
    let error = answer.expect_err("nobody has that name");
    assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error:?}");
    let said = format!("{error} {error:?}");
    assert!(!said.contains("gu3ss"), "{said}");
    // An application's own client does not say which nodes it asks.
    let client = ClusterClient::new(urls).expect("URLs");
    let answer = RedisStore::builder().cluster_client(client).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Unavailable));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn scripts_that_every_node_forgot_are_sent_again() {
    let cluster = RedisCluster::new();
    let idem = Idempotency::new(cluster.store().await);
    for number in 0..20_u32 {
        if number % 5 == 0 {
            for url in &cluster.urls {
                let mut node = past_the_library(url).await;
                let flush = redis::cmd("SCRIPT").arg("FLUSH").clone();
                let flushed = flush.exec_async(&mut node).await;
                flushed.expect("the scripts are gone");
            }
        }
        let call = idem.call("charge").key(&number);
        let answer = call.run(|_| async { Ok::<_, Error>(number) }).await;
        assert_eq!(answer, Ok(number));
    }
}

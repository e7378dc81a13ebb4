//! The program, run as people run it.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use idempotent_client::{ClientCall, ClientKey, IdempotencyKeys, Limits, Profile};
use idempotent_runtime::testing::{Disconnect, Proxy};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_http-payments"))
}

#[test]
fn ten_posts_over_a_bad_network_are_one_charge_and_ten_equal_answers() {
    let output = program().output().expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");

    let answered = printed.lines().filter(|line| {
        line.contains(r#" 201 "#) && line.ends_with(r#"{"charge":"ch_1","cents":1250}"#)
    });
    assert_eq!(answered.count(), 10, "{printed}");
    let all = "10 calls with one key, 10 answers, all equal. Charges made: 1.";
    assert!(printed.contains(all), "{printed}");
    assert!(printed.contains("curl -i http://127.0.0.1:"), "{printed}");
}

/// A process of the service; it ends with this value.
struct Service {
    child: Child,
    address: SocketAddr,
}

impl Service {
    fn start(database: &str, journal: &Path) -> Self {
        let mut child = program()
            .args(["serve", database])
            .arg(journal)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("it is a pipe");
        let mut address = String::new();
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("it says where it listens");
        let address = address.trim().parse().expect("an address");
        Self { child, address }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one POST until it is answered, as a client that knows of no other one.
async fn post(service: SocketAddr, key: ClientKey, token: &'static str) -> (u16, String) {
    let limits = Limits::default()
        .attempts(20)
        .attempt_timeout(Duration::from_secs(2))
        .backoff(Duration::from_millis(20), Duration::from_millis(200));
    let response = IdempotencyKeys::builder(Profile::ietf())
        .limits(limits)
        .client(reqwest::Client::builder())
        .expect("a client")
        .post(format!("http://{service}/charges"))
        .bearer_auth(token)
        .header("content-type", "application/json")
        .body(r#"{"order":"42","cents":1250}"#)
        .with_extension(ClientCall::new().key(key))
        .send()
        .await
        .expect("an answer");
    let status = response.status().as_u16();
    (status, response.text().await.expect("a body"))
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn ten_posts_with_two_tokens_of_a_user_to_four_processes_over_one_database_are_one_charge() {
    let database = env::var("IDEMPOTENT_TEST_POSTGRES_URL").expect("`cargo xtask test` sets it");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("charges.log");
    let services: Vec<_> = (0..4)
        .map(|_| Service::start(&database, &journal))
        .collect();
    let mut networks = Vec::new();
    for service in &services {
        networks.push(Proxy::to(service.address).await.expect("a proxy"));
    }
    let key = ClientKey::random();

    // The first four at the same time, each to a process of its own; what happens on the way
    // differs.
    let cuts = [
        Disconnect::BeforeAnswer,
        Disconnect::BeforeRequest,
        Disconnect::Silence,
        Disconnect::InAnswer,
    ];
    let mut posts = Vec::new();
    for (network, cut) in networks.iter().zip(cuts) {
        network.cut_next(cut);
        posts.push(tokio::spawn(post(
            network.address(),
            key.clone(),
            "alice-laptop",
        )));
    }
    let mut answers = Vec::new();
    for sent in posts {
        answers.push(sent.await.expect("no panic"));
    }
    for (network, cut) in networks
        .iter()
        .cycle()
        .zip(cuts.into_iter().cycle())
        .take(6)
    {
        network.cut_next(cut);
        answers.push(post(network.address(), key.clone(), "alice-phone").await);
    }

    let charge = (201, r#"{"charge":"ch_1","cents":1250}"#.to_owned());
    assert_eq!(answers, vec![charge; 10]);
    let charges = fs::read_to_string(&journal).expect("charges");
    assert_eq!(charges.lines().count(), 1, "{charges}");
}

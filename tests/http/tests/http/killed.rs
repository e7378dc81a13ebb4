//! A process that is killed in its handler, and those that are left. The test binary starts itself
//! again as each of them.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use axum::{Router, routing::post};
use http::StatusCode;
use idempotent_runtime::{
    Idempotency, InFlight, OnCrash, current,
    http::{IdempotencyLayer, Rules},
};
use tokio::net::TcpListener;

/// The environment variable that says what a process does, and in which folder.
const ROLE: &str = "IDEMPOTENT_TEST_SERVICE";

/// No test by itself: the entrance of the processes. Each of them serves until the process that
/// started it is gone.
#[tokio::test]
async fn service() {
    let Ok(role) = env::var(ROLE) else { return };
    let (on_crash, role) = role.split_once(' ').expect("what becomes of a crash");
    let (then, folder) = role.split_once(' ').expect("what the handler does");
    let (on_crash, holds) = match (on_crash, then) {
        ("rerun", then) => (OnCrash::Rerun, then == "holds"),
        (_, then) => (OnCrash::Uncertain, then == "holds"),
    };
    let folder = PathBuf::from(folder);
    let idem = Idempotency::sqlite(folder.join("idempotency.db")).await;
    let rules = Rules::ietf().on_crash(on_crash).lease("5s");
    let layer = IdempotencyLayer::builder(idem.expect("the file opens"))
        .shared_by_all_callers()
        .rules(rules.in_flight(InFlight::Wait(Duration::from_secs(60))))
        .build()
        .expect("the settings are sound");
    let charge = async move || {
        charge(&folder);
        say("charged");
        if holds {
            std::future::pending::<()>().await;
        }
        let receipt = format!("a receipt of process {}", std::process::id());
        (StatusCode::CREATED, receipt)
    };
    let app = Router::new().route("/", post(charge)).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    say(&listener.local_addr().expect("an address").to_string());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let gone = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    gone.await.expect("no panic").expect("it can be read");
}

/// The effect: a line on disk, which says under which key a gateway would have known it.
fn charge(folder: &Path) {
    let mut file = fs::File::options();
    let file = file.create(true).append(true).open(journal(folder));
    let line = format!("{}\n", current().child_key("gateway.charge"));
    let mut file = file.expect("the file opens");
    file.write_all(line.as_bytes()).expect("it is written");
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("charges.log")
}

/// The runner writes to the same stream.
fn say(word: &str) {
    writeln!(io::stdout(), "\n@{word}").expect("it is heard");
}

struct Service {
    child: Child,
    said: BufReader<ChildStdout>,
    address: String,
}

impl Service {
    fn start(on_crash: &str, then: &str, folder: &Path) -> Self {
        let this = env::current_exe().expect("this test has a file");
        let mut child = Command::new(this)
            .args(["--exact", "killed::service", "--nocapture"])
            .env(ROLE, format!("{on_crash} {then} {}", folder.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let address = String::new();
        let mut service = Self {
            child,
            said,
            address,
        };
        service.address = service.hear();
        service
    }

    fn hear(&mut self) -> String {
        let lines = self.said.by_ref().lines();
        let mut words = lines.filter_map(|line| Some(line.ok()?.strip_prefix('@')?.to_owned()));
        words.next().expect("the process lives")
    }

    /// Sends the request; what comes back can be read.
    fn ask(&self) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("it listens");
        let request = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nidempotency-key: \"k\"\r\n\r\n";
        socket.write_all(request.as_bytes()).expect("it is sent");
        socket
    }
}

impl Drop for Service {
    /// By SIGKILL; then the process is gone.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that came over the connection, which may have been cut.
fn head_and_body(mut socket: TcpStream) -> Option<(String, String)> {
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

#[test]
fn s_104_what_a_process_that_was_killed_left_behind_is_settled_after_one_lease() {
    for (on_crash, charges, status, answer) in [
        ("rerun", 2, "201", "a receipt of process "),
        ("uncertain", 1, "409", "idempotency_outcome_unknown"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let start = |then| Service::start(on_crash, then, folder.path());
        let mut holder = start("holds");
        let left = [start("answers"), start("answers")];
        let unanswered = holder.ask();
        assert_eq!(holder.hear(), "charged");

        drop(holder);

        assert_eq!(head_and_body(unanswered), None);
        // Both at the same time: one settles it, and the other one hears of it.
        let answers = left.each_ref().map(Service::ask).map(head_and_body);
        let answers = answers.map(|answer| answer.expect("it lives"));
        for (head, body) in &answers {
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            assert!(body.contains(answer), "{body}");
        }
        assert_eq!(answers[0].1, answers[1].1);
        let replays = answers
            .iter()
            .filter(|(head, _)| head.contains("idempotent-replayed: true"));
        assert_eq!(replays.count(), charges - 1);
        let charged = fs::read_to_string(journal(folder.path())).expect("it was charged");
        assert_eq!(charged.lines().count(), charges, "{on_crash}: {charged}");
        assert_eq!(
            charged.lines().collect::<BTreeSet<_>>().len(),
            1,
            "{charged}"
        );
    }
}

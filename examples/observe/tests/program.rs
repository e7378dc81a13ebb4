//! The program, run as people run it, and read by a Prometheus that has our rules.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The program, built where it is not.
fn observe() -> Command {
    let test = env::current_exe().expect("this test has a file");
    let target = test.parent().and_then(Path::parent).expect("a folder");
    let built = target.join("examples/observe");
    let built = built.with_extension(env::consts::EXE_EXTENSION);
    if !built.is_file() {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--example", "observe"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(status.is_ok_and(|it| it.success()), "it can be built");
    }
    Command::new(built)
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/operate")
        .join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(page(name)).expect("it is there")
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _it_may_be_over = self.0.kill();
        let _it_may_be_over = self.0.wait();
    }
}

/// The expressions of the dashboard, as Grafana would send them.
fn panels() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .flat_map(|it| it["targets"].as_array().expect("targets"));
    let expressions = targets.map(|it| it["expr"].as_str().expect("an expression"));
    let sent = |it: &str| {
        it.replace("$__rate_interval", "1m")
            .replace("$operation", ".*")
    };
    expressions.map(sent).collect()
}

/// The names that rules and alerts of `alerts.yaml` begin with.
fn names(kind: &str) -> Vec<String> {
    let rules = read("alerts.yaml");
    let of = |line: &str| Some(line.trim().strip_prefix(kind)?.trim().to_owned());
    rules.lines().filter_map(of).collect()
}

fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some(body.to_owned())
}

/// How many results of a query are numbers.
fn results(address: &str, query: &str) -> usize {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let answer = get(address, &format!("/api/v1/query?query={encoded}")).expect("it answers");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    let results = answer["data"]["result"].as_array().expect("results");
    results.iter().filter(|it| it["value"][1] != "NaN").count()
}

#[test]
#[ignore = "needs Prometheus: cargo xtask test"]
fn the_metrics_show_what_happened_and_every_panel_and_rule_finds_something() {
    let mut program = observe()
        .args(["--for", "15"])
        .stdout(Stdio::piped())
        .spawn();
    let program = program.as_mut().expect("it starts");
    let mut printed = BufReader::new(program.stdout.take().expect("it prints"));
    let mut first = String::new();
    printed.read_line(&mut first).expect("it prints");
    let (_, target) = first.trim().rsplit_once("http://").expect("an address");
    let target = target.trim_end_matches("/metrics");

    let folder = tempfile::tempdir().expect("a folder");
    let rules = page("alerts.yaml").canonicalize().expect("a path");
    let settings = format!(
        "global: {{ scrape_interval: 500ms, evaluation_interval: 500ms }}\n\
         rule_files: ['{}']\n\
         scrape_configs: [{{ job_name: observe, static_configs: [{{ targets: ['{target}'] }}] }}]\n",
        rules.display()
    );
    let file = folder.path().join("prometheus.yml");
    fs::write(&file, settings).expect("it is written");
    let port = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr();
    let address = port.expect("an address").to_string();
    let prometheus = env::var("IDEMPOTENT_TEST_PROMETHEUS").expect("it is installed");
    let prometheus = Command::new(prometheus)
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.path().join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .args(["--log.level=error"])
        .spawn();
    let _prometheus = Running(prometheus.expect("it starts"));

    let until = Instant::now() + Duration::from_secs(30);
    let mut queries = panels();
    queries.extend(names("- record:"));
    assert!(queries.len() > 25, "{queries:?}");
    while !queries.is_empty() {
        assert!(Instant::now() < until, "nothing is found: {queries:#?}");
        thread::sleep(Duration::from_millis(500));
        queries.retain(|it| results(&address, it) == 0);
    }
    let mut said = String::new();
    printed.read_to_string(&mut said).expect("it prints");
    assert!(program.wait().expect("it ends").success(), "{said}");
    assert!(said.contains("The metrics show what happened."), "{said}");
}

#[test]
#[ignore = "needs Prometheus: cargo xtask test"]
fn the_alerts_are_rules_that_fire() {
    let prometheus = env::var("IDEMPOTENT_TEST_PROMETHEUS").expect("it is installed");
    for arguments in [["check", "alerts.yaml"], ["test", "alerts.test.yaml"]] {
        let [what, file] = arguments;
        let promtool = Command::new(Path::new(&prometheus).with_file_name("promtool"))
            .args([what, "rules"])
            .arg(page(file))
            .output();
        let output = promtool.expect("it starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let tested = read("alerts.test.yaml");
    for alert in names("- alert:") {
        let rows = tested.matches(&format!("alertname: {alert}")).count();
        assert_eq!(rows, 2, "{alert} is silent, and then fires");
    }
}

#[test]
fn the_page_tells_for_each_alert_what_to_do_in_five_sentences() {
    let (page, alerts) = (read("alerts.md"), names("- alert:"));
    assert!(alerts.len() >= 10, "{alerts:?}");
    for alert in &alerts {
        let (_, section) = page.split_once(&format!("## {alert}\n")).expect(alert);
        let section = section
            .split("\n## ")
            .next()
            .expect("a section")
            .replace('\n', " ");
        let sentences = section
            .split(". ")
            .filter(|it| !it.trim().is_empty())
            .count();
        assert!(
            (2..=5).contains(&sentences),
            "{alert}: {sentences} sentences"
        );
    }
    assert_eq!(
        page.matches("\n## ").count(),
        alerts.len(),
        "no section is left over"
    );
}

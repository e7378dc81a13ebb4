//! The steps of each command, in a table. A step that needs something from outside gets it through
//! its environment.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// One line of the plan: a cargo command, and what it is for.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) title: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Whether the servers have to run, and their addresses to stand in its environment.
    pub(crate) needs_servers: bool,
    /// How many tests must have passed: a filter that finds none fails nothing by itself.
    pub(crate) least_passed: u32,
}

/// Features of the runtime that must stand alone; the empty one is the core.
const FEATURES: [&str; 19] = [
    "",
    "sqlite",
    "postgres",
    "mysql",
    "redis",
    "redis-cluster",
    "wire",
    "tower",
    "axum",
    "testing",
    "inventory",
    "metrics",
    "opentelemetry",
    "uuid",
    "ulid",
    "chrono",
    "time",
    "jiff",
    "rust_decimal",
];

/// The databases in which an audit stands, and an outbox that the page shows.
const AUDITED: [&str; 3] = ["mysql", "postgres", "sqlite"];

/// Encryption, with stores that it is for. `tls-rustls` is a name for `tls-rustls-ring-webpki`.
const ENCRYPTED: &str = "postgres,redis,tls-rustls";

/// Every feature except those that choose an encryption: programs take one, and some need libraries
/// of the system. The package that tests encryption names its own.
fn all_features() -> String {
    let named = FEATURES.iter().filter(|feature| !feature.is_empty());
    let named: Vec<_> = named
        .map(|feature| format!("idempotent-runtime/{feature}"))
        .chain(["metrics", "sqlite"].map(|feature| format!("idempotent-client/{feature}")))
        .chain(AUDITED.map(|feature| format!("idempotent-audit/{feature}")))
        .chain(AUDITED.map(|feature| format!("idempotent-admin/{feature}")))
        .chain(["idempotent-admin/audit".to_owned()])
        .collect();
    format!("--features {}", named.join(","))
}

/// Everything that runs: unit, integration and compile-fail tests and the model are tests of the
/// workspace.
pub(crate) fn test() -> Vec<Step> {
    let features = all_features();
    let all = format!("--workspace {features} --no-fail-fast");
    // A test that is ignored elsewhere needs a server, and here it has one. Documentation has other
    // reasons to ignore a listing.
    // Most tests wait for a server or a timer most of their time.
    let threads = 3 * thread::available_parallelism().map_or(1, NonZero::get);
    let mut tests = if is_installed("nextest") {
        let how =
            format!("--run-ignored all --failure-output immediate-final --test-threads {threads}");
        step("tests", &format!("nextest run {all} {how}"))
    } else {
        step("tests", &format!("test {all} --tests -- --include-ignored"))
    };
    tests.needs_servers = true;
    vec![
        // Beside the other members, examples get features that they did not ask for. First, because
        // tests run them.
        step("examples alone", "build --examples"),
        tests,
        callers_in_queues(&all, threads),
        step("doc tests", &format!("test --doc {all}")),
        shuttle(),
    ]
}

/// The tests of servers that look for lost and doubled effects, with all operations in the queues
/// in which they otherwise wait only in a crowd.
fn callers_in_queues(all: &str, threads: usize) -> Step {
    const TESTS: &str = "servers::interruptions servers::postgres::direct servers::costs::postgres \
        servers::seen::postgres:: servers::cuts::postgres invariants::postgres \
        invariants::outcomes::postgres late_claims::postgres takeovers::postgres outages::postgres \
        chaos_on_postgres servers::mariadb::direct servers::costs::mariadb servers::seen::mariadb \
        servers::cuts::mariadb invariants::mariadb invariants::outcomes::mariadb \
        late_claims::mariadb takeovers::mariadb outages::mariadb chaos_on_mariadb";
    let command = format!(
        "test {all} --test it -- --include-ignored --quiet --test-threads {threads} {TESTS}"
    );
    let mut step = step("callers in queues", &command);
    step.needs_servers = true;
    let forced = ("IDEMPOTENT_TEST_LANES_FORCED", "1".into());
    step.environment.push(forced);
    step
}

/// Everything that is found out without running anything.
pub(crate) fn lint() -> Vec<Step> {
    let features = all_features();
    let mut steps = vec![
        step("formatting", "fmt --all --check"),
        step("floors", "run --quiet --package xtask -- floors"),
        step(
            "clippy",
            &format!("clippy --workspace {features} --all-targets -- -D warnings"),
        ),
    ];
    let features_alone = FEATURES.into_iter().chain([ENCRYPTED]);
    steps.extend(features_alone.map(|feature| {
        let title = if feature.is_empty() {
            "no feature"
        } else {
            feature
        };
        alone(title, "idempotent-runtime", feature)
    }));
    steps.push(alone("the client", "idempotent-client", ""));
    steps.push(alone("its metrics", "idempotent-client", "metrics"));
    let audits = AUDITED.map(|feature| {
        let title = format!("the audit in {feature}");
        alone(&title, "idempotent-audit", feature)
    });
    steps.extend(audits);
    steps.push(alone("the page", "idempotent-admin", ""));
    let audited = "audit,postgres";
    steps.push(alone("the page with an audit", "idempotent-admin", audited));
    steps.push(fuzz());
    steps.push(docs());
    steps.push(packages());
    let oldest = concat!("+", env!("CARGO_PKG_RUST_VERSION"));
    if is_installed(oldest) {
        steps.push(oldest_rust(oldest, &features));
    } else {
        println!(
            "{oldest}: that Rust is not installed: whether the library compiles with it is not checked"
        );
    }
    if is_installed("deny") {
        steps.push(step("licences and advisories", "deny --all-features check"));
    } else {
        println!("cargo-deny is not installed: licences and advisories are not checked");
    }
    steps
}

/// The crates that are published, as arguments.
fn published() -> String {
    const PACKAGES: [&str; 6] = ["macros", "runtime", "client", "audit", "admin", "cli"];
    PACKAGES
        .map(|name| format!("--package idempotent-{name}"))
        .join(" ")
}

/// The archives of the crates that are published. They are not built: the workspace is.
fn packages() -> Step {
    let packages = published();
    step(
        "packages",
        &format!("package {packages} --no-verify --allow-dirty --quiet"),
    )
}

/// The documentation of the crates that are published. A broken link fails.
pub(crate) fn docs() -> Step {
    let (packages, features) = (published(), all_features());
    let mut docs = step(
        "documentation",
        &format!("doc {packages} {features} --no-deps"),
    );
    docs.environment
        .push(("RUSTDOCFLAGS", "-D warnings".into()));
    docs
}

/// A package with this feature and no other: it compiles, and nothing in it is unused. The style is
/// that of the workspace, which clippy reads.
fn alone(title: &str, package: &str, feature: &str) -> Step {
    let mut alone = step(
        &format!("{title} alone"),
        &format!(
            "rustc --profile check --lib --package {package} --no-default-features --features"
        ),
    );
    alone
        .arguments
        .extend([feature, "--", "-D", "warnings"].map(str::to_owned));
    alone
}

/// The fuzz targets, checked by their own lock file. A library that is named spares its C++, and
/// nothing is linked.
fn fuzz() -> Step {
    let mut fuzz = step(
        "fuzz targets",
        "clippy --locked --manifest-path fuzz/Cargo.toml --target-dir",
    );
    fuzz.arguments.push(target().display().to_string());
    fuzz.arguments
        .extend(["--", "-D", "warnings"].map(str::to_owned));
    fuzz.environment
        .push(("CUSTOM_LIBFUZZER_PATH", "/none.a".into()));
    fuzz
}

/// The library, compiled by the oldest Rust that its manifest names. The output of another compiler
/// is in a folder of its own.
fn oldest_rust(oldest: &str, features: &str) -> Step {
    let folder = target().join("oldest");
    let mut check = step(
        "the oldest Rust",
        &format!(
            "{oldest} check --package idempotent-runtime --package idempotent-client --package idempotent-audit --package idempotent-admin {features} --target-dir"
        ),
    );
    check.arguments.push(folder.display().to_string());
    check
}

/// Shuttle replaces the locks by a flag of the compiler, which rebuilds everything: the folder of
/// its own saves doing so twice. Only its own tests run, because the others have no scheduler.
fn shuttle() -> Step {
    let folder = target().join("shuttle");
    let mut shuttle = step(
        "interleavings",
        "test --package idempotent-runtime --lib --target-dir",
    );
    shuttle
        .arguments
        .extend([folder.display().to_string(), "shuttle::".to_owned()]);
    shuttle
        .environment
        .push(("RUSTFLAGS", "--cfg shuttle".into()));
    shuttle
}

fn step(title: &str, command: &str) -> Step {
    Step {
        title: title.to_owned(),
        arguments: command.split(' ').map(str::to_owned).collect(),
        environment: Vec::new(),
        needs_servers: false,
        least_passed: u32::from(command.starts_with("test ") || command.starts_with("nextest ")),
    }
}

fn is_installed(subcommand: &str) -> bool {
    Command::new("cargo")
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The folder that cargo builds into: this program lies in `debug` there.
pub(crate) fn target() -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|program| Some(program.parent()?.parent()?.to_owned()))
        .unwrap_or_else(|| root().join("target"))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    /// Features of the library that are not linted alone.
    const LEFT_OUT: [&str; 5] = [
        // Nothing, which is linted as no feature.
        "default",
        // `tls-rustls` is linted, and means this.
        "tls-rustls-ring-webpki",
        // The package that tests encryption is linted with it.
        "tls-rustls-ring-native-roots",
        // The sources are those of the others, and its C takes a minute to compile.
        "tls-rustls-aws-lc-rs",
        // It needs the headers of the system's OpenSSL, and is nothing to the sources.
        "tls-native-tls",
    ];

    #[test]
    fn every_feature_is_linted_or_left_out_for_a_reason() {
        let manifest = root().join("idempotent-runtime/Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("the library has a manifest");
        let (_, features) = manifest.split_once("\n[features]\n").expect("features");
        let (features, _) = features.split_once("\n[").expect("another table");
        let features = features.lines().filter(|line| !line.starts_with('#'));
        let features: BTreeSet<_> = features
            .filter_map(|line| Some(line.split_once(" = ")?.0))
            // It is no feature by itself.
            .filter(|feature| !feature.starts_with("_"))
            .collect();

        let linted = FEATURES.into_iter().chain([ENCRYPTED]);
        let linted = linted.flat_map(|features| features.split(','));
        let linted = linted.filter(|feature| !feature.is_empty());
        assert_eq!(features, linted.chain(LEFT_OUT).collect());
    }

    #[test]
    fn every_step_that_runs_tests_must_have_run_some() {
        for step in test() {
            let runs_tests = !matches!(step.arguments[0].as_str(), "build" | "check");
            assert_eq!(step.least_passed > 0, runs_tests, "{}", step.title);
        }
    }
}

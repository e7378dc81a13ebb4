//! The programs in `examples/`, run as people run them.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs a program in `folder`, and returns what it printed.
fn run(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = command(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?} failed\n{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    printed
}

#[test]
fn each_transfer_is_applied_once_whoever_sends_it_again_and_kills_the_ledger() {
    let printed = run("ledger", &[], &env::temp_dir());
    for said in [
        "was killed 10 times with SIGKILL",
        "applied     200\n",
        "The balances are 800.00 in sum.",
        "Each transfer was applied once",
    ] {
        assert!(printed.contains(said), "{printed}");
    }
}

#[test]
fn without_the_attribute_transfers_are_applied_again_and_the_ledger_says_so() {
    let ledger = command("ledger").arg("--unprotected").output();
    let ledger = ledger.expect("the program starts");
    let printed = String::from_utf8_lossy(&ledger.stdout);
    assert_eq!(ledger.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("WRONG: 200 transfers were applied"),
        "{printed}"
    );
}

#[test]
fn a_trip_is_booked_once_or_undone_once_wherever_its_process_is_killed() {
    let printed = run("trip", &[], &env::temp_dir());
    for said in [
        "three steps: booked\n  flight  1 booked, 0 cancelled\n  hotel   1 booked, 0 cancelled\n  car     1 booked, 0 cancelled\n",
        "undoes: refused: no car is left\n  flight  1 booked, 1 cancelled\n  hotel   1 booked, 1 cancelled\n  car     0 booked, 0 cancelled\n",
        "cancelled: not undone: hotel\n  flight  1 booked, 1 cancelled\n  hotel   1 booked, 0 cancelled\n",
        "program: refused: no car is left\n  flight  1 booked, 1 cancelled\n  hotel   1 booked, 1 cancelled\n",
        "killed 4 times with SIGKILL.\n",
    ] {
        assert!(printed.contains(said), "{said}\n{printed}");
    }
}

#[test]
fn without_steps_bookings_are_doubled_and_left_and_the_trip_says_so() {
    let trip = command("trip").arg("--unprotected").output();
    let trip = trip.expect("the program starts");
    let printed = String::from_utf8_lossy(&trip.stdout);
    assert_eq!(trip.status.code(), Some(1), "{printed}");
    says(&printed, "flight  4 booked, 0 cancelled   WRONG");
}

#[test]
fn an_operator_settles_what_the_gateway_left_open() {
    let printed = run("operators", &[], &env::temp_dir());
    for said in [
        "order-2 Uncertain: it happened\n",
        "order-3 Uncertain: it did not happen\n",
        "  0 are left\n",
        "order-2: Ok(\"receipt of order-2\")\n",
        "  order-2 1 charged\n",
        "  order-3 0 charged\n",
        "No order was charged twice",
    ] {
        says(&printed, said);
    }
}

#[test]
fn an_audit_shows_who_tampered_with_it() {
    let printed = run("audit", &[], &env::temp_dir());
    assert!(
        printed.contains("operator  payments.charge (Some(4), Some(2)), by anna"),
        "{printed}"
    );
    assert!(printed.contains("Content of entry Some("), "{printed}");
}

#[test]
fn without_an_audit_nothing_shows_it() {
    let audit = command("audit").arg("--unprotected").output();
    let audit = audit.expect("the program starts");
    let printed = String::from_utf8_lossy(&audit.stdout);
    assert_eq!(audit.status.code(), Some(1), "{printed}");
}

#[test]
fn without_records_a_silent_gateway_is_charged_twice_and_the_operators_say_so() {
    let operators = command("operators").arg("--unprotected").output();
    let operators = operators.expect("the program starts");
    let printed = String::from_utf8_lossy(&operators.stdout);
    assert_eq!(operators.status.code(), Some(1), "{printed}");
    says(&printed, "order-2 2 charged   WRONG");
}

#[test]
fn each_event_is_applied_once_and_in_its_turn_over_gaps_copies_and_kills() {
    let printed = run("sequence", &[], &env::temp_dir());
    says(&printed, "was killed 10 times with SIGKILL");
    assert!(!printed.contains("met 0 gaps"), "{printed}");
    for figure in ["events applied", "balance", "checksum", "last number"] {
        let (expected, found) = figures(&printed, figure);
        assert_eq!(expected, found, "{figure}\n{printed}");
    }
    assert_eq!(figures(&printed, "events applied"), ("1000", "1000"));
    assert_eq!(figures(&printed, "last number"), ("1000", "1000"));
    says(&printed, "the balance equals the ordered sum.");
}

#[test]
fn without_the_library_events_are_applied_again_and_the_balance_is_wrong() {
    let sequence = command("sequence").arg("--unprotected").output();
    let sequence = sequence.expect("the program starts");
    let printed = String::from_utf8_lossy(&sequence.stdout);
    assert_eq!(sequence.status.code(), Some(1), "{printed}");
    for figure in ["events applied", "balance", "checksum", "last number"] {
        let (expected, found) = figures(&printed, figure);
        assert_ne!(expected, found, "{figure}\n{printed}");
    }
    says(&printed, "WRONG: events applied, balance, checksum");
}

/// A figure of the sequence: the expected one, and the one that was found.
fn figures<'a>(printed: &'a str, figure: &str) -> (&'a str, &'a str) {
    printed
        .lines()
        .find_map(|line| {
            line.trim_start()
                .strip_prefix(figure)?
                .trim()
                .split_once(' ')
        })
        .map(|(expected, found)| (expected, found.trim_start()))
        .expect("the figure is printed")
}

/// The program that was built beside this test. If only the test was built, cargo builds it now.
fn command(program: &str) -> Command {
    let test = env::current_exe().expect("this test has a file");
    let target = test
        .parent()
        .and_then(Path::parent)
        .expect("it lies in `deps`, in the folder of the profile");
    let built = target
        .join("examples")
        .join(program)
        .with_extension(env::consts::EXE_EXTENSION);
    if !built.is_file() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--example", program])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(
            built.is_ok_and(|status| status.success()),
            "{program} can be built"
        );
    }
    Command::new(built)
}

fn payments(arguments: &[&str]) -> String {
    run("payments", arguments, &env::temp_dir())
}

#[track_caller]
fn says(printed: &str, text: &str) {
    assert!(printed.contains(text), "{printed}");
}

/// The rows of the table for the unchanged charge that came back with this.
fn rows(printed: &str, came_back: &str) -> usize {
    printed
        .lines()
        .filter(|line| line.contains("charge 12.50") && line.contains(came_back))
        .count()
}

#[test]
fn ten_payments_over_a_bad_network_and_a_killed_service_are_one_charge() {
    let printed = payments(&[]);
    says(&printed, "The gateway saw 2 requests and made 1 charge:");
    assert_eq!(rows(&printed, "receipt ch_1"), 10, "{printed}");
    assert_eq!(rows(&printed, "refused"), 0, "{printed}");
    says(&printed, "and got 10 receipts, all equal.");
    says(&printed, "with a changed amount, was refused. KeyReused");
}

#[test]
fn without_a_child_key_the_killed_service_costs_a_second_charge() {
    let printed = payments(&["--without-child-key"]);
    says(&printed, "The gateway saw 2 requests and made 2 charges:");
    assert_eq!(rows(&printed, "receipt ch_2"), 10, "{printed}");
    says(&printed, "and got 10 receipts, all equal.");
}

#[test]
fn on_crash_uncertain_nothing_runs_again_and_an_operator_settles() {
    let printed = payments(&["--on-crash", "uncertain"]);
    says(&printed, "The gateway saw 1 request and made 1 charge:");
    assert_eq!(rows(&printed, "refused: Uncertain"), 1, "{printed}");
    says(&printed, "an operator finds ch_1 in the gateway's log");
    assert_eq!(rows(&printed, "receipt ch_1"), 10, "{printed}");
    says(&printed, "and got 10 receipts, all equal.");
}

#[test]
fn without_a_child_key_an_uncertain_charge_is_still_one() {
    let printed = payments(&["--without-child-key", "--on-crash", "uncertain"]);
    says(&printed, "The gateway saw 1 request and made 1 charge:");
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_client_leaves_no_process_behind() {
    use std::time::{Duration, Instant};

    // This runs several times, because the client dies at another moment of its talk with the
    // others each time.
    for _ in 0..20 {
        let started = processes_of_a_killed_client();
        assert_eq!(started.len(), 2, "{started:?}");

        // Both end when they find that their standard input is closed: nothing else tells when that
        // was.
        let began = Instant::now();
        while started.iter().any(|process| is_alive(process)) {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "a process was left behind: {started:?}"
            );
            std::thread::yield_now();
        }
    }
}

/// Kills the client as soon as it has told which processes it started.
#[cfg(target_os = "linux")]
fn processes_of_a_killed_client() -> Vec<PathBuf> {
    use std::{
        io::{BufRead, BufReader},
        process::Stdio,
    };

    let mut client = command("payments")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let stdout = client.stdout.take().expect("it is piped");
    let introduction = BufReader::new(stdout)
        .lines()
        .next()
        .expect("it introduces itself")
        .expect("it can be read");
    client.kill().expect("it can be killed");
    client.wait().expect("it is gone");
    introduction
        .split("(process ")
        .skip(2)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(id, _)| Path::new("/proc").join(id))
        .collect()
}

/// Whether it runs. A process that ended, and that its parent has not waited for yet, does not run.
#[cfg(target_os = "linux")]
fn is_alive(process: &Path) -> bool {
    std::fs::read_to_string(process.join("stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    })
}

#[test]
fn the_quickstart_charges_once_each_time_it_is_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for _ in 0..2 {
        let said = run("quickstart", &[], folder.path());
        assert_eq!(said, "charging 1250 cents\n");
    }
    let left = std::fs::read_dir(folder.path()).expect("a folder");
    assert_eq!(left.count(), 0, "it leaves no file");
}

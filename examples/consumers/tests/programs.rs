//! The programs, run as people run them.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

/// The program that was built beside this test; where only the test was built, cargo builds it now.
fn command(program: &str) -> Command {
    let test = env::current_exe().expect("this test has a file");
    let target = test.parent().and_then(Path::parent).expect("a folder");
    let built = target.join("examples").join(program);
    if !built.is_file() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--example", program])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.is_ok_and(|status| status.success()));
    }
    let mut command = Command::new(built);
    command.env_remove("NATS_URL").env_remove("RABBITMQ_URL");
    command
}

fn printed(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{printed}{errors}")
}

/// The program, with the brokers that it may start.
fn command_with_brokers(program: &str) -> Command {
    let path = env::var("PATH").unwrap_or_default();
    let programs = env::var("IDEMPOTENT_TEST_PROGRAMS").expect("`cargo xtask test` sets it");
    let mut command = command(program);
    command.env("PATH", format!("{path}:{programs}"));
    command
}

/// Runs a program that starts its broker.
fn run(program: &str) {
    let output = command_with_brokers(program).output();
    let output = output.expect("the program starts");
    let printed = printed(&output);
    assert!(output.status.success(), "{printed}");
    for said in [
        "  effects         200\n",
        "  dead letters      3\n",
        "    \"\": invalid_message\n    \"free\": failed\n    \"torn\": invalid_message\n",
        "Each order has one invoice.",
    ] {
        assert!(printed.contains(said), "{printed}");
    }
}

/// Runs the plan on a broker that runs already, without the library.
fn run_unprotected(program: &str, variable: &str) {
    let broker = env::var(format!("IDEMPOTENT_TEST_{variable}")).expect("a broker");
    let output = command(program)
        .arg("--unprotected")
        .env(variable, broker)
        .output()
        .expect("the program starts");
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("WRONG: 200 orders had 2"), "{printed}");
}

#[test]
#[ignore = "needs a server"]
fn on_nats_each_order_has_one_invoice() {
    run("nats");
}

#[test]
#[ignore = "needs a server"]
fn on_rabbitmq_each_order_has_one_invoice() {
    run("rabbitmq");
}

#[test]
#[ignore = "needs a server"]
fn on_nats_without_the_library_orders_have_more() {
    run_unprotected("nats", "NATS_URL");
}

#[test]
#[ignore = "needs a server"]
fn on_rabbitmq_without_the_library_orders_have_more() {
    run_unprotected("rabbitmq", "RABBITMQ_URL");
}

/// Runs the two services on a broker of their own.
fn run_two_services(broker: &str) {
    let mut services = command_with_brokers("two_services");
    let output = services.arg(broker).output().expect("the program starts");
    let printed = printed(&output);
    assert!(output.status.success(), "{printed}");
    let restarted = format!("through {broker}, which was restarted 1 times.");
    for said in [
        &restarted,
        "killed 4 times, the one of the invoices 4 times.",
        "  orders          180\n",
        "  invoices        180\n",
        "Each committed order has one invoice, in the order of its customer's orders.",
    ] {
        assert!(printed.contains(said), "{printed}");
    }
}

#[test]
#[ignore = "needs a server"]
fn two_services_on_nats_have_one_invoice_for_each_committed_order() {
    run_two_services("nats");
}

#[test]
#[ignore = "needs a server"]
fn two_services_on_rabbitmq_have_one_invoice_for_each_committed_order() {
    run_two_services("rabbitmq");
}

#[test]
#[ignore = "needs a server"]
fn two_services_without_outbox_and_inbox_have_wrong_invoices() {
    let mut services = command_with_brokers("two_services");
    let output = services.arg("--unprotected").output();
    let output = output.expect("the program starts");
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let wrong = "invoices are of orders that were rolled back.";
    assert!(printed.contains(wrong), "{printed}");
}

#[test]
fn where_no_broker_can_be_started_the_two_services_say_what_to_do() {
    let empty = env::temp_dir().join("no-programs");
    let output = command("two_services").env("PATH", empty).output();
    let output = output.expect("the program starts");
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("apt-get install nats-server"), "{printed}");
}

#[test]
fn where_no_broker_is_installed_the_program_says_what_to_do() {
    for (program, server, variable) in [
        ("nats", "nats-server", "NATS_URL"),
        ("rabbitmq", "rabbitmq-server", "RABBITMQ_URL"),
    ] {
        let empty = env::temp_dir().join("no-programs");
        let output = command(program).env("PATH", empty).output();
        let output = output.expect("the program starts");
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        let install = format!("apt-get install {server}");
        assert!(printed.contains(&install), "{printed}");
        assert!(printed.contains(variable), "{printed}");
    }
}

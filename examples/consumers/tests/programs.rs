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

/// Runs a program that starts its broker.
fn run(program: &str) {
    let path = env::var("PATH").unwrap_or_default();
    let programs = env::var("IDEMPOTENT_TEST_PROGRAMS").expect("`cargo xtask test` sets it");
    let output = command(program)
        .env("PATH", format!("{path}:{programs}"))
        .output()
        .expect("the program starts");
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

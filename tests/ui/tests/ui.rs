//! Compiles the cases. `TRYBUILD=overwrite cargo test -p ui` writes the messages anew, to be read
//! before they are kept.

use std::process::Command;

#[test]
fn mistakes_are_told() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*/*.rs");
}

/// `examples/pedantic.rs` denies every lint of clippy.
#[test]
fn the_expansion_is_silent_under_every_lint() {
    let clippy = Command::new(env!("CARGO"))
        .args([
            "clippy",
            "--quiet",
            "--package",
            "ui",
            "--example",
            "pedantic",
        ])
        .output()
        .expect("cargo runs, because it runs this test");
    assert!(
        clippy.status.success(),
        "{}",
        String::from_utf8_lossy(&clippy.stderr)
    );
}

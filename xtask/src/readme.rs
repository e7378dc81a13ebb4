//! The README shows what there is.

use std::{fs, path::Path, process::Command};

use crate::plan::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(Path::new(path)))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_first_listing_is_the_quickstart_example() {
    let (readme, example) = (read("README.md"), read("examples/examples/quickstart.rs"));
    let (_, listing) = readme.split_once("```rust\n").expect("a listing");
    let (listing, _) = listing.split_once("```\n").expect("its end");
    assert_eq!(listing, example);
}

#[test]
fn the_readme_is_read_in_a_few_minutes() {
    const MOST: usize = 1_800;
    let readme = read("README.md");
    let words = readme.split_whitespace().count();
    assert!(words <= MOST, "{words} words");
    let (_, listing) = readme.split_once("```rust\n").expect("a listing");
    let (listing, _) = listing.split_once("```\n").expect("its end");
    assert!(listing.lines().count() <= 25, "{listing}");
}

#[test]
fn continuous_integration_runs_the_test_command_of_the_readme() {
    let command = "cargo xtask test";
    assert!(read("README.md").contains(command));
    let runs = |line: &str| line.starts_with(command);
    assert!(read(".ci/run").lines().any(runs));
}

#[test]
fn every_argument_of_the_attribute_has_a_row_in_the_manual() {
    let source = read("idempotent-macros/src/args.rs");
    let (_, table) = source.split_once("\narguments! {\n").expect("a table");
    let (table, _) = table.split_once("\n}").expect("its end");
    let arguments: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .collect();
    assert!(arguments.len() > 20, "{arguments:?}");
    let page = read("idempotent-runtime/src/idempotent.md");
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    for argument in &arguments {
        let word = format!("`{argument}");
        assert!(
            rows.iter().any(|row| row.contains(&word)),
            "`{argument}` has no row"
        );
    }
}

#[test]
fn the_first_command_of_the_readme_builds_no_driver_of_a_server() {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--edges", "normal", "--prefix", "none"]);
    let tree = tree.current_dir(root()).output().expect("cargo runs");
    let tree = String::from_utf8(tree.stdout).expect("text");
    assert!(tree.contains("sqlx-sqlite"), "{tree}");
    for driver in ["sqlx-postgres", "sqlx-mysql", "redis v"] {
        let builds = tree.lines().any(|line| line.starts_with(driver));
        assert!(!builds, "{driver} slows the first command down");
    }
}

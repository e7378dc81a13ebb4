//! Manuals that name the tests behind their statements, and the crates that a user has to know.

use std::{fs, path::Path};

/// The address at which a manual finds the tests of this repository.
const HERE: &str = "https://github.com/idempotent-rs/idempotent-runtime/blob/main/";

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The tests that a manual links, each with its file.
fn linked(manual: &str) -> Vec<(&str, &str)> {
    let definitions = manual.lines().filter_map(|line| {
        let (name, file) = line.strip_prefix("[`")?.split_once("`]: ")?;
        Some((name, file.strip_prefix(HERE)?))
    });
    definitions.collect()
}

#[test]
fn f30_each_thing_that_redis_can_lose_is_shown_by_a_test_that_is_there() {
    let manual = read("idempotent-runtime/src/store/redis/store.md");
    let tests = linked(&manual);
    for (name, file) in &tests {
        let text = read(file);
        let is_there = [format!("fn {name}("), format!(" {name}: ")];
        let is_there = is_there.iter().any(|test| text.contains(test));
        assert!(is_there, "there is no `{name}` in {file}");
    }

    let (_, table) = manual.split_once("| shown by |").expect("a table");
    let rows = table
        .lines()
        .skip(2)
        .map_while(|row| row.strip_prefix("| "));
    let shown = rows.map(|row| {
        let (_, shown) = row
            .trim_end_matches(" |")
            .rsplit_once(" | ")
            .expect("cells");
        shown
    });
    let shown: Vec<_> = shown.collect();
    let links: Vec<_> = tests
        .iter()
        .map(|(name, _)| format!("[`{name}`]"))
        .collect();
    assert_eq!(shown, links);
}

/// A user who brings a pool or a client of another version is told of two types of one name.
#[test]
fn each_crate_in_a_signature_is_told_with_the_version_that_it_has() {
    let manual = read("idempotent-runtime/src/lib.rs");
    let (_, table) = manual
        .split_once("# Crates in signatures")
        .expect("a table");
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("//! |"))
        .skip(2)
        .map_while(|line| line.strip_prefix("//! | "));
    let workspace = read("Cargo.toml");
    let has = |name: &str, version: &str| {
        let said = workspace
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
        let (_, said) = said.split_once('"')?;
        let (said, _) = said.split_once('"')?;
        Some(said == version || said.starts_with(&format!("{version}.")))
    };

    let mut told = 0;
    for row in rows {
        let mut cells = row.split(" | ");
        let (names, version) = (
            cells.next().expect("names"),
            cells.next().expect("a version"),
        );
        for name in names.split(", ").map(|name| name.trim_matches('`')) {
            assert_eq!(has(name, version), Some(true), "{name} {version}");
            told += 1;
        }
    }

    assert_eq!(told, 19);
}

//! The tests that stand in the sources of a crate: from its root along its `mod` lines, as the
//! compiler finds them. The sources are in the form that rustfmt gives them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The tests of the crate with this root that `cargo xtask test` compiles and runs, by their
/// modules and names, as the runner says them.
pub(crate) fn tests(root: &Path) -> Vec<String> {
    let mut tests = Vec::new();
    let folder = root.parent().expect("it lies in a folder");
    read(root, folder, "", &mut tests);
    tests
}

/// Reads the file of a module, whose own modules lie in `folder`.
fn read(file: &Path, folder: &Path, module: &str, tests: &mut Vec<String>) {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (mut module, mut folder) = (module.to_owned(), folder.to_owned());
    let mut inline: Vec<(String, String, PathBuf)> = Vec::new();
    let mut attributes: Vec<String> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let item = line.trim_start();
        if item.starts_with("//") {
            continue;
        }
        if item.starts_with("#[") || item.starts_with("#![") {
            let mut attribute = item.to_owned();
            while !attribute.ends_with(']') {
                attribute += lines.next().expect("an attribute has an end").trim();
            }
            if attribute.starts_with("#[") {
                attributes.push(attribute);
            } else if !is_run(&attribute) {
                return;
            }
            continue;
        }
        let is_run = attributes.iter().all(|attribute| is_run(attribute));
        let end = format!("{}}}", &line[..line.len() - item.len()]);
        if inline.last().is_some_and(|(closes, ..)| *closes == line) {
            (_, module, folder) = inline.pop().expect("it is the last");
        } else if let Some(name) = within(item, "mod ", " {") {
            if is_run {
                let (inside, below) = (format!("{module}{name}::"), folder.join(name));
                inline.push((end, module, folder));
                (module, folder) = (inside, below);
            } else {
                lines.by_ref().find(|line| *line == end);
            }
        } else if let Some(name) = within(item, "mod ", ";").filter(|_| is_run) {
            let (path, below) = place(name, &attributes, file, &folder);
            read(&path, &below, &format!("{module}{name}::"), tests);
        } else if let Some(name) = function(item).filter(|_| is_run && is_test(&attributes)) {
            tests.push(format!("{module}{name}"));
        }
        attributes.clear();
    }
}

/// The file of a module that this file declares, and the folder of its own modules.
fn place(name: &str, attributes: &[String], file: &Path, folder: &Path) -> (PathBuf, PathBuf) {
    let mut attributes = attributes.iter();
    if let Some(path) = attributes.find_map(|line| within(line, "#[path = \"", "\"]")) {
        let path = file.with_file_name(path);
        let below = path.parent().expect("it lies in a folder").to_owned();
        return (path, below);
    }
    let (path, below) = (folder.join(format!("{name}.rs")), folder.join(name));
    match path.exists() {
        true => (path, below),
        false => (below.join("mod.rs"), below),
    }
}

/// The text between the two, at whatever visibility.
fn within<'a>(item: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (visibility, rest) = item.split_once(begin)?;
    (visibility.is_empty() || visibility.starts_with("pub"))
        .then(|| rest.strip_suffix(end))
        .flatten()
}

fn function(item: &str) -> Option<&str> {
    let item = item.strip_prefix("async ").unwrap_or(item);
    item.strip_prefix("fn ")?.split('(').next()
}

fn is_test(attributes: &[String]) -> bool {
    let mut attributes = attributes.iter();
    attributes.any(|line| line == "#[test]" || line.starts_with("#[tokio::test"))
}

/// Whether an item that has this attribute is compiled and run: with every feature except those
/// that choose an encryption, and with the servers for which some tests are ignored elsewhere.
fn is_run(attribute: &str) -> bool {
    let attribute = attribute.trim_start_matches(['#', '!', '[']);
    if let Some(predicate) = within(attribute, "cfg(", ")]") {
        return holds(predicate);
    }
    let conditional = attribute.starts_with("cfg_attr(");
    let ignored = attribute.starts_with("ignore") && !attribute.contains("cargo xtask test");
    !ignored && !(conditional && (attribute.contains("ignore") || attribute.contains(", cfg(")))
}

fn holds(predicate: &str) -> bool {
    let of = |word| predicate.strip_prefix(word)?.strip_suffix(')').map(parts);
    if let Some(parts) = of("all(") {
        parts.into_iter().all(holds)
    } else if let Some(parts) = of("any(") {
        parts.into_iter().any(holds)
    } else if let Some(parts) = of("not(") {
        !parts.into_iter().any(holds)
    } else {
        matches!(predicate, "test" | "unix" | "target_os = \"linux\"")
            || (predicate.starts_with("feature = ") && !predicate.contains("\"tls-"))
    }
}

fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = list.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, process::Command};

    use super::*;

    #[test]
    fn the_tests_in_the_sources_of_this_crate_are_those_that_it_runs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let root = root.join(env!("CARGO_CRATE_NAME")).join("main.rs");
        let found = tests(&root);

        let this = env::current_exe().expect("it has a file");
        let listed = Command::new(this).arg("--list").output().expect("it runs");
        let listed = String::from_utf8(listed.stdout).expect("names are text");
        let listed = listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        let found: BTreeSet<_> = found.iter().map(String::as_str).collect();
        assert_eq!(found, listed.collect());
    }

    #[test]
    fn only_what_is_compiled_and_run_is_a_test() {
        let folder = tempfile::tempdir().expect("a folder");
        // A bar ends a line: the lines of this file are read, too.
        for (path, text) in [
            (
                "lib.rs",
                "mod a;|mod b;|#[cfg(any())]|mod absent;|#[path = \"c/far.rs\"]|pub(crate) mod c;",
            ),
            (
                "a.rs",
                "#[test]|fn runs() {}\
                |// #[test]|fn no_test() {}\
                |#[test]|#[ignore]|fn is_ignored() {}\
                |#[test]|#[ignore = \"needs a server: cargo xtask test\"]|fn has_a_server() {}\
                |#[test]|#[cfg(any())]|fn is_left_out() {}\
                |#[test]|#[cfg_attr(all(), ignore)]|fn is_ignored_too() {}\
                |mod deep;\
                |#[cfg(all(|    test,|    not(shuttle),|))]|mod inside {\
                |    #[tokio::test(start_paused = true)]|    async fn is_within() {}|}\
                |#[cfg(not(any(test, unix)))]|mod left_out {|    #[test]|    fn is_left_out() {}|}\
                |#[test]|fn is_last() {}",
            ),
            ("a/deep.rs", "#[test]|fn is_below() {}"),
            ("b/mod.rs", "#![cfg(windows)]|#[test]|fn is_left_out() {}"),
            ("c/far.rs", "#[test]|fn is_far() {}"),
            ("d.rs", "#[test]|fn is_in_no_module() {}"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text.replace('|', "\n")).expect("a file");
        }

        let found = tests(&folder.path().join("lib.rs"));

        let runs = [
            "a::runs",
            "a::has_a_server",
            "a::deep::is_below",
            "a::inside::is_within",
            "a::is_last",
            "c::is_far",
        ];
        assert_eq!(found, runs);
    }
}

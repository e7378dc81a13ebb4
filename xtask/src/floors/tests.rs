//! Houses with one arrow that runs up, in each form in which a path can be written.

mod planted;

use std::{fs, path::Path};

use super::{House, arrows::read};

const HOUSE: House = House {
    folder: "src",
    module: &[],
    floors: &[&["low"], &["beside", "room"], &["high"]],
    known: &[],
    features: &[("crane", "high")],
    known_features: &[],
};

/// The flaws of a house whose room has this text.
fn flaws(house: &House, text: &str) -> Vec<String> {
    flaws_of(house, &[("room/inner.rs", text)])
}

/// The flaws of a house with these files beside its own, or instead of them.
fn flaws_of(house: &House, files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile("");
    for (name, text) in files {
        let path = folder.path().join("src").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let flaws = house.flaws(folder.path()).expect("it can be read");
    flaws
        .into_iter()
        .map(|flaw| flaw.replace('\\', "/"))
        .collect()
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _it_is_temporary = fs::remove_dir_all(&self.0);
    }
}

fn tempfile(text: &str) -> Folder {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "floors-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let folder = Folder(std::env::temp_dir().join(name));
    let source = folder.0.join("src");
    fs::create_dir_all(source.join("room")).expect("a folder");
    let root = "mod low;\nmod beside;\nmod room;\nmod high;\npub use crate::high::Tower;\n";
    for (name, text) in [
        ("lib.rs", root),
        ("low.rs", "pub struct Stone;"),
        ("beside.rs", ""),
        (
            "high.rs",
            "pub struct Tower; pub mod roof { pub struct Tile; }",
        ),
        ("room/mod.rs", "mod inner;"),
        ("room/inner.rs", text),
    ] {
        fs::write(source.join(name), text).expect("a file");
    }
    folder
}

/// The text of a room, the room to which it has an arrow, and the line.
const FORMS: &[(&str, &str, usize)] = &[
    ("use crate::high::Tower;", "high", 1),
    (
        "\nuse crate::{low::Stone, high::{roof::Tile, Tower}};",
        "high",
        2,
    ),
    ("pub(crate) use crate::high as above;", "high", 1),
    ("use super::super::high::roof::*;", "high", 1),
    ("use crate::Tower;", "high", 1),
    ("use crate::{Tower as Top};", "high", 1),
    ("use crate::beside;", "beside", 1),
    ("fn build(tower: crate::high::Tower) {}", "high", 1),
    (
        "fn build() {\n    let tower = super::super::high::Tower;\n}",
        "high",
        2,
    ),
    (
        "fn build() { other!(\"a {}\", crate::high::Tower) }",
        "high",
        1,
    ),
    (
        "mod nested { use super::super::super::high::Tower; }",
        "high",
        1,
    ),
    (
        "#[cfg(feature = \"x\")]\nuse crate::high::Tower;",
        "high",
        2,
    ),
    (
        "macro_rules! built { () => { $crate::high::Tower } }",
        "high",
        1,
    ),
];

#[test]
fn an_arrow_that_runs_up_is_found_in_each_form() {
    for (text, to, line) in FORMS {
        let found = flaws(&HOUSE, text);
        assert_eq!(
            found,
            [format!("src/room/inner.rs:{line}: room → {to} runs up")],
            "{text}"
        );
    }
}

#[test]
fn arrows_down_comments_strings_and_tests_are_no_flaw() {
    for text in [
        "use crate::low::Stone;",
        "use super::inner;",
        "pub(in crate::room) fn build() {}",
        "// use crate::high::Tower;\n/* crate::high */",
        "/// See [`Tower`](crate::high::Tower).\nfn build() {}",
        "const TEXT: &str = \"crate::high::Tower\";",
        "#[cfg(test)]\nmod tests { use crate::high::Tower; }",
        "#[cfg(all(test, feature = \"x\"))]\nuse crate::high::Tower;",
        "#[cfg(test)]\nfn build() -> crate::high::Tower { crate::high::Tower }",
    ] {
        assert_eq!(flaws(&HOUSE, text), [""; 0], "{text}");
    }
}

#[test]
fn a_room_without_a_floor_is_a_flaw() {
    let house = House {
        floors: &[&["low"], &["room"], &["high"]],
        ..HOUSE
    };
    let found = flaws(&house, "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("the room beside has no floor"),
        "{found:?}"
    );
}

#[test]
fn a_known_arrow_is_no_flaw_until_it_is_gone() {
    let house = House {
        known: &[("room", "high")],
        ..HOUSE
    };
    assert_eq!(flaws(&house, "use crate::high::Tower;"), [""; 0]);
    assert_eq!(
        flaws(&house, ""),
        ["src: room → high is gone: take it from the list"]
    );
}

#[test]
fn files_of_tests_are_known_by_their_declaration() {
    let text = "#[cfg(test)]\nmod tests;\nmod real;\n#[cfg(all(test, unix))]\nmod more;
        #[cfg(test)] mod inside { mod file; }";
    let read = read(text.parse().expect("it is Rust"), &["room".to_owned()]);
    let tests = |name: &str| vec!["room".to_owned(), name.to_owned()];
    assert_eq!(read.tests, [tests("tests"), tests("more"), tests("inside")]);
}

#[test]
fn every_house_stands() {
    for house in super::HOUSES {
        let flaws = house.flaws(crate::plan::root()).expect("it can be read");
        assert_eq!(flaws, [""; 0]);
    }
}

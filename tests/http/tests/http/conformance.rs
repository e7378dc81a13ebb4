//! The checklist as a page, which is made of the items and of the tests that bear their numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use expect_test::expect_file;

use crate::{
    items::{Item, OPEN, PARTS},
    sources,
};

/// The places of the front end's tests: a crate, and which of its tests, by the beginning of their
/// paths.
const TESTS: [(&str, &str); 6] = [
    ("idempotent-runtime/src/lib.rs", "http::"),
    ("idempotent-runtime/src/lib.rs", "value::wire::"),
    ("tests/grpc/tests/grpc/main.rs", ""),
    ("tests/http/tests/http/main.rs", ""),
    ("tests/http/tests/memory.rs", ""),
    ("tests/it/tests/it/main.rs", "sqlite::"),
];

/// The page of the client's checklist, from the root.
const OF_THE_CLIENT: &str = "docs/client-conformance.md";

/// The page of the scenarios, from the root.
const SCENARIOS: &str = "tests/SCENARIOS.md";

/// The tests of each item, by its number.
type Tests = BTreeMap<String, BTreeSet<String>>;

/// To write the page anew, run this test with `UPDATE_EXPECT=1`.
#[test]
fn the_page_is_in_step_with_the_tests() {
    let tests = tests();

    let page = page(&tests, &of_the_client());

    expect_file!["../../../../docs/http-conformance.md"].assert_eq(&page);
}

#[test]
fn every_item_is_tested_or_said_to_be_open() {
    let tests = tests();
    let items: Vec<_> = PARTS.iter().flat_map(|part| part.items).collect();

    assert_eq!(items.len(), 138);
    for item in &items {
        let is_open = OPEN.iter().any(|(id, _)| *id == item.id);
        assert!(
            is_open || tests.contains_key(item.id),
            "{} is neither",
            item.id
        );
    }
    let known: BTreeSet<_> = items.iter().map(|item| item.id).collect();
    for id in tests
        .keys()
        .map(String::as_str)
        .chain(OPEN.iter().map(|(id, _)| *id))
    {
        assert!(known.contains(id), "{id} is no item");
    }
}

#[test]
fn every_scenario_has_a_test_and_every_code_has_one_scenario() {
    let page = fs::read_to_string(root().join(SCENARIOS)).expect("the scenarios have a page");
    let codes = codes_of_rows(&page);
    let twice: Vec<_> = codes.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?} stand twice");

    let mut tested = BTreeSet::new();
    for folder in ["idempotent-runtime/src", "tests"] {
        add_codes(&root().join(folder), &mut tested);
    }
    let (rows, _) = page
        .split_once("\n## Without a test\n")
        .expect("it says which have none");
    assert_eq!(codes_of_rows(rows), Vec::from_iter(tested));
}

/// Adds the codes at the beginning of every name in the sources below `folder`. Names are read as
/// text, because macros make some of the tests.
fn add_codes(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the folder is read") {
        let path = entry.expect("the folder is read").path();
        if path.is_dir() {
            add_codes(&path, codes);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).expect("text");
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let names = words.filter(|word| word.contains('_'));
            codes.extend(names.flat_map(codes_of_name));
        }
    }
}

/// The codes at the beginning of a name, such as `d21` and `d23` of `d21_d23_resumed`, and `m07` of
/// `mend_07_a_mistake`.
fn codes_of_name(name: &str) -> Vec<String> {
    let name = name.replace("mend_", "m");
    let codes = name.split('_').take_while(|part| is_code(part));
    codes.map(str::to_owned).collect()
}

/// The codes of all rows, in order. One that stands twice is here twice.
fn codes_of_rows(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let first = rows.filter_map(|row| row.split(' ').next());
    let codes = first.map(str::to_ascii_lowercase);
    let mut codes: Vec<_> = codes.filter(|code| is_code(code)).collect();
    codes.sort();
    codes
}

/// Whether this is a letter and two digits.
fn is_code(word: &str) -> bool {
    let mut bytes = word.bytes();
    let letter = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase());
    letter && word.len() == 3 && bytes.all(|byte| byte.is_ascii_digit())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn tests() -> Tests {
    let mut tests = Tests::new();
    for (crate_root, begin) in TESTS {
        let found = sources::tests(&root().join(crate_root));
        for path in found.iter().filter(|path| path.starts_with(begin)) {
            let name = path.rsplit(':').next().unwrap_or(path);
            for id in ids(name) {
                tests.entry(id).or_default().insert(name.to_owned());
            }
        }
    }
    tests
}

/// The numbers of the items in the name of a test.
fn ids(name: &str) -> impl Iterator<Item = String> {
    let words = name.split('_');
    let marks = words.clone();
    let numbered = marks.zip(words.skip(1)).filter(|(mark, number)| {
        *mark == "s" && number.starts_with(|first: char| first.is_ascii_digit())
    });
    numbered.map(|(_, number)| format!("S-{number}"))
}

/// The table of the client's checklist, from the page that the client's own tests keep in step.
fn of_the_client() -> String {
    let page = fs::read_to_string(root().join(OF_THE_CLIENT)).expect("the client has a page");
    let table = page.split_once("\n| id |").expect("it has a table").1;
    format!("| id |{table}")
}

fn page(tests: &Tests, client: &str) -> String {
    let mut page = String::from(
        "# Conformance of the HTTP front end and the client\n\n\
         This page says what the layer does with a request, item by item, and which tests show it; at the end, what the client does. It is \
         made from the sources; a test fails when it is out of step.\n\n\
         *holds* and *passes* mean that tests of these names stand in the sources, where `cargo xtask test` compiles and runs them, and fails \
         when one of them does. How they ended is no part of this page.\n\n\
         `K:` is the value of `Idempotency-Key` on the wire, *runs* counts calls of the handler, and P(x) is the problem whose \
         type ends in x. Draft-07 is draft-ietf-httpapi-idempotency-key-header-07.\n",
    );
    let open = PARTS
        .iter()
        .flat_map(|part| part.items)
        .filter(|item| why_open(item).is_some());
    let (open, all) = (
        open.count(),
        PARTS.iter().map(|part| part.items.len()).sum::<usize>(),
    );
    let (of_client, open_there) = (
        client.matches("\n| CL-").count(),
        client.matches("; open: ").count(),
    );
    write!(
        page,
        "\n{} of {all} items hold; open, wholly or in part: {open}. {} of the client's {of_client} items hold; open in part: {open_there}.\n",
        all - open,
        of_client - open_there
    )
    .expect("a string takes it");
    for part in PARTS {
        write!(
            page,
            "\n## {}\n\n| id | source | request | expected | result | tests |\n|---|---|---|---|---|---|\n",
            part.title
        )
        .expect("a string takes it");
        for item in part.items {
            page.push_str(&row(item, tests.get(item.id)));
        }
    }
    write!(
        page,
        "\n## B The client\n\n\
         From [`{OF_THE_CLIENT}`](client-conformance.md), which the client's tests make and keep in step.\n\n{client}"
    )
    .expect("a string takes it");
    page
}

fn row(item: &Item, tests: Option<&BTreeSet<String>>) -> String {
    let result = match (why_open(item), tests) {
        (Some(why), _) => format!("**open**: {why}"),
        (None, Some(_)) => "holds".to_owned(),
        (None, None) => "**open**: nothing shows it".to_owned(),
    };
    let names = tests.into_iter().flatten();
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let cells = [
        item.id,
        item.source,
        item.asked,
        item.expected,
        &result,
        &names.join(" "),
    ];
    format!(
        "| {} |\n",
        cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
    )
}

fn why_open(item: &Item) -> Option<&'static str> {
    let found = OPEN.iter().find(|(id, _)| *id == item.id);
    found.map(|(_, why)| *why)
}

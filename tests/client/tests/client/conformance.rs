//! The checklist of the client, item by item, and the table that is made of it.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use expect_test::expect_file;

use crate::sources;

/// An item: its id, where it comes from, what is checked, and what is open about it.
struct Item(&'static str, &'static str, &'static str, Result);

enum Result {
    /// Tests bear its id, and `cargo xtask test` fails when one of them does.
    Tested,
    /// They do, and this is left out.
    Partly(&'static str),
}

use Result::{Partly, Tested};

const ITEMS: [Item; 47] = [
    Item(
        "CL-01",
        "draft-07 §2.5.1, vendors' SDKs",
        "POST and PATCH get a key before the first attempt; every attempt carries it byte for byte",
        Tested,
    ),
    Item(
        "CL-02",
        "found by running code",
        "another middleware that retries, inside or outside, repeats the key; extensions that are used again make no repetition",
        Tested,
    ),
    Item(
        "CL-03",
        "vendors' SDKs",
        "a key that the caller wrote is sent as it is, in one line; two lines are refused",
        Tested,
    ),
    Item(
        "CL-04",
        "vendors' documentation",
        "GET, HEAD and OPTIONS have no key and are tried again",
        Tested,
    ),
    Item(
        "CL-05",
        "RFC 9110 §9.2.2",
        "PUT and DELETE have a key on demand and are tried again",
        Tested,
    ),
    Item(
        "CL-06",
        "draft-07 §2.1 and §2.2",
        "a random key is a UUID of version 4 in quotes, and bare for a server that wants it",
        Tested,
    ),
    Item(
        "CL-07",
        "RFC 9651 §4.1.6",
        "quotes and backslashes are escaped; a key that is not ASCII or longer than 255 bytes is refused before anything is sent",
        Tested,
    ),
    Item(
        "CL-08",
        "practice of payment providers",
        "a restart sends the same bytes with the same key and the headers that make the request what it is, or reports the call",
        Tested,
    ),
    Item(
        "CL-09",
        "practice of payment providers",
        "key, method, target, digest, time and deadline are written before the first byte leaves; where that fails, nothing is sent",
        Tested,
    ),
    Item(
        "CL-10",
        "draft-07 §2.2",
        "another request under a key that the journal knows is refused before anything is sent",
        Tested,
    ),
    Item(
        "CL-11",
        "this project",
        "a call that is over is answered by the journal, or reported as over; one after which the server says that its key is free is not over",
        Tested,
    ),
    Item(
        "CL-12",
        "draft-07 §2.7, vendors' SDKs",
        "409 in progress waits `Retry-After` and repeats the key, also in Stripe's words and as a bare 409 where the profile says so",
        Tested,
    ),
    Item(
        "CL-13",
        "draft-07 §2.7",
        "another 409 is the answer; after an attempt that may have been done it is asked again, and is no outcome",
        Tested,
    ),
    Item(
        "CL-14",
        "RFC 9110 §10.2.3",
        "at least `Retry-After` passes before the next attempt",
        Tested,
    ),
    Item(
        "CL-15",
        "RFC 9110 §10.2.3",
        "dates, dates that are past, zero, negative and malformed values",
        Tested,
    ),
    Item(
        "CL-16",
        "vendors' SDKs",
        "a `Retry-After` beyond the cap or the deadline ends the call with the key",
        Tested,
    ),
    Item(
        "CL-17",
        "draft-07 §2.2 and §2.7",
        "a reused key ends the call and is burned; no new key is made up",
        Tested,
    ),
    Item(
        "CL-18",
        "draft-07 §2.7",
        "a missing or invalid key is the answer",
        Tested,
    ),
    Item(
        "CL-19",
        "this project",
        "the form of a key never changes by itself",
        Tested,
    ),
    Item(
        "CL-20",
        "vendors' SDKs",
        "failed connections and names are tried again; bad certificates, schemes and endless redirects are not",
        Partly(
            "certificates are tested by an error of the kind that rustls reports, not by a server with a bad one",
        ),
    ),
    Item(
        "CL-21",
        "vendors' SDKs",
        "a call that was cut off after sending, or got half a response, is sent again because it has a key",
        Tested,
    ),
    Item(
        "CL-22",
        "draft-07 §2.5.1",
        "where no support is declared, what may have happened is unknown and not sent again, nor after a restart",
        Tested,
    ),
    Item(
        "CL-23",
        "vendors' SDKs",
        "500, 502 and above are tried again, those too that only a proxy knows, and recorded ones are not",
        Tested,
    ),
    Item(
        "CL-24",
        "vendors' documentation",
        "a vendor's header on retries wins over the status, both ways",
        Tested,
    ),
    Item(
        "CL-25",
        "this project",
        "`retryable` and `key_action` win over the status, in bodies that speak of keys",
        Tested,
    ),
    Item(
        "CL-26",
        "RFC 8470 §5.2, RFC 6585 §4",
        "408 is tried again, 425 once, 429 with `Retry-After` or Stripe's `lock_timeout`",
        Tested,
    ),
    Item(
        "CL-27",
        "this project",
        "authorisation and signatures are new at every attempt, the key is not",
        Tested,
    ),
    Item(
        "CL-28",
        "vendors' SDKs",
        "pauses double with jitter, from half a second to eight, by tokio's time",
        Tested,
    ),
    Item(
        "CL-29",
        "this project",
        "attempts, a retry budget for each origin, and a deadline that also ends an attempt, the reading of the body before it, and each wait for the journal",
        Tested,
    ),
    Item(
        "CL-30",
        "found by running code",
        "a stream is sent once and reported with its key; a function can make it again",
        Tested,
    ),
    Item(
        "CL-31",
        "this project",
        "other bytes at a later attempt are broken off before their end",
        Tested,
    ),
    Item(
        "CL-32",
        "this project",
        "the boundary and the bytes of a form with parts are the same at every attempt, and for one intent in every process",
        Tested,
    ),
    Item(
        "CL-33",
        "vendors' SDKs",
        "a dropped call sends nothing more and stays in the journal",
        Tested,
    ),
    Item(
        "CL-34",
        "found by running code",
        "same origin: 307 and 308 keep the key, what becomes a GET loses it; another origin never sees it; 301 and 302 are no outcome",
        Tested,
    ),
    Item(
        "CL-35",
        "RFC 9113 §8.7",
        "a stream that was refused, or that the server went away from, is sent again by the client beneath, with the key, as one attempt; nothing else is",
        Tested,
    ),
    Item(
        "CL-36",
        "vendors' documentation",
        "a key older than the server keeps keys is never sent again, on the way or after a restart",
        Tested,
    ),
    Item(
        "CL-37",
        "this project",
        "an unknown outcome, and a result that is gone, are told with the server's handle",
        Tested,
    ),
    Item(
        "CL-38",
        "this project",
        "a response tells whether it is a replay, how many attempts there were, and the key",
        Tested,
    ),
    Item(
        "CL-39",
        "this project",
        "a call that gives up hands over the key and the last answer, and can be resumed",
        Tested,
    ),
    Item(
        "CL-40",
        "this project",
        "one intent is sent by one task at a time",
        Tested,
    ),
    Item(
        "CL-41",
        "draft-07 §5",
        "logs and errors never show a key",
        Tested,
    ),
    Item(
        "CL-42",
        "this project",
        "an intent is one key in every process",
        Tested,
    ),
    Item(
        "CL-43",
        "this project",
        "only operation, id, namespace and account are in a derived key",
        Tested,
    ),
    Item(
        "CL-44",
        "vendors' documentation",
        "`Idempotency-Status: ignored` and 501 are told, and such a server is not relied on",
        Tested,
    ),
    Item(
        "CL-45",
        "this project",
        "every operation has a key of its own; one intent for two requests is refused",
        Tested,
    ),
    Item(
        "CL-46",
        "this project",
        "pauses and timeouts go by a timer of one's own; WebAssembly",
        Partly("WebAssembly is left out, because the runtime needs tokio"),
    ),
    Item(
        "CL-47",
        "draft-07 §5",
        "the journal answers only the caller whom the server answered, by account or by every header that may say who asks, of which it keeps a digest",
        Tested,
    ),
];

/// `UPDATE_EXPECT=1` writes the table anew.
#[test]
fn the_table_is_that_of_the_checklist() {
    let mut table = String::from(
        "# The client's checklist\n\n\
         The tests that bear its id (`cl34_…`) check each item: those of `tests/client`, and those of `idempotent-client/src` for what\n\
         needs no connection. \"implements draft-07\" means draft-ietf-httpapi-idempotency-key-header-07, which is no RFC. *passes* means that such\n\
         tests stand in the sources, where `cargo xtask test` compiles and runs them, and fails when one of them does. This page is made by\n\
         `tests/client/tests/client/conformance.rs`.\n\n\
         | id | source | checked behaviour | result |\n|---|---|---|---|\n",
    );
    for Item(id, source, checked, result) in &ITEMS {
        let result = match result {
            Tested => "passes".to_owned(),
            Partly(open) => format!("passes; open: {open}"),
        };
        writeln!(table, "| {id} | {source} | {checked} | {result} |").expect("memory takes it");
    }
    expect_file!["../../../../docs/client-conformance.md"].assert_eq(&table);
}

#[test]
fn every_item_has_a_test_and_every_test_has_an_item() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = here.join("../../idempotent-client/src/lib.rs");
    let without_connection = ids(&library, "");
    let ids = ids(&here.join("tests/client/main.rs"), "");

    for Item(id, ..) in &ITEMS {
        assert!(ids.contains(*id), "{id} has no test");
    }
    assert!(!without_connection.is_empty());
    for id in ids.union(&without_connection) {
        assert!(ITEMS.iter().any(|item| item.0 == id), "{id} is no item");
    }
}

/// The ids that the tests of a crate bear whose paths begin so.
fn ids(root: &Path, begin: &str) -> BTreeSet<String> {
    let tests = sources::tests(root);
    let tests = tests.iter().filter(|path| path.starts_with(begin));
    let names = tests.filter_map(|path| path.rsplit(':').next());
    let numbers = names.filter_map(|name| name.strip_prefix("cl")?.get(..2));
    numbers
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|number| format!("CL-{number}"))
        .collect()
}

/// Whatever takes time is moved by the test.
#[test]
fn no_test_sleeps() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client");
    let mut folders = vec![here];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the tests are here") {
            let path = entry.expect("the folder is read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("text");
            for sleep in [concat!("time::", "sleep"), concat!("thread::", "sleep")] {
                assert!(!text.contains(sleep), "{} sleeps", path.display());
            }
        }
    }
}

//! The golden files of outboxes: every text that is sent while all that they do is done.
//!
//! A table prefix of its own tells the texts of a test from those of
//! others in this process.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod scenario;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::BTreeSet;

use super::super::{Outbox, dialect::OutboxDatabase};
use crate::{
    framing::Hex,
    sha256::sha256,
    store::sql::tests::{
        golden::{Golden, sent},
        upgrade,
    },
};

/// Does all that an outbox does, and compares the texts with a file.
async fn sends_the_same_bytes<DB: OutboxDatabase>(
    pool: sqlx::Pool<DB>,
    notifies: bool,
    file: expect_test::ExpectFile,
) {
    let prefix = upgrade::prefix().to_string();
    let outbox = Outbox::new(&pool).prefix(&prefix).expect("a prefix");
    let outbox = outbox.max_payload(1 << 20);
    scenario::Scenario { outbox, notifies }.run().await;
    let texts = sent(&prefix).into_iter();
    let texts = texts.filter(|text| !text.ends_with(scenario::OF_THE_TEST));
    let texts = texts.map(|it| normal(&it, &prefix));
    let texts: BTreeSet<_> = texts.collect();
    let mut golden = Golden::default();
    golden.add("the session of a relay", DB::SESSION);
    for (number, text) in texts.iter().enumerate() {
        golden.add(&format!("{}", number + 1), text);
    }
    golden.is(file);
}

/// The numbers of five digits and more that are the same each time: a second, a day, the clock
/// ahead, the bytes of a batch, and how long an entry of a sleeping relay counts.
const NUMBERS: [&str; 6] = [
    "1000000",
    "86400000000",
    "259200000000",
    "16777216",
    "60000000",
    "3600000000",
];

/// How many bytes of a text stand in the file. Of a longer one, the digest stands behind them.
const LONGEST: usize = 4000;

/// A text without what is drawn, and without what the time decides.
fn normal(text: &str, prefix: &str) -> String {
    let text = text.replace(prefix, "golden_");
    let mut normal = String::with_capacity(text.len());
    for (place, part) in text.split('\'').enumerate() {
        if place > 0 {
            normal.push('\'');
        }
        match place % 2 {
            0 => normal += &without_numbers(part),
            _ => normal += part,
        }
    }
    if normal.len() <= LONGEST {
        return normal;
    }
    let (length, digest) = (normal.len(), sha256(&mut normal.clone().into_bytes()));
    normal.truncate(LONGEST / 4);
    format!("{normal}…\n{length} bytes, sha256 {}", Hex(&digest))
}

/// A part of a text that is in no quotes. Short numbers stay, except the moment of a next attempt.
/// Leases are of two lengths, and it depends on the time whether the longer one is prolonged.
fn without_numbers(part: &str) -> String {
    let (mut normal, mut rest) = (String::new(), part);
    while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        normal += before;
        let end = from.find(|it: char| !it.is_ascii_digit());
        let (number, behind) = from.split_at(end.unwrap_or(from.len()));
        let is_name = normal.ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
        let is_moment = normal.ends_with(" + ") && number != "1";
        let is_drawn = (number.len() > 4 || is_moment) && !NUMBERS.contains(&number);
        normal += match is_drawn && !is_name {
            true => "<number>",
            false => number,
        };
        rest = behind;
    }
    normal + rest
}

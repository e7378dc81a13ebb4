//! The outcome of a record, which a person reads by an act of its own.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    Extension, Form,
    extract::{Path, State as Shared, rejection::FormRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use idempotent_runtime::{
    Stored,
    identity::RecordId,
    operate::{RecordRow, StoredOutcome},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    access::{Act, Person},
    acts::{failed, refused, since, who_wrote},
    chosen::text_of,
    limit::in_time,
    links::Depth,
    page::Page,
    replies::html,
    token::Subject,
    views,
};

/// How much of an outcome a page shows, in bytes.
const MOST: usize = 64 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sent {
    version: String,
    token: String,
}

/// The subject of the form that reveals an outcome.
fn subject<'a>(person: &'a Person, id: &'a str, version: &'a str) -> Subject<'a> {
    Subject {
        person: person.name(),
        act: "reveal",
        record: id,
        version,
    }
}

/// The token of the form on the page of a record, for a person with the right.
pub(crate) fn token(page: &Page, person: &Person, row: &RecordRow) -> Option<String> {
    let (id, version) = (row.id.to_hex(), text_of(row.version));
    let may = person.may(Act::Reveal);
    may.then(|| page.secret.token(subject(person, &id, &version)))
}

/// Reveals an outcome.
pub(crate) async fn revealed(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    headers: HeaderMap,
    sent: Result<Form<Sent>, FormRejection>,
) -> Response {
    if !person.may(Act::Reveal) {
        return refused(&person, "You have no right to do this.");
    }
    let Ok(id) = id.parse::<RecordId>() else {
        return html(StatusCode::NOT_FOUND, views::missing(&person, Depth::Lower));
    };
    let sent = sent.map(|Form(sent)| sent).unwrap_or_default();
    let hex = id.to_hex();
    if let Err(why) = page.trusts(&headers, subject(&person, &hex, &sent.version), &sent.token) {
        return refused(&person, why);
    }
    let read = async {
        let story = page.idem.explain(id).await?;
        match text_of(story.row.version) == sent.version {
            true => Ok(Ok(page.idem.reveal(id, person.name()).await?)),
            false => Ok(Err(who_wrote(&story))),
        }
    };
    match in_time(read).await {
        Ok(Err(moved)) => html(
            StatusCode::CONFLICT,
            views::ended(&person, "Outcome", &hex, &since(&moved), false),
        ),
        Ok(Ok(outcome)) => {
            let text = outcome.as_ref().map(shown);
            html(
                StatusCode::OK,
                views::revealed(&person, &hex, text.as_deref()),
            )
        }
        Err(error) => failed(&person, &hex, &error),
    }
}

fn shown(outcome: &StoredOutcome) -> String {
    text(outcome.stored())
}

/// The outcome as a person reads it: JSON as it was written, or else a value that the codec reads,
/// or else a text, or else its bytes in hexadecimal digits.
fn text(stored: &Stored) -> String {
    let as_text = str::from_utf8(stored.bytes());
    let is_json = |text: &&str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let read = || serde_json::to_string_pretty(&stored.decode::<Value>().ok()?).ok();
    match (as_text.ok().filter(is_json), as_text) {
        (Some(json), _) => visible(json),
        (None, Ok(text)) => visible(&read().unwrap_or_else(|| text.to_owned())),
        (None, Err(_)) => read().map_or_else(|| digits(stored.bytes()), |text| visible(&text)),
    }
}

/// A text of which no character moves another one.
fn visible(text: &str) -> String {
    let end = text.floor_char_boundary(MOST);
    let moves = |it: char| {
        (it.is_control() && it != '\n' && it != '\t')
            || matches!(it, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(end);
    for it in text[..end].chars() {
        match moves(it) {
            true => shown.extend(it.escape_unicode()),
            false => shown.push(it),
        }
    }
    shown + &rest(text.len() - end)
}

fn digits(bytes: &[u8]) -> String {
    let end = bytes.len().min(MOST / 2);
    let mut shown = String::new();
    for line in bytes[..end].chunks(32) {
        for byte in line {
            let _a_string_takes_all = write!(shown, "{byte:02x}");
        }
        shown.push('\n');
    }
    shown + &rest(bytes.len() - end)
}

fn rest(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("\n… and {bytes} bytes more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_moves_another_one() {
        assert_eq!(
            visible("{\"a\":\n\t\"ä\"}\u{202e}\r"),
            "{\"a\":\n\t\"ä\"}\\u{202e}\\u{d}"
        );
    }

    #[test]
    fn a_long_outcome_is_cut() {
        let long = "ä".repeat(MOST);
        let shown = visible(&long);
        assert!(shown.ends_with("\n… and 65536 bytes more"), "{shown}");
        assert!(digits(&[7; MOST]).ends_with("0707\n\n… and 32768 bytes more"));
        assert_eq!(digits(&[1, 255]), "01ff\n");
    }
}

//! The contract for people, as Markdown and as a page.

use std::{
    fmt::{Display, Write as _},
    time::Duration,
};

use http::StatusCode;

use super::{Contract, KeySpace, OnRetry, Protocol, Requirement, WhileInFlight};
use crate::http::{
    ReplayOfCreated, capitalised, grpc,
    headers::ORIGINAL_REQUEST_ID,
    meeting::IDEMPOTENCY_STATUS,
    problem::{KeyAction, Kind},
};

impl Contract {
    /// Writes it as two Markdown tables, of the settings and of the problems.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::from("| setting | value |\n|---|---|\n");
        for (setting, value) in self.settings() {
            push(
                &mut text,
                format_args!("| {} | {} |\n", in_cell(&setting), in_cell(&value)),
            );
        }
        if self.answers.is_empty() {
            return text;
        }
        text.push_str("\n| problem | status | retry | key |\n|---|---|---|---|\n");
        for row in self.rows_of_problems() {
            let [problem, status, retry, key] = &row.cells;
            push(
                &mut text,
                format_args!(
                    "| [`{problem}`]({}) | {status} | {retry} | {key} |\n",
                    row.uri
                ),
            );
        }
        text
    }

    /// Writes it as a page of HTML, which refers to nothing outside: for the address that [`Problems::documentation`]
    /// names.
    ///
    /// [`Problems::documentation`]: crate::http::problem::Problems::documentation
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut page = String::from(HEAD);
        page.push_str("<h1>Repeating requests safely</h1>\n<table>\n");
        for (setting, value) in self.settings() {
            push(
                &mut page,
                format_args!(
                    "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                    Text(&setting),
                    Text(&value)
                ),
            );
        }
        page.push_str("</table>\n");
        if !self.answers.is_empty() {
            self.push_problems(&mut page);
        }
        page.push_str("</body>\n</html>\n");
        page
    }

    fn push_problems(&self, page: &mut String) {
        page.push_str("<h2>Problems</h2>\n<table>\n");
        page.push_str(
            "<tr><th>problem</th><th>status</th><th>meaning</th><th>retry</th><th>key</th></tr>\n",
        );
        for row in self.rows_of_problems() {
            let [problem, status, retry, key] = &row.cells;
            push(
                page,
                format_args!(
                    "<tr id=\"{problem}\"><td><code>{problem}</code></td><td>{status}</td><td>{}</td><td>{retry}</td><td>{key}</td></tr>\n",
                    Text(row.meaning)
                ),
            );
        }
        page.push_str("</table>\n");
    }

    fn settings(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut row = |setting: &str, value: String| rows.push((setting.to_owned(), value));
        if !self.methods.is_empty() {
            row("methods", listed(&self.methods));
        }
        let names = self.keys.names();
        match self.protocol {
            Protocol::Http => row("header field", listed(names.iter().map(capitalised))),
            Protocol::Grpc => row("metadata", listed(names)),
        }
        if let Some(with_a_key) = self.without_protection() {
            row("a request with it", with_a_key);
        }
        row("a request without it", self.without_a_key());
        if self.requirement.protects() {
            rows.extend(self.protection());
        }
        rows
    }

    /// What becomes of a request with a key where keys do not count.
    fn without_protection(&self) -> Option<String> {
        match self.requirement {
            Requirement::Required | Requirement::Optional => None,
            Requirement::Ignored => Some(AS_IF_WITHOUT.to_owned()),
            Requirement::IgnoredAloud => Some(format!(
                "{AS_IF_WITHOUT}, and its response has `{}: ignored`",
                capitalised(&IDEMPOTENCY_STATUS)
            )),
            Requirement::Unsupported => Some(refused(self, Kind::NotSupported)),
        }
    }

    fn without_a_key(&self) -> String {
        let is_told = |kind| self.answers.iter().any(|(told, _)| *told == kind);
        match self.requirement {
            Requirement::Required => refused(self, Kind::KeyMissing),
            _ if is_told(Kind::TooEarly) => {
                let refused = refused(self, Kind::TooEarly);
                format!("{EACH_TIME}; in early data, it {refused}")
            }
            _ => EACH_TIME.to_owned(),
        }
    }

    /// What is done for requests with a key.
    fn protection(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut row = |setting: &str, value: String| rows.push((setting.to_owned(), value));
        row("its value", self.keys.expects());
        row(
            "a key stands for one request",
            match self.key_space {
                KeySpace::Caller => "of one caller, whatever the route",
                KeySpace::CallerAndRoute => "of one caller to one route",
                KeySpace::Everybody => "of all callers together",
                KeySpace::EverybodyAndRoute => "of all callers together to one route",
            }
            .to_owned(),
        );
        row("a retry must have the same", listed(&self.compared));
        row("a retry with another one", refused(self, Kind::KeyReused));
        row(
            "a retry while the first request is being processed",
            match self.in_flight {
                WhileInFlight::Refused => refused(self, Kind::RequestInProgress),
                WhileInFlight::Waits(bound) => format!(
                    "waits up to {}, then {}",
                    in_words(bound),
                    refused(self, Kind::RequestInProgress)
                ),
            },
        );
        for rule in &self.outcomes {
            rows.push((
                format!("a retry after responses: {}", rule.responses),
                gets(self, rule.on_retry),
            ));
        }
        let mut row = |setting: &str, value: String| rows.push((setting.to_owned(), value));
        row("responses are kept for", in_words(self.retention));
        row(
            "a request with the key after that",
            gets(self, self.after_retention),
        );
        row("a repeated response", marks(self));
        if let Some(limit) = self.request_limit {
            row("largest body of a request", format!("{limit} bytes"));
        }
        if let Some(limit) = self.response_limit {
            row(
                "largest body of a response that is repeated",
                format!("{limit} bytes"),
            );
        }
        rows
    }

    fn key_action(&self, kind: Kind) -> KeyAction {
        if self.requirement.protects() {
            kind.key_action()
        } else {
            KeyAction::None
        }
    }

    fn rows_of_problems(&self) -> impl Iterator<Item = ProblemRow> + '_ {
        self.answers.iter().map(|&(kind, status)| ProblemRow {
            uri: self.problems.type_uri(kind),
            meaning: kind.title(),
            cells: [
                kind.slug().to_owned(),
                in_protocol(self, kind, status),
                if kind.is_retryable() { "yes" } else { "no" }.to_owned(),
                self.key_action(kind).as_str().to_owned(),
            ],
        })
    }
}

const EACH_TIME: &str = "is processed each time it arrives";

const AS_IF_WITHOUT: &str = "is processed each time it arrives, as if it had none";

struct ProblemRow {
    uri: String,
    meaning: &'static str,
    /// Slug, status, whether to retry, and what becomes of the key.
    cells: [String; 4],
}

fn gets(contract: &Contract, on_retry: OnRetry) -> String {
    match on_retry {
        OnRetry::Replayed => "gets the first response again".to_owned(),
        OnRetry::ProcessedAgain => "is processed again".to_owned(),
        OnRetry::Refused(kind) => refused(contract, kind),
    }
}

fn refused(contract: &Contract, kind: Kind) -> String {
    let status = contract
        .answers
        .iter()
        .find(|(answered, _)| *answered == kind)
        .map_or(kind.status(), |(_, status)| *status);
    let status = in_protocol(contract, kind, status);
    format!("is refused with {status} `{}`", kind.slug())
}

/// The status by which a client of the protocol knows a problem.
fn in_protocol(contract: &Contract, kind: Kind, status: StatusCode) -> String {
    match contract.protocol {
        Protocol::Http => status.as_u16().to_string(),
        Protocol::Grpc => grpc::code(kind).name().to_owned(),
    }
}

fn marks(contract: &Contract) -> String {
    if contract.protocol == Protocol::Grpc {
        return "has the status, the message and the metadata of the first one, and `idempotent-replayed: true`".to_owned();
    }
    let mut text = "has the status, the body and the header fields of the first one, and `Idempotent-Replayed: true`".to_owned();
    if contract.replay_of_created == ReplayOfCreated::Ok {
        text.push_str(", and 200 in place of 201");
    }
    if contract.headers.tells_request_id() {
        push(
            &mut text,
            format_args!(
                ", and the id of the first request in `{}`",
                capitalised(&ORIGINAL_REQUEST_ID)
            ),
        );
    }
    text
}

fn listed<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// Writes a duration in the largest unit in which it is a whole number of at least two.
fn in_words(duration: Duration) -> String {
    const UNITS: [(u128, &str); 4] = [
        (86_400_000, "days"),
        (3_600_000, "hours"),
        (60_000, "minutes"),
        (1_000, "seconds"),
    ];
    let milliseconds = duration.as_millis();
    UNITS
        .into_iter()
        .find(|(unit, _)| milliseconds >= 2 * unit && milliseconds.is_multiple_of(*unit))
        .map_or_else(
            || format!("{milliseconds} milliseconds"),
            |(unit, name)| format!("{} {name}", milliseconds / unit),
        )
}

/// Escapes what would end a cell of a table.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Shows text inside HTML.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => formatter.write_str("&amp;"),
            '<' => formatter.write_str("&lt;"),
            '>' => formatter.write_str("&gt;"),
            '"' => formatter.write_str("&quot;"),
            '\'' => formatter.write_str("&#39;"),
            // Code is marked for Markdown.
            '`' => Ok(()),
            other => formatter.write_char(other),
        })
    }
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more)
        .expect("a String takes all that is written");
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<title>Repeating requests safely</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}</style>
</head>
<body>
";

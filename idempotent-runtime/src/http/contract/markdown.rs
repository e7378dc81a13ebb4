//! The contract for people, as Markdown.

use std::{borrow::Cow, fmt::Display, time::Duration};

use http::StatusCode;

use super::Contract;
use crate::{
    http::{
        ReplayOfCreated, capitalised,
        fingerprint::{BodyComparison, QueryComparison},
        grpc,
        headers::ORIGINAL_REQUEST_ID,
        problem::{KeyAction, Kind},
        rules::{KeyScope, Presence, Storage, UnstorableResponse},
        server_errors::ServerErrors,
    },
    policy::{InFlight, OnExpired},
};

const EACH_TIME: &str = "is processed each time it arrives";
const AS_IF_WITHOUT: &str = "is processed each time it arrives, as if it had none";
const REPLAYED: &str = "gets the first response again";
const PROCESSED_AGAIN: &str = "is processed again";

const NEVER_KEPT: &str =
    "304, 401, 403, 405, 407, 408, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431 and 503";

/// A setting and its value.
type Row = (Cow<'static, str>, Cow<'static, str>);

fn row(setting: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) -> Row {
    (setting.into(), value.into())
}

impl Contract {
    /// Writes it as two Markdown tables, of the settings and of the problems.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = String::from("| setting | value |\n|---|---|\n");
        for (setting, value) in self.rows() {
            text += &format!("| {} | {} |\n", in_cell(&setting), in_cell(&value));
        }
        let answers = self.answers();
        if answers.is_empty() {
            return text;
        }
        text.push_str("\n| problem | status | retry | key |\n|---|---|---|---|\n");
        for (kind, _) in answers {
            text += &format!(
                "| [`{}`]({}) | {} | {} | {} |\n",
                kind.slug(),
                self.settings.problems.type_uri(kind),
                self.status_in_words(kind),
                if kind.is_retryable() { "yes" } else { "no" },
                self.key_action(kind).as_str(),
            );
        }
        text
    }

    fn key_action(&self, kind: Kind) -> KeyAction {
        let action = self.protects().then(|| kind.key_action());
        action.unwrap_or(KeyAction::None)
    }

    fn rows(&self) -> Vec<Row> {
        let rules = &*self.rules;
        let mut rows = Vec::new();
        if rules.presence != Presence::Ignored {
            rows.push(row("methods", listed(&rules.methods)));
        }
        let names = rules.reader.names();
        rows.push(match self.is_grpc() {
            true => row("metadata", listed(names)),
            false => row("header field", listed(names.iter().map(capitalised))),
        });
        let with_it = "a request with it";
        match rules.presence {
            Presence::Required | Presence::Optional => {}
            Presence::Ignored => rows.push(row(with_it, AS_IF_WITHOUT)),
            Presence::Unsupported => rows.push(row(with_it, self.refused(Kind::NotSupported))),
        }
        rows.push(row("a request without it", self.without_a_key()));
        if self.protects() {
            rows.extend(self.protection());
        }
        rows
    }

    fn without_a_key(&self) -> Cow<'static, str> {
        if self.rules.presence == Presence::Required {
            return self.refused(Kind::KeyMissing).into();
        }
        if self.answers_with(Kind::TooEarly) {
            let refused = self.refused(Kind::TooEarly);
            return format!("{EACH_TIME}; in early data, it {refused}").into();
        }
        EACH_TIME.into()
    }

    /// The rules for requests with a key.
    fn protection(&self) -> Vec<Row> {
        let rules = &*self.rules;
        let mut rows: Vec<Row> = vec![
            row("its value", rules.reader.expects()),
            row("a key stands for one request", self.key_space()),
            row("a retry must have the same", listed(self.compared())),
            row("a retry with another one", self.refused(Kind::KeyReused)),
            row(
                "a retry while the first request is being processed",
                self.in_flight(),
            ),
        ];
        for (responses, on_retry) in self.outcomes() {
            rows.push(row(
                format!("a retry after responses: {responses}"),
                on_retry,
            ));
        }
        let ttl = rules.ttl.unwrap_or(self.settings.handle.defaults().ttl);
        let expired: Cow<'_, _> = match rules.on_expired {
            OnExpired::Refuse => self.refused(Kind::ResultExpired).into(),
            _ => PROCESSED_AGAIN.into(),
        };
        let bytes = |most| format!("{most} bytes");
        let longest = bytes(self.longest_response());
        rows.extend([
            row("responses are kept for", in_words(ttl)),
            row("a request with the key after that", expired),
            row("a repeated response", self.marks()),
            row("largest body of a request", bytes(rules.max_request)),
            row("largest body of a response that is repeated", longest),
        ]);
        rows
    }

    fn key_space(&self) -> &'static str {
        match (self.rules.key_scope, self.settings.scope.is_shared()) {
            (KeyScope::Caller, false) => "of one caller, whatever the route",
            (KeyScope::Route, false) => "of one caller to one route",
            (KeyScope::Caller, true) => "of all callers together",
            (KeyScope::Route, true) => "of all callers together to one route",
        }
    }

    fn in_flight(&self) -> String {
        let refused = self.refused(Kind::RequestInProgress);
        match self.rules.in_flight {
            InFlight::Reject => refused,
            InFlight::Wait(bound) => format!("waits up to {}, then {refused}", in_words(bound)),
        }
    }

    fn compared(&self) -> Vec<Cow<'static, str>> {
        let comparison = &self.rules.comparison;
        let query: Cow<'static, str> = match comparison.query {
            QueryComparison::Exact => "path and query".into(),
            QueryComparison::AnyOrder => "path and query in any order".into(),
            QueryComparison::Ignored => "path".into(),
            QueryComparison::Without(names) => {
                let names = names.iter().map(|name| format!("`{name}`"));
                format!("path and query without {}", listed(names)).into()
            }
        };
        let body = match comparison.body {
            BodyComparison::Exact => "body, byte by byte",
            BodyComparison::CanonicalJson => "body, JSON by what it says",
            BodyComparison::By(_) => "what counts of the body",
        };
        let headers = comparison.headers.iter();
        let headers = headers.map(|name| format!("`{name}`").into());
        let first = ["method".into(), query, "content type".into()];
        let all = first.into_iter().chain(headers);
        all.chain([body.into()]).collect()
    }

    /// The answer to a retry, by the first response; the first line that fits counts.
    fn outcomes(&self) -> Vec<Row> {
        let rules = &*self.rules;
        let failed = match rules.server_errors {
            ServerErrors::Replay => REPLAYED.into(),
            ServerErrors::Release => PROCESSED_AGAIN.into(),
            ServerErrors::Uncertain => Cow::Owned(self.refused(Kind::OutcomeUnknown)),
        };
        let unavailable: Cow<'static, str> = match rules.unrepeatable {
            UnstorableResponse::Refused => self.refused(Kind::ResultUnavailable).into(),
            UnstorableResponse::RunAgain => PROCESSED_AGAIN.into(),
        };
        let (failed, others) = match rules.storage {
            Storage::Nothing if failed == REPLAYED => (unavailable.clone(), unavailable.clone()),
            Storage::Nothing => (failed, unavailable.clone()),
            Storage::Whole => (failed, REPLAYED.into()),
        };
        if self.is_grpc() {
            return vec![
                row(grpc::RELEASED, PROCESSED_AGAIN),
                row(grpc::FAILED, failed),
                row("those that are too large", unavailable),
                row("all others", others),
            ];
        }
        let mut outcomes = Vec::new();
        if !rules.rejections.is_empty() {
            let rejections = listed(rules.rejections.iter().map(StatusCode::as_str));
            outcomes.push(row(rejections, PROCESSED_AGAIN));
        }
        outcomes.extend([
            row(NEVER_KEPT, PROCESSED_AGAIN),
            row("500 and above", failed),
            row("those that are streamed or too large", unavailable),
            row("all others", others),
        ]);
        outcomes
    }

    fn marks(&self) -> String {
        if self.is_grpc() {
            return "has the status, the message and the metadata of the first one, and `idempotent-replayed: true`".to_owned();
        }
        let mut text = "has the status, the body and the header fields of the first one, and `Idempotent-Replayed: true`".to_owned();
        if self.rules.replay_of_created == ReplayOfCreated::Ok {
            text.push_str(", and 200 in place of 201");
        }
        if self.rules.headers.tells_request_id() {
            let field = capitalised(&ORIGINAL_REQUEST_ID);
            text += &format!(", and the id of the first request in `{field}`");
        }
        text
    }

    /// The longest body of a response that is kept with any ordinary header fields: the handle's
    /// bound is on all that is stored.
    pub(super) fn longest_response(&self) -> usize {
        const BESIDE_A_BODY: usize = 8 * 1024;
        let most = self.settings.handle.defaults().max_outcome;
        let body = most - BESIDE_A_BODY.min(most / 2);
        self.rules.max_response.min(body)
    }

    fn refused(&self, kind: Kind) -> String {
        let status = self.status_in_words(kind);
        format!("is refused with {status} `{}`", kind.slug())
    }

    /// The status by which a client of the protocol knows a problem.
    fn status_in_words(&self, kind: Kind) -> String {
        if self.is_grpc() {
            return grpc::code(kind).name().to_owned();
        }
        self.status(kind).as_u16().to_string()
    }
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
    let is_whole = |unit: u128| milliseconds >= 2 * unit && milliseconds.is_multiple_of(unit);
    match UNITS.into_iter().find(|(unit, _)| is_whole(*unit)) {
        Some((unit, name)) => format!("{} {name}", milliseconds / unit),
        None => format!("{milliseconds} milliseconds"),
    }
}

/// Escapes the characters that would end a cell of a table.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

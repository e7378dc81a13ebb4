//! What a layer tells others about itself, from its own settings.

use std::borrow::Cow;

use http::StatusCode;

use crate::{
    http::{
        IdempotencyLayer,
        contract::{self, Contract, KeySpace, OnRetry, OutcomeRule, Requirement, WhileInFlight},
        fingerprint::{BodyComparison, QueryComparison},
        grpc,
        outcome::ServerErrors,
        problem::Kind,
        rules::{self, EarlyData, KeyScope, Presence, Rules, Storage, Unrepeatable},
        settings::Settings,
    },
    policy::{InFlight, OnExpired},
};

impl IdempotencyLayer {
    /// What the service promises about keys, on every route that has no rules of its own: for a page, an OpenAPI document, or the
    /// settings of a CORS layer. A resource must publish it (draft-07, section 2.5.2).
    ///
    /// The longest body that it promises to repeat is that of [`Rules::max_response`], or what the handle's
    /// [`max_outcome`](crate::handle::Builder::max_outcome) leaves for a body, where that is less: 8 KiB of it, and at most its half, are
    /// for header fields, trailers and what a [`Seal`](super::Seal) adds. Where these are longer, as with a seal that writes text for bytes, a
    /// response with such a body may not be kept: let `max_outcome` be larger than `max_response` by as much.
    ///
    /// # Examples
    ///
    /// ```
    /// use idempotent_runtime::{Idempotency, http::{IdempotencyLayer, Scope}};
    ///
    /// let layer = IdempotencyLayer::builder(Idempotency::memory())
    ///     .scope(Scope::shared_by_all_callers())
    ///     .build()?;
    /// let page = layer.contract().to_markdown();
    /// assert!(page.contains("| methods | POST, PATCH |"));
    /// # Ok::<(), idempotent_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn contract(&self) -> Contract {
        let settings = self.settings();
        written(settings, &settings.rules)
    }

    /// What the service promises about keys for requests to `path`.
    #[must_use]
    pub fn contract_for(&self, path: &str) -> Contract {
        let settings = self.settings();
        written(settings, settings.rules(path))
    }
}

fn written(settings: &Settings, rules: &Rules) -> Contract {
    let mut contract = Contract::new();
    contract.protocol = match rules.protocol {
        rules::Protocol::Http => contract::Protocol::Http,
        rules::Protocol::GrpcUnary => contract::Protocol::Grpc,
    };
    contract.requirement = match rules.presence {
        Presence::Required => Requirement::Required,
        Presence::Optional => Requirement::Optional,
        Presence::Ignored => Requirement::Ignored,
        Presence::IgnoredAloud => Requirement::IgnoredAloud,
        Presence::Unsupported => Requirement::Unsupported,
    };
    contract.methods = match rules.presence {
        Presence::Ignored => Vec::new(),
        _ => rules.methods.clone(),
    };
    contract.keys = rules.reader.clone();
    contract.key_space = match (rules.key_scope, settings.scope.is_shared()) {
        (KeyScope::Caller, false) => KeySpace::Caller,
        (KeyScope::Route, false) => KeySpace::CallerAndRoute,
        (KeyScope::Caller, true) => KeySpace::Everybody,
        (KeyScope::Route, true) => KeySpace::EverybodyAndRoute,
    };
    contract.retention = rules.ttl.unwrap_or(settings.handle.defaults().ttl);
    if rules.on_expired == OnExpired::Refuse {
        let expired = Kind::ResultExpired;
        contract.answers.push((expired, expired.status()));
        contract.after_retention = OnRetry::Refused(expired);
    }
    contract.compared = compared(rules);
    contract.in_flight = match rules.in_flight {
        InFlight::Reject => WhileInFlight::Refused,
        InFlight::Wait(at_most) => WhileInFlight::Waits(at_most),
    };
    contract.outcomes = outcomes(rules);
    contract.replay_of_created = rules.replay_of_created;
    contract.headers = rules.headers.clone();
    contract.request_limit = Some(rules.max_request as u64);
    contract.response_limit = Some(longest_body(settings, rules) as u64);
    contract.problems = settings.problems.clone();
    restrict(&mut contract.answers, rules);
    for (kind, status) in &mut contract.answers {
        *status = match kind {
            Kind::KeyReused => rules.mismatch_status,
            Kind::RequestInProgress => rules.in_flight_status,
            Kind::ScopeUnresolved => settings.scope.refusal(),
            _ => *status,
        };
    }
    contract
}

/// The longest body of a response that is kept, whatever ordinary header fields it has: the handle's bound is on all that is stored.
fn longest_body(settings: &Settings, rules: &Rules) -> usize {
    const BESIDE_A_BODY: usize = 8 * 1024;
    let most = settings.handle.defaults().max_outcome;
    rules.max_response.min(most - BESIDE_A_BODY.min(most / 2))
}

/// Leaves the problems that there can be, by what becomes of requests with a key and without.
fn restrict(answers: &mut Vec<(Kind, StatusCode)>, rules: &Rules) {
    let may_be_early = rules.early_data == EarlyData::WithKey;
    let not_supported = (Kind::NotSupported, Kind::NotSupported.status());
    if rules.protocol == rules::Protocol::GrpcUnary {
        // Of several messages, only their bytes tell.
        answers.push(not_supported);
    }
    match rules.presence {
        Presence::Required => answers.retain(|(kind, _)| *kind != Kind::TooEarly),
        Presence::Optional => answers.retain(|(kind, _)| match kind {
            Kind::KeyMissing => false,
            Kind::TooEarly => may_be_early,
            _ => true,
        }),
        Presence::Ignored | Presence::IgnoredAloud => {
            answers.retain(|(kind, _)| *kind == Kind::TooEarly && may_be_early);
        }
        Presence::Unsupported => {
            answers.retain(|(kind, _)| *kind == Kind::TooEarly && may_be_early);
            answers.push(not_supported);
        }
    }
}

fn compared(rules: &Rules) -> Vec<Cow<'static, str>> {
    let comparison = &rules.comparison;
    let query: Cow<'static, str> = match comparison.query {
        QueryComparison::Exact => "path and query".into(),
        QueryComparison::AnyOrder => "path and query in any order".into(),
        QueryComparison::Ignored => "path".into(),
        QueryComparison::Without(names) => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("path and query without {}", names.join(", ")).into()
        }
    };
    let body = match comparison.body {
        BodyComparison::Exact => "body, byte by byte",
        BodyComparison::CanonicalJson => "body, JSON by what it says",
        BodyComparison::By(_) => "what counts of the body",
    };
    let headers = comparison
        .headers
        .iter()
        .map(|name| Cow::Owned(format!("`{name}`")));
    ["method".into(), query, "content type".into()]
        .into_iter()
        .chain(headers)
        .chain([Cow::Borrowed(body)])
        .collect()
}

fn outcomes(rules: &Rules) -> Vec<OutcomeRule> {
    let failed = match rules.server_errors {
        ServerErrors::Replay => OnRetry::Replayed,
        ServerErrors::Release => OnRetry::ProcessedAgain,
        ServerErrors::Uncertain => OnRetry::Refused(Kind::OutcomeUnknown),
    };
    let unavailable = match rules.unrepeatable {
        Unrepeatable::Refused => OnRetry::Refused(Kind::ResultUnavailable),
        Unrepeatable::RunAgain => OnRetry::ProcessedAgain,
    };
    let (failed, others) = match rules.storage {
        Storage::Nothing if failed == OnRetry::Replayed => (unavailable, unavailable),
        Storage::Nothing => (failed, unavailable),
        Storage::Whole => (failed, OnRetry::Replayed),
    };
    if rules.protocol == rules::Protocol::GrpcUnary {
        return vec![
            OutcomeRule::new(grpc::RELEASED, OnRetry::ProcessedAgain),
            OutcomeRule::new(grpc::FAILED, failed),
            OutcomeRule::new("those that are too large", unavailable),
            OutcomeRule::new("all others", others),
        ];
    }
    let mut rules_by_status = Vec::new();
    if !rules.rejections.is_empty() {
        let rejections: Vec<_> = rules.rejections.iter().map(StatusCode::as_str).collect();
        let rejections = OutcomeRule::new(rejections.join(", "), OnRetry::ProcessedAgain);
        rules_by_status.push(rejections);
    }
    rules_by_status.extend([
        OutcomeRule::new(
            "304, 401, 403, 405, 407, 408, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431 and 503",
            OnRetry::ProcessedAgain,
        ),
        OutcomeRule::new("500 and above", failed),
        OutcomeRule::new("those that are streamed or too large", unavailable),
        OutcomeRule::new("all others", others),
    ]);
    rules_by_status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Idempotency,
        http::{Scope, grpc::Code, outcome::Verdict},
    };

    #[test]
    fn s_116_the_contract_of_a_method_of_grpc_speaks_of_its_statuses() {
        let layer = IdempotencyLayer::builder(Idempotency::memory())
            .scope(Scope::shared_by_all_callers())
            .route("/shop.v1.Orders/Place", |_| Rules::grpc_unary());
        let layer = layer.build().expect("it can be built");
        let contract = layer.contract_for("/shop.v1.Orders/Place");
        let page = contract.to_markdown();
        for row in [
            "| metadata | idempotency-key |",
            "| a request without it | is refused with INVALID_ARGUMENT `idempotency-key-missing` |",
            "| a retry with another one | is refused with FAILED_PRECONDITION `idempotency-key-reused` |",
            "| a retry after responses: PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE and UNAUTHENTICATED | is processed again |",
            "and `idempotent-replayed: true` |",
            ":idempotency-not-supported) | UNIMPLEMENTED | no | none |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
        let tells_http = |text: &str| {
            contract.answers.iter().any(|(_, status)| {
                let status = status.as_str();
                [
                    format!("| {status} |"),
                    format!("with {status} "),
                    format!("<td>{status}<"),
                ]
                .iter()
                .any(|told| text.contains(told))
            })
        };
        for text in [page, contract.to_html()] {
            assert!(!tells_http(&text), "{text}");
            assert!(
                !text.contains("UNKNOWN |") && !text.contains(">UNKNOWN<"),
                "{text}"
            );
        }
        assert!(tells_http(&layer.contract().to_markdown()));
        let program = contract.to_open_api();
        assert_eq!(program["operation"]["responses"], serde_json::json!({}));
    }

    /// What is written for people is what is done.
    #[test]
    fn s_116_every_status_is_told_as_it_is_decided() {
        const NAMES: [&str; 17] = [
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        ];
        let tells = |list: &str, name: &str| {
            list.replace(" and ", ", ")
                .split(", ")
                .any(|told| told == name)
        };
        for (code, name) in (0..).zip(NAMES) {
            let verdict = grpc::verdict(Code(code), ServerErrors::Uncertain);
            let told = (tells(grpc::RELEASED, name), tells(grpc::FAILED, name));
            let decided = (verdict == Verdict::Release, verdict == Verdict::Uncertain);
            assert_eq!(told, decided, "{name}");
        }
    }
}

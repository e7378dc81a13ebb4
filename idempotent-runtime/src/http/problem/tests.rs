use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header::ACCEPT};
use serde_json::Value;

use super::*;
use crate::{Error, Idempotency, key::KeyError};

fn respond(problem: &Problem) -> Response<Bytes> {
    Problems::new()
        .base("https://api.example.com/problems/")
        .and_then(|problems| problems.documentation("https://api.example.com/docs/idempotency"))
        .expect("absolute URIs")
        .respond(problem, &Method::POST, &HeaderMap::new())
}

fn document(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).expect("a JSON document")
}

#[test]
fn every_kind_has_a_slug_of_its_own_and_a_heading_in_the_documentation() {
    let text = include_str!("mod.rs");
    let slugs: HashSet<_> = Kind::ALL.iter().map(|kind| kind.slug()).collect();
    assert_eq!(slugs.len(), Kind::ALL.len());
    for slug in slugs {
        assert!(text.contains(&format!("//! # {slug}\n")), "{slug}");
    }
}

/// Part (c) of the checklist: slug, status, whether to retry, what becomes of the key, and the
/// header fields.
#[test]
fn every_kind_is_answered_as_the_registry_of_problems_says() {
    const REGISTRY: &str = "
        idempotency-key-missing         400 false send Link
        idempotency-key-invalid         400 false new  Link
        idempotency-key-reused          422 false new  Link
        idempotency-inner-call-refused  409 false none -
        idempotency-request-in-progress 409 true  keep Retry-After
        idempotency-outcome-unknown     409 false keep -
        idempotency-result-unavailable  409 false keep -
        idempotency-result-expired      409 false keep -
        idempotency-result-out-of-reach 503 true  keep Retry-After
        idempotency-scope-unresolved    400 false keep -
        idempotency-body-too-large      413 false keep -
        idempotency-body-unreadable     400 true  keep -
        idempotency-body-timeout        408 true  keep -
        idempotency-store-unavailable   503 true  keep Retry-After
        idempotency-overloaded          503 true  keep Retry-After
        idempotency-too-early           425 true  send -
        idempotency-too-many-keys       429 true  keep Retry-After
        idempotency-not-supported       501 false none -
        idempotency-handler-failed      500 false keep -
        idempotency-misconfigured       500 false keep -";
    let rows: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| {
            let response = respond(&Problem::new(*kind));
            let document = document(&response);
            let headers = response.headers();
            let seconds = document.get("retry_after").map(Value::to_string);
            assert_eq!(
                headers.get("retry-after").map(HeaderValue::as_bytes),
                seconds.as_deref().map(str::as_bytes)
            );
            let field = match (
                headers.contains_key("link"),
                headers.contains_key("retry-after"),
            ) {
                (true, false) => "Link",
                (false, true) => "Retry-After",
                (false, false) => "-",
                (true, true) => "both",
            };
            let text = |member: &str| document[member].as_str().map(str::to_owned).expect("text");
            assert_eq!(
                text("type"),
                format!("https://api.example.com/problems/{}", kind.slug())
            );
            assert_eq!(text("code"), kind.slug().replace('-', "_"));
            format!(
                "{} {} {} {} {field}",
                kind.slug(),
                document["status"],
                document["retryable"],
                text("key_action")
            )
        })
        .collect();
    let expected: Vec<_> = REGISTRY
        .trim()
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn s_69_s_120_every_answer_is_a_problem_document_that_no_cache_keeps() {
    for kind in Kind::ALL {
        let response = respond(&Problem::new(*kind));
        let headers = response.headers();
        assert_eq!(headers["content-type"], "application/problem+json");
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["content-language"], "en");
        assert_eq!(document(&response)["status"], response.status().as_u16());
    }
}

#[test]
fn s_120_an_answer_to_head_has_no_body_and_the_same_fields() {
    let problem = Problem::new(Kind::StoreUnavailable);
    let problems = Problems::new();
    let head = problems.respond(&problem, &Method::HEAD, &HeaderMap::new());
    let post = problems.respond(&problem, &Method::POST, &HeaderMap::new());
    assert!(head.body().is_empty());
    assert!(!post.body().is_empty());
    assert_eq!(
        (head.status(), head.headers()),
        (post.status(), post.headers())
    );
}

#[test]
fn s_120_an_answer_does_not_hold_the_key() {
    let key = "a-key-that-nobody-should-see".repeat(20);
    let mut headers = HeaderMap::new();
    let value = HeaderValue::try_from(&key).expect("a value");
    headers.insert(crate::http::IDEMPOTENCY_KEY, value);
    let error = KeyReader::new().read(&headers).expect_err("too long a key");
    let response = respond(&Problem::from(error));
    let text = String::from_utf8_lossy(response.body()).into_owned();
    assert!(text.contains("\"reason\":\"too_long\""), "{text}");
    assert!(!text.contains("nobody-should-see"), "{text}");
}

#[test]
fn s_29_a_missing_key_is_answered_with_what_the_route_expects() {
    let problem = Problem::key_missing(&Method::POST, "/payments", &KeyReader::new());
    let document = document(&respond(&problem));
    assert_eq!(
        document["detail"],
        "POST /payments requires the header field Idempotency-Key: a quoted string (RFC 9651 section 3.3.3), whose quotation marks may be left out, of 1 to 255 characters, for example \"8e03978e-40d5-43e8-bc93-6894a57f9324\"."
    );
}

#[test]
fn s_30_a_link_leads_to_the_documentation_that_was_given() {
    let link =
        "<https://api.example.com/docs/idempotency>; rel=\"describedby\"; type=\"text/html\"";
    let problem = Problem::new(Kind::KeyMissing);
    assert_eq!(respond(&problem).headers()["link"], link);
    let without = Problems::new().respond(&problem, &Method::POST, &HeaderMap::new());
    assert!(!without.headers().contains_key("link"));
}

#[test]
fn s_40_a_wait_is_told_in_whole_seconds_and_never_less_than_one() {
    for (milliseconds, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (30_000, 30)] {
        let wait = Duration::from_millis(milliseconds);
        let problem = Problem::new(Kind::RequestInProgress).with_retry_after(wait);
        assert_eq!(problem.retry_after(), Some(seconds));
    }
    let endless = Problem::new(Kind::RequestInProgress).with_retry_after(Duration::MAX);
    assert_eq!(endless.retry_after(), Some(u64::MAX));
}

#[test]
fn s_42_another_status_leaves_the_type_as_it_is() {
    let problem = Problem::new(Kind::RequestInProgress).with_status(StatusCode::LOCKED);
    let response = respond(&problem);
    assert_eq!(response.status(), 423);
    assert_eq!(document(&response)["status"], 423);
    assert_eq!(
        document(&response)["code"],
        "idempotency_request_in_progress"
    );
}

#[test]
fn s_41_what_differs_is_told_only_where_it_was_given() {
    let problem = Problem::new(Kind::KeyReused);
    assert_eq!(document(&respond(&problem)).get("mismatch"), None);
    let problem = problem.with_mismatch([Mismatch::ContentType, Mismatch::Body]);
    let document = document(&respond(&problem));
    assert_eq!(
        document["mismatch"],
        serde_json::json!(["content_type", "body"])
    );
}

#[derive(Debug)]
struct TextOnRequest;

impl Renderer for TextOnRequest {
    fn render(&self, document: &Document<'_>, request: &HeaderMap) -> Rendered {
        if request
            .get(ACCEPT)
            .is_none_or(|accept| accept != "text/plain")
        {
            return ProblemJson.render(document, request);
        }
        Rendered {
            content_type: HeaderValue::from_static("text/plain; charset=utf-8"),
            content_language: None,
            body: document.problem().detail().to_owned().into(),
        }
    }
}

#[test]
fn s_121_a_renderer_chooses_the_body_and_nothing_else() {
    let problems = Problems::new().renderer(TextOnRequest);
    let problem = Problem::new(Kind::Overloaded);
    let mut plain = HeaderMap::new();
    plain.insert(ACCEPT, HeaderValue::from_static("text/plain"));
    let text = problems.respond(&problem, &Method::POST, &plain);
    let json = problems.respond(&problem, &Method::POST, &HeaderMap::new());
    assert_eq!(text.body(), "The request was not executed.");
    assert_eq!(json.headers()["content-type"], "application/problem+json");
    assert_eq!(text.status(), json.status());
    for field in ["retry-after", "cache-control"] {
        assert_eq!(text.headers()[field], json.headers()[field]);
    }
}

#[test]
fn a_base_and_a_page_must_be_absolute_uris_that_can_stand_in_a_link() {
    for sound in [
        "https://api.example.com/problems/",
        "urn:problem:",
        "tag:example.com,2026:",
        "https://x/y#",
    ] {
        assert!(Problems::new().base(sound).is_ok(), "{sound}");
        assert!(Problems::new().documentation(sound).is_ok(), "{sound}");
    }
    for odd in [
        "",
        "/problems/",
        "problems",
        ":x",
        "1http://x",
        "https:",
        "https://x/\u{fc}",
        "https://x/ y",
        "https://x/>",
        "https://x/\"",
        "https://x/\r\ny",
    ] {
        assert_eq!(Problems::new().base(odd).err(), Some(InvalidUri), "{odd}");
        assert_eq!(
            Problems::new().documentation(odd).err(),
            Some(InvalidUri),
            "{odd}"
        );
    }
}

/// A client knows a problem by what stands behind the last delimiter of its type.
#[test]
fn a_base_does_not_run_into_the_names_of_problems() {
    for sound in ["https://x/docs?problem=", "https://x/docs#a/"] {
        assert!(Problems::new().base(sound).is_ok(), "{sound}");
    }
    for runs_on in [
        "https://api.example.com/problems",
        "https://x/y#z",
        "urn:problem",
        "https://x/problem-",
        "https://x/%",
    ] {
        assert_eq!(
            Problems::new().base(runs_on).err(),
            Some(InvalidUri),
            "{runs_on}"
        );
    }
}

#[tokio::test]
async fn the_reasons_why_a_call_got_no_answer_are_problems() {
    let idem = Idempotency::memory();
    let at = || Arc::<str>::from("orders.place");
    let missing = idem
        .call("orders.place")
        .key(&None::<&str>)
        .run(|_| async { Ok::<_, Error>(()) })
        .await
        .expect_err("no key");
    assert_eq!(Problem::from(&missing).kind(), Kind::KeyMissing);
    let invalid = |part, source| Error::InvalidKey {
        operation: at(),
        part,
        source,
    };
    let id = crate::identity::RecordId::from_bytes([7; 32]);
    let too_long = KeyError::TooLong {
        bytes: 70_000,
        limit: 65_536,
    };
    let uncertain = Error::Uncertain {
        operation: at(),
        id,
        number: None,
    };
    let parked = Error::Parked {
        operation: at(),
        attempts: 5,
        id,
        number: None,
    };
    let lost = Error::LeaseLost { operation: at() };
    let stopped = Error::Stopped { operation: at() };
    let not_replayable = Error::NotReplayable { operation: at() };
    let expired = Error::Expired { operation: at() };
    let reused = Error::KeyReused {
        operation: at(),
        differing: vec!["cents".to_owned()],
    };
    let not_configured = Error::NotConfigured { operation: at() };
    let (empty, long) = (Some(Reason::Empty), Some(Reason::TooLong));
    for (error, kind, reason) in [
        (invalid("key", KeyError::Empty), Kind::KeyInvalid, empty),
        (invalid("key", too_long), Kind::KeyInvalid, long),
        (
            invalid("scope", KeyError::Missing),
            Kind::ScopeUnresolved,
            None,
        ),
        (uncertain, Kind::OutcomeUnknown, None),
        (parked, Kind::OutcomeUnknown, None),
        (lost, Kind::RequestInProgress, None),
        (stopped, Kind::RequestInProgress, None),
        (not_replayable, Kind::ResultUnavailable, None),
        (expired, Kind::ResultExpired, None),
        (reused, Kind::KeyReused, None),
        (not_configured, Kind::Misconfigured, None),
    ] {
        let problem = Problem::from(&error);
        let found = (problem.kind(), problem.reason());
        assert_eq!(found, (kind, reason), "{error}");
        assert!(!problem.detail().contains("cents"), "{error}");
    }
}

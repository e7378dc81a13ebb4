use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::Value;

use super::*;
use crate::{
    Idempotency, InFlight,
    http::{
        HeaderPolicy, KeyPolicy, KeyReader, ServerErrors, Syntax, grpc,
        outcome::Verdict,
        problem::{KeyAction, Mismatch, Problem},
    },
};

/// The contract of a layer with these rules.
fn of_rules(rules: Rules) -> Contract {
    let layer = IdempotencyLayer::builder(Idempotency::memory())
        .scope("caller", |_| Some("A"))
        .rules(rules);
    layer.build().expect("the settings are sound").contract()
}

fn contract_of_keys(keys: KeyReader) -> Contract {
    of_rules(Rules::ietf().reader(keys))
}

fn two_fields() -> KeyReader {
    KeyReader::new().also(HeaderName::from_static("x-idempotency-key"))
}

fn names(fields: &[HeaderName]) -> Vec<&str> {
    fields.iter().map(HeaderName::as_str).collect()
}

#[test]
fn s_113_browsers_may_send_every_field_of_the_key_and_read_what_an_answer_says() {
    let contract = contract_of_keys(two_fields());
    assert_eq!(
        names(&contract.cors_allowed_headers()),
        ["idempotency-key", "x-idempotency-key", "content-type"]
    );
    let exposed = [
        "idempotent-replayed",
        "idempotency-status",
        "idempotency-key",
        "retry-after",
        "location",
        "link",
    ];
    assert_eq!(names(&contract.cors_exposed_headers()), exposed);

    let with_id = HeaderPolicy::new().original_request_id(HeaderName::from_static("x-request-id"));
    let exposed = of_rules(Rules::ietf().headers(with_id)).cors_exposed_headers();
    let exposed = names(&exposed).join(" ");
    assert!(exposed.ends_with(" original-request-id"), "{exposed}");
}

#[test]
fn s_125_the_contract_says_all_that_a_resource_must_publish() {
    let rules = Rules::ietf()
        .reader(KeyReader::new().policy(KeyPolicy::new().length(16..=64)))
        .max_request(65_536)
        .in_flight(InFlight::Wait(Duration::from_secs(5)));
    let contract = of_rules(rules);
    let text = contract.to_markdown();
    for row in [
        "| methods | POST, PATCH |",
        "| header field | Idempotency-Key |",
        "| a request without it | is refused with 400 `idempotency-key-missing` |",
        "| its value | a quoted string (RFC 9651 section 3.3.3), whose quotation marks may be left out, of 16 to 64 characters, for example \"8e03978e-40d5-43e8-bc93-6894a57f9324\" |",
        "| a key stands for one request | of one caller, whatever the route |",
        "| a retry must have the same | method, path and query, content type, body, byte by byte |",
        "| a retry with another one | is refused with 422 `idempotency-key-reused` |",
        "| a retry while the first request is being processed | waits up to 5 seconds, then is refused with 409 `idempotency-request-in-progress` |",
        "428, 429, 431 and 503 | is processed again |",
        "| a retry after responses: all others | gets the first response again |",
        "| responses are kept for | 24 hours |",
        "| a request with the key after that | is processed again |",
        "| a repeated response | has the status, the body and the header fields of the first one, and `Idempotent-Replayed: true` |",
        "| largest body of a request | 65536 bytes |",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
    for (kind, status) in contract.answers() {
        let row = format!(
            "| [`{}`]({}) | {} | {} | {} |",
            kind.slug(),
            contract.settings.problems.type_uri(kind),
            status.as_u16(),
            if kind.is_retryable() { "yes" } else { "no" },
            kind.key_action().as_str(),
        );
        assert!(text.contains(&row), "{row}\n{text}");
    }
}

#[test]
fn s_125_a_status_of_the_service_s_own_is_told_everywhere() {
    let contract = of_rules(Rules::ietf().mismatch_status(StatusCode::GONE));
    let refused = "is refused with 410 `idempotency-key-reused`";
    assert!(contract.to_markdown().contains(refused));
    let api = contract.to_open_api();
    assert!(api["components"]["responses"]["Idempotency410"].is_object());
    assert!(api["components"]["responses"]["Idempotency422"].is_null());
}

#[test]
fn a_bar_in_a_policy_does_not_end_the_cell_of_a_table() {
    let policy = KeyPolicy::new().require("`a|b`", |_| true);
    let contract = contract_of_keys(KeyReader::new().policy(policy));
    assert!(contract.to_markdown().contains("`a\\|b`"));
}

fn all_references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(target) if name == "$ref" => found.push(target),
                    _ => all_references(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all_references(item, found)),
        _ => {}
    }
}

/// The number of references: each is to a component of the same fragment.
fn references_that_lead_somewhere(api: &Value) -> usize {
    let mut references = Vec::new();
    all_references(api, &mut references);
    for reference in &references {
        let pointer = reference.strip_prefix('#').expect("a local reference");
        assert!(api.pointer(pointer).is_some(), "{reference}");
    }
    references.len()
}

#[test]
fn s_125_every_reference_of_the_open_api_fragment_leads_to_a_component_of_it() {
    let contract = contract_of_keys(two_fields());
    let api = contract.to_open_api();
    assert!(references_that_lead_somewhere(&api) > 10);
}

/// In one document, components of the same name would be those of one contract alone.
#[test]
fn s_125_fragments_of_several_contracts_share_no_component_where_they_are_named() {
    let contract = contract_of_keys(two_fields());
    let [unnamed, quotes, orders] =
        ["", "Quotes", "v1/Orders#"].map(|name| contract.to_open_api_named(name));
    assert_eq!(unnamed, contract.to_open_api());
    for (api, name) in [(&quotes, "Quotes"), (&orders, "v1Orders")] {
        for (kind, named) in api["components"].as_object().expect("an object") {
            let named = named.as_object().expect("an object");
            assert!(!named.is_empty(), "{kind}");
            let unnamed = unnamed["components"][kind].as_object().expect("an object");
            let expected: Vec<_> = unnamed.keys().map(|key| format!("{name}{key}")).collect();
            assert_eq!(
                named.keys().collect::<Vec<_>>(),
                expected.iter().collect::<Vec<_>>()
            );
        }
        references_that_lead_somewhere(api);
    }
}

#[test]
fn s_125_the_open_api_fragment_describes_the_parameter_and_every_problem() {
    let keys = KeyReader::new()
        .syntax(Syntax::Strict)
        .policy(KeyPolicy::new().uuid());
    let contract = contract_of_keys(keys);
    let api = contract.to_open_api();
    let parameter = &api["components"]["parameters"]["IdempotencyKey"];
    assert_eq!(parameter["name"], "Idempotency-Key");
    assert_eq!(parameter["in"], "header");
    assert_eq!(parameter["required"], true);
    assert_eq!(parameter["description"], contract.to_markdown());
    assert_eq!(
        parameter["example"],
        "\"8e03978e-40d5-43e8-bc93-6894a57f9324\""
    );
    assert_eq!(
        parameter["schema"]["pattern"],
        "^\"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\"$"
    );
    let problem = &api["components"]["schemas"]["IdempotencyProblem"];
    let codes = problem["properties"]["code"]["enum"]
        .as_array()
        .expect("a list");
    assert_eq!(codes.len(), contract.answers().len());
    for (_, status) in contract.answers() {
        assert!(
            api["operation"]["responses"][status.as_str()].is_object(),
            "{status}"
        );
    }
}

#[test]
fn the_schema_of_a_problem_knows_every_member_that_a_problem_has() {
    let contract = of_rules(Rules::ietf());
    let api = contract.to_open_api();
    let schema = &api["components"]["schemas"]["IdempotencyProblem"]["properties"];
    let key = KeyReader::new().policy(KeyPolicy::new().uuid());
    let mut headers = http::HeaderMap::new();
    headers.insert(IDEMPOTENCY_KEY, http::HeaderValue::from_static("k"));
    let problem = Problem::from(key.read(&headers).expect_err("no UUID"))
        .with_retry_after(Duration::from_secs(1))
        .with_operation_ref("op")
        .with_mismatch(Mismatch::ALL.iter().copied());
    let response =
        contract
            .settings
            .problems
            .respond(&problem, &Method::POST, &http::HeaderMap::new());
    let document: Value = serde_json::from_slice(response.body()).expect("JSON");
    for (name, value) in document.as_object().expect("an object") {
        let property = &schema[name];
        assert!(property.is_object(), "{name}");
        let allowed = property["enum"]
            .as_array()
            .or(property["items"]["enum"].as_array());
        let values = value
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![value.clone()]);
        if let Some(allowed) = allowed {
            assert!(values.iter().all(|value| allowed.contains(value)), "{name}");
        }
    }
    assert_eq!(
        document.as_object().map(serde_json::Map::len),
        schema.as_object().map(serde_json::Map::len)
    );
}

#[test]
fn names_in_documents_are_those_that_programs_get() {
    for action in KeyAction::ALL {
        assert_eq!(serde_json::to_value(action).expect("text"), action.as_str());
    }
}

#[test]
fn durations_are_told_in_the_largest_unit_that_fits() {
    for (milliseconds, words) in [
        (604_800_000, "7 days"),
        (86_400_000, "24 hours"),
        (90_000, "90 seconds"),
        (3_600_000, "60 minutes"),
        (1_500, "1500 milliseconds"),
    ] {
        let ttl = Duration::from_millis(milliseconds);
        let text = of_rules(Rules::ietf().ttl(ttl).lease("1s")).to_markdown();
        let row = format!("| responses are kept for | {words} |");
        assert!(text.contains(&row), "{row}");
    }
}

#[test]
fn s_116_the_contract_of_a_method_of_grpc_speaks_of_its_statuses() {
    let layer = IdempotencyLayer::builder(Idempotency::memory())
        .shared_by_all_callers()
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
        contract.answers().iter().any(|(_, status)| {
            let status = status.as_str();
            [format!("| {status} |"), format!("with {status} ")]
                .iter()
                .any(|told| text.contains(told))
        })
    };
    assert!(!tells_http(&page), "{page}");
    assert!(!page.contains("UNKNOWN |"), "{page}");
    assert!(tells_http(&layer.contract().to_markdown()));
    let program = contract.to_open_api();
    assert_eq!(program["operation"]["responses"], serde_json::json!({}));
}

/// The contract for people says what is done.
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
        let verdict = grpc::verdict(grpc::Code(code), ServerErrors::Uncertain);
        let told = (tells(grpc::RELEASED, name), tells(grpc::FAILED, name));
        let decided = (verdict == Verdict::Release, verdict == Verdict::Uncertain);
        assert_eq!(told, decided, "{name}");
    }
}

//! The contract for programs, as a fragment of an OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Contract;
use crate::http::{
    KeyReader, Presence, Reason, Syntax, capitalised,
    problem::{KeyAction, Kind, Mismatch},
};

impl Contract {
    /// Writes it as a fragment of an OpenAPI document, for 3.0 and 3.1 alike.
    ///
    /// `components` goes to the document's components, and `operation` is merged into each
    /// operation that is protected. It refers to the parameters and to one response for each status
    /// of the problems. Such a document does not describe gRPC, where the status in HTTP says
    /// nothing, so there it has no responses. If keys do not count there is no parameter. There is
    /// a response then only if a request with a key is refused, or one in early data. The
    /// components have the same names in every contract:
    /// [`to_open_api_named`](Self::to_open_api_named) keeps those of several routes apart in one
    /// document.
    #[must_use]
    pub fn to_open_api(&self) -> Value {
        self.to_open_api_named("")
    }

    /// The same, with components whose names begin with `name`, such as `Quotes` for
    /// `QuotesIdempotencyKey`. Characters that a name of a component cannot have are left out: all
    /// except ASCII letters and digits, `.`, `-` and `_`.
    #[must_use]
    pub fn to_open_api_named(&self, name: &str) -> Value {
        let is_allowed = |c: &char| c.is_ascii_alphanumeric() || ".-_".contains(*c);
        let prefix: String = name.chars().filter(is_allowed).collect();
        let mut parameters = Map::new();
        let protects = self.protects();
        for name in self.rules.reader.names().iter().filter(|_| protects) {
            let name = capitalised(name);
            let component = format!("{prefix}{}", component(&name));
            parameters.insert(component, self.parameter(&name));
        }
        let referred: Vec<Value> = parameters
            .keys()
            .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
            .collect();
        let problem = format!("{prefix}IdempotencyProblem");
        let mut responses = Map::new();
        let mut answers = Map::new();
        for (status, kinds) in self.by_status() {
            let name = format!("{prefix}Idempotency{status}");
            answers.insert(
                status.to_string(),
                json!({ "$ref": format!("#/components/responses/{name}") }),
            );
            responses.insert(name, response(&kinds, &problem));
        }
        let mut headers = Map::new();
        if protects {
            headers.insert(format!("{prefix}IdempotentReplayed"), json!({
                "description": "Present, and true, where the response is that of an earlier request with the same key.",
                "schema": { "type": "boolean" },
            }));
        }
        let mut schemas = Map::new();
        let kinds: Vec<Kind> = self.answers().into_iter().map(|(kind, _)| kind).collect();
        if !kinds.is_empty() {
            schemas.insert(problem, problem_schema(&kinds));
        }
        json!({
            "components": {
                "parameters": parameters,
                "headers": headers,
                "schemas": schemas,
                "responses": responses,
            },
            "operation": { "parameters": referred, "responses": answers },
        })
    }

    fn parameter(&self, name: &str) -> Value {
        let mut parameter = json!({
            "name": name,
            "in": "header",
            // If several fields carry the key, any one of them will do.
            "required": self.rules.presence == Presence::Required && self.rules.reader.names().len() == 1,
            "description": self.to_markdown(),
            "schema": key_schema(&self.rules.reader),
        });
        if let Some(example) = self.rules.reader.takes().example() {
            parameter["example"] = json!(format!("\"{example}\""));
        }
        parameter
    }

    fn by_status(&self) -> BTreeMap<u16, Vec<Kind>> {
        let mut kinds: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
        if self.is_grpc() {
            return kinds;
        }
        for (kind, status) in self.answers() {
            kinds.entry(status.as_u16()).or_default().push(kind);
        }
        kinds
    }
}

/// Names a component after a header field, such as `IdempotencyKey`.
fn component(field: &str) -> String {
    field.replace('-', "")
}

/// The form of the field's value on the wire. Parameters, which are ignored, are left out.
fn key_schema(keys: &KeyReader) -> Value {
    let length = keys.takes().characters();
    let quotes = match keys.reads() {
        Syntax::Compatible => 0,
        Syntax::Strict => 2,
    };
    let mut schema = json!({
        "type": "string",
        "minLength": length.start() + quotes,
        // Each character may need a backslash.
        "maxLength": 2 * length.end() + 2,
    });
    let pattern = match (keys.reads(), keys.takes().pattern()) {
        (Syntax::Strict, Some(key)) => Some(format!("^\"{key}\"$")),
        (Syntax::Strict, None) => Some(r#"^"([ !#-\[\]-~]|\\["\\])+"$"#.to_owned()),
        (Syntax::Compatible, Some(key)) => Some(format!("^({key}|\"{key}\")$")),
        (Syntax::Compatible, None) => None,
    };
    if let Some(pattern) = pattern {
        schema["pattern"] = json!(pattern);
    }
    schema
}

/// An answer with a problem, whose schema has this name.
fn response(kinds: &[Kind], problem: &str) -> Value {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.title()).collect();
    let mut response = json!({
        "description": titles.join(". "),
        "content": { "application/problem+json": {
            "schema": { "$ref": format!("#/components/schemas/{problem}") },
        } },
    });
    if kinds.iter().any(|kind| kind.retry_after().is_some()) {
        response["headers"] = json!({ "Retry-After": {
            "description": "In how many seconds the same request may be tried again, with the same key.",
            "schema": { "type": "integer", "minimum": 1 },
        } });
    }
    response
}

fn problem_schema(kinds: &[Kind]) -> Value {
    let codes: Vec<String> = kinds.iter().map(|kind| kind.code()).collect();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "retryable", "key_action"],
        "properties": {
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "code": { "type": "string", "enum": codes },
            "reason": { "type": "string", "enum": reasons },
            "mismatch": { "type": "array", "items": { "type": "string", "enum": Mismatch::ALL } },
            "retryable": { "type": "boolean" },
            "key_action": { "type": "string", "enum": KeyAction::ALL },
            "retry_after": { "type": "integer", "minimum": 1 },
            "operation_ref": { "type": "string" },
        },
    })
}

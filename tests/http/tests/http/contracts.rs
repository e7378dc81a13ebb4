//! The contract of a service for the routes where keys do not count, beside what it does there.

use http::{HeaderName, Method};
use idempotent_runtime::http::{Contract, EarlyData, Presence, Rules, problem::Kind};
use serde_json::{Value, json};

use crate::harness::{Ask, Shop, charge, post};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const EACH_TIME: &str = "| a request without it | is processed each time it arrives |";

/// A service with a route for these rules, and what it tells of that.
fn off(rules: Rules) -> (Shop, Contract) {
    let shop = Shop::new(rules);
    let contract = shop.layer.contract_for("/off");
    (shop, contract)
}

#[track_caller]
fn tells(page: &str, rows: &[&str]) {
    for row in rows {
        assert!(page.contains(row), "{row}\n{page}");
    }
}

/// The problems that it tells of.
fn kinds(contract: &Contract) -> Vec<Kind> {
    let page = contract.to_markdown();
    let tells = |kind: &&Kind| page.contains(&format!("| [`{}`]", kind.slug()));
    Kind::ALL.iter().filter(tells).copied().collect()
}

/// The document for programs speaks of these statuses, and of keys where it is said.
#[track_caller]
fn is_documented(contract: &Contract, statuses: &[&str]) -> Value {
    let document = contract.to_open_api();
    let responses = document["operation"]["responses"].as_object();
    let responses = responses.expect("an object").keys();
    assert_eq!(responses.collect::<Vec<_>>(), statuses);
    document
}

#[tokio::test]
async fn s_32_s_125_the_contract_says_where_a_key_is_refused() {
    let (shop, contract) = off(Rules::ietf().key(Presence::Unsupported));
    shop.send(charge()).await.is_problem(501, "not_supported");
    shop.send(post("/off")).await.is_fresh();
    let get = Ask::new(Method::GET, "/off").key("k");
    shop.send(get).await.is_fresh();

    assert_eq!(kinds(&contract), [Kind::NotSupported]);
    let page = contract.to_markdown();
    tells(
        &page,
        &[
            "| methods | POST, PATCH |",
            "| a request with it | is refused with 501 `idempotency-not-supported` |",
            EACH_TIME,
            "idempotency-not-supported) | 501 | no | none |",
        ],
    );
    for of_protection in ["| a retry", "| its value", "kept", "422", "409"] {
        assert!(!page.contains(of_protection), "{of_protection}\n{page}");
    }

    let document = is_documented(&contract, &["501"]);
    assert_eq!(document["operation"]["parameters"], json!([]));
    let codes = &document["components"]["schemas"]["IdempotencyProblem"]["properties"]["code"];
    assert_eq!(codes["enum"], json!(["idempotency_not_supported"]));
}

#[tokio::test]
async fn s_32_s_125_the_contract_says_where_a_key_is_ignored() {
    let (shop, contract) = off(Rules::ietf().key(Presence::Ignored));
    let answer = shop.send(charge()).await;
    assert!(!answer.headers.contains_key("idempotency-status"));

    assert_eq!(kinds(&contract), []);
    let page = contract.to_markdown();
    let as_if_without =
        "| a request with it | is processed each time it arrives, as if it had none |";
    tells(&page, &[as_if_without, EACH_TIME]);
    assert!(!page.contains("| methods |"), "{page}");
    assert!(!page.contains("| problem |"), "{page}");
    let document = is_documented(&contract, &[]);
    assert_eq!(document["operation"]["parameters"], json!([]));
    assert_eq!(document["components"]["schemas"], json!({}));
    // Browsers that send it nevertheless are not stopped by their own check.
    assert_eq!(
        contract.cors_allowed_headers(),
        [KEY, http::header::CONTENT_TYPE]
    );
}

#[tokio::test]
async fn s_115_s_125_the_contract_says_what_becomes_of_a_request_without_a_key() {
    let (_, required) = off(Rules::ietf().early_data(EarlyData::WithKey));
    assert!(kinds(&required).contains(&Kind::KeyMissing));
    assert!(!kinds(&required).contains(&Kind::TooEarly));

    let (shop, optional) = off(Rules::ietf().key(Presence::Optional));
    shop.send(post("/off").header("early-data", "1"))
        .await
        .is_fresh();
    tells(&optional.to_markdown(), &[EACH_TIME]);
    for never in [Kind::KeyMissing, Kind::TooEarly] {
        assert!(!kinds(&optional).contains(&never));
    }

    let early = Rules::ietf()
        .key(Presence::Optional)
        .early_data(EarlyData::WithKey);
    let (shop, early) = off(early);
    shop.refuses(post("/off").header("early-data", "1"), 425, "too_early")
        .await;
    assert!(!kinds(&early).contains(&Kind::KeyMissing));
    tells(
        &early.to_markdown(),
        &[
            "| a request without it | is processed each time it arrives; in early data, it is refused with 425 `idempotency-too-early` |",
        ],
    );

    let rules = Rules::ietf().key(Presence::Ignored);
    let (_, ignored) = off(rules.early_data(EarlyData::WithKey));
    assert_eq!(kinds(&ignored), [Kind::TooEarly]);
    tells(
        &ignored.to_markdown(),
        &[
            "| a request without it | is processed each time it arrives; in early data, it is refused with 425 `idempotency-too-early` |",
            "idempotency-too-early) | 425 | yes | none |",
        ],
    );
}

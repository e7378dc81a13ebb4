//! The manual's rules for changing a service in use: two builds of it on one store, row by row.

use axum::body::Body;
use http::{HeaderName, Response};
use idempotent_runtime::{
    BoxError, Idempotency,
    http::{
        HeaderPolicy, IdempotencyLayer, KeyScope, LayerBuilder, MissingScope, QueryComparison,
        Rules, Scope, Seal, ServerErrors, Storage,
    },
    identity::RecordId,
};

use crate::harness::{Ask, Shop, by_caller, charge, post};

/// Another build of the shop, in a process of its own.
fn beside(
    shop: &Shop,
    set_up: impl FnOnce(LayerBuilder<MissingScope>) -> LayerBuilder<Scope>,
) -> Shop {
    let idem = Idempotency::new(shop.store.clone());
    let builder = IdempotencyLayer::builder(idem.clone());
    let layer = set_up(builder).build().expect("the settings are sound");
    Shop::behind(layer, shop.store.clone(), idem, |_, _| async {
        Response::new(Body::from("of the other build"))
    })
}

fn with_rules(shop: &Shop, rules: Rules) -> Shop {
    beside(shop, |builder| {
        builder.scope("caller", by_caller).rules(rules)
    })
}

fn comparing(names: &[&'static str]) -> Rules {
    let names = names.iter().copied().map(HeaderName::from_static);
    Rules::ietf().compare_headers(names)
}

/// Makes a request with that key.
type Sends = fn(&'static str) -> Ask;

#[tokio::test]
async fn a_changed_comparison_refuses_retries_in_both_builds() {
    let json = |key| post("/charges").key(key).json("{}");
    let query = |key| post("/charges?a=1").key(key);
    let version = |key| post("/charges").key(key).header("api-version", "1");
    let any_order = Rules::ietf().compare_queries(QueryComparison::AnyOrder);
    let changes: [(Rules, Sends); 3] = [
        (Rules::acp(), json),
        (any_order, query),
        (comparing(&["api-version"]), version),
    ];
    for (rules, ask) in changes {
        let old = Shop::new(Rules::ietf());
        let new = with_rules(&old, rules);
        for (one, other, key) in [(&old, &new, "before"), (&new, &old, "rolled back")] {
            let first = one.send(ask(key)).await;
            first.is_fresh();
            other.send(ask(key)).await.is_problem(422, "key_reused");
            one.send(ask(key)).await.replays(&first);
        }
        assert_eq!((old.runs(), new.runs()), (1, 1));
    }
}

#[tokio::test]
async fn what_a_comparison_does_not_see_in_a_request_changes_nothing() {
    let both = |ask: Ask| {
        ask.header("api-version", "1")
            .header("accept-language", "de")
    };
    for (before, after, ask) in [
        (Rules::ietf(), Rules::acp(), charge()),
        (Rules::ietf(), comparing(&["api-version"]), charge()),
        (
            comparing(&["api-version"]),
            comparing(&["accept-language", "api-version"]),
            charge().header("api-version", "1"),
        ),
        (
            comparing(&["api-version", "accept-language"]),
            comparing(&["accept-language", "api-version", "accept-language"]),
            both(charge()),
        ),
    ] {
        let old = Shop::new(before);
        let first = old.send(ask.clone()).await;
        let again = with_rules(&old, after).send(ask).await;
        // Some of these rules repeat the key.
        again.replays_but_for(&["idempotency-key"], &first);
    }
}

#[tokio::test]
async fn what_is_kept_otherwise_counts_for_what_is_kept_afterwards() {
    let old = Shop::new(Rules::ietf());
    let first = old.send(charge()).await;
    for rules in [
        Rules::ietf().storage(Storage::Nothing),
        Rules::ietf().max_response(0),
        Rules::ietf().headers(HeaderPolicy::default().leave_out(http::header::LOCATION)),
        Rules::ietf().server_errors(ServerErrors::Release),
        Rules::ietf().rejections([http::StatusCode::CONFLICT]),
        Rules::ietf().ttl("1m"),
    ] {
        with_rules(&old, rules).send(charge()).await.replays(&first);
    }
}

#[tokio::test]
async fn a_key_scope_a_name_a_kind_or_a_caller_that_changes_runs_again() {
    let old = Shop::new(Rules::ietf());
    old.send(charge()).await.is_fresh();
    for new in [
        with_rules(&old, Rules::ietf().key_scope(KeyScope::Route)),
        beside(&old, |builder| {
            builder.scope("caller", by_caller).name("shop")
        }),
        beside(&old, |builder| builder.scope("customer", by_caller)),
        beside(&old, |builder| {
            builder.scope("caller", |_| Some(("an organisation", "A")))
        }),
    ] {
        new.send(charge()).await.is_fresh();
        assert_eq!(new.runs(), 1);
    }
}

/// Stands for an encryption with a key that changes. It seals with the newest key. It opens what
/// older keys have sealed, and what was not sealed.
#[derive(Debug)]
struct Keyring {
    newest: Option<u8>,
}

/// No stored response begins with it.
const SEALED: u8 = 0xff;

impl Seal for Keyring {
    fn seal(&self, _: &RecordId, mut response: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        let Some(key) = self.newest else {
            return Ok(response);
        };
        response.iter_mut().for_each(|byte| *byte ^= key);
        Ok([&[SEALED, key], &response[..]].concat())
    }

    fn open(&self, _: &RecordId, sealed: &[u8]) -> Result<Vec<u8>, BoxError> {
        Ok(match sealed {
            [SEALED, key, rest @ ..] => rest.iter().map(|byte| byte ^ key).collect(),
            plain => plain.to_vec(),
        })
    }
}

#[tokio::test]
async fn a_seal_is_changed_by_one_that_opens_what_the_one_before_has_sealed() {
    let plain = Shop::new(Rules::ietf());
    let sealed = |newest| {
        beside(&plain, |builder| {
            builder.scope("caller", by_caller).seal(Keyring { newest })
        })
    };
    let (opens, seals, rotated) = (sealed(None), sealed(Some(1)), sealed(Some(2)));
    let ask = |key: &'static str| post("/charges").key(key).body("amount=12");

    for (shop, key) in [(&plain, "plain"), (&seals, "sealed"), (&rotated, "rotated")] {
        let first = shop.send(ask(key)).await;
        first.is_fresh();
        for other in [&opens, &seals, &rotated] {
            other.send(ask(key)).await.replays(&first);
        }
    }
    // A process that knows of no seal.
    let unread = plain.send(ask("sealed")).await;
    unread.is_problem(409, "outcome_unknown");
    assert_eq!(
        (plain.runs(), opens.runs(), seals.runs(), rotated.runs()),
        (1, 0, 1, 1)
    );
}

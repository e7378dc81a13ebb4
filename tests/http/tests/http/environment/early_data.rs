//! Requests that came as early data, which may have been sent again (RFC 8470).

use http::Method;
use idempotent_runtime::http::{EarlyData, KeyEcho, Presence, Rules};

use crate::harness::{Ask, Shop, charge, post};

#[tokio::test]
async fn s_115_early_data_without_a_key_is_too_early_where_that_is_said() {
    let early = |ask: Ask| ask.header("early-data", "1");
    let optional = || Rules::ietf().key(Presence::Optional);
    let shop = Shop::new(optional().early_data(EarlyData::WithKey));
    shop.send(early(charge())).await.is_fresh();
    let doubled = early(early(post("/charges")));
    let nonsense = post("/charges").header("early-data", "yes");
    for unprotected in [early(post("/charges")), doubled, nonsense] {
        let refused = shop.send(unprotected).await;
        let document = refused.is_problem(425, "too_early");
        assert_eq!(document["key_action"], "send");
    }
    shop.send(post("/charges")).await.is_fresh();
    assert_eq!(shop.runs(), 2);
    let lenient = Shop::new(optional());
    lenient.send(early(post("/charges"))).await.is_fresh();
}

/// A request for which keys do not count can be repeated like one without a key; a read does no
/// harm.
#[tokio::test]
async fn s_115_early_data_that_no_key_protects_is_too_early_whatever_is_said_of_keys() {
    let rules = || Rules::ietf().early_data(EarlyData::WithKey);
    let early = |method: Method| {
        let ask = Ask::new(method, "/charges").key("k");
        ask.header("early-data", "1")
    };
    for (presence, method) in [
        (Presence::Required, Method::PUT),
        (Presence::Optional, Method::DELETE),
        (Presence::Ignored, Method::PATCH),
    ] {
        let shop = Shop::new(rules().key(presence).echo(KeyEcho::Key));
        let refused = shop.send(early(method)).await;
        let document = refused.is_problem(425, "too_early");
        assert_eq!(document["key_action"], "none", "{presence:?}");
        assert!(!refused.headers.contains_key("idempotency-key"));
        assert_eq!(shop.runs(), 0, "{presence:?}");
        shop.send(early(Method::GET)).await.is_fresh();
    }
    let unsupported = Shop::new(rules().key(Presence::Unsupported));
    let refused = unsupported.send(early(Method::POST)).await;
    refused.is_problem(501, "not_supported");
    let without = post("/charges").header("early-data", "1");
    let refused = unsupported.send(without).await;
    refused.is_problem(425, "too_early");
}

/// A service that names GET among the methods that keys count for says that it does more than read.
#[tokio::test]
async fn s_115_a_read_that_keys_count_for_is_too_early_without_one() {
    let rules = Rules::ietf().key(Presence::Optional).methods([Method::GET]);
    let shop = Shop::new(rules.early_data(EarlyData::WithKey));
    let early = || {
        let ask = Ask::new(Method::GET, "/charges");
        ask.header("early-data", "1")
    };
    let refused = shop.send(early()).await;
    refused.is_problem(425, "too_early");
    assert_eq!(shop.runs(), 0);
    shop.send(early().key("k")).await.is_fresh();
    let opened = early().header("upgrade", "websocket");
    shop.send(opened).await.is_fresh();
}

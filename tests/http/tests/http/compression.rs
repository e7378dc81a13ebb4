//! A7: compression inside of the layer, where it does not belong.

use axum::body::Body;
use http::{
    Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use idempotent_runtime::http::{HeaderPolicy, Rules};

use crate::{
    harness::{Ask, Shop, charge, with_field},
    said::warnings_of,
};

#[tokio::test]
async fn s_93_compression_inside_of_the_layer_is_warned_of_once_a_route() {
    let sent = |name: &'static str, coding: Option<&'static str>| async move {
        let shop = Shop::layered(
            |layer| layer.name(name),
            move |_, _| async move {
                let response = Response::new(Body::from("receipt"));
                match coding {
                    Some(coding) => with_field(response, "content-encoding", coding),
                    None => response,
                }
            },
        );
        let twice = async {
            shop.send(charge()).await.is_fresh();
            shop.send(charge().caller("B")).await.is_fresh();
        };
        warnings_of(name, twice).await.1
    };

    let warnings = sent("compressed-inside", Some("gzip")).await;

    let advice = "put compression outside of the layer";
    assert_eq!(warnings.matches(advice).count(), 1, "{warnings}");
    assert_eq!(sent("not-compressed", None).await, "");
}

/// A shop whose responses are compressed.
fn compressed(rules: Rules) -> Shop {
    Shop::with(rules, |_, _| async {
        let response = Response::new(Body::from("compressed"));
        with_field(response, "content-encoding", "gzip")
    })
}

fn accepting(accepted: &str) -> Ask {
    charge().header("accept-encoding", accepted)
}

#[tokio::test]
async fn s_93_a_stored_coding_is_not_given_to_who_cannot_read_it() {
    let shop = compressed(Rules::ietf());
    let first = shop.send(accepting("gzip")).await;
    for accepted in ["br, gzip;q=0.5", "*", "*;q=0, gzip", "br;q=0, *;q=0.1"] {
        shop.send(accepting(accepted)).await.replays(&first);
    }
    for accepted in [
        "br",
        "gzip;q=0",
        "identity",
        "*;q=0",
        "gzip;q=0, *",
        "*, GZIP;Q=0.000",
        "identity;q=0",
    ] {
        shop.refuses(accepting(accepted), 409, "result_unavailable")
            .await;
    }
    shop.refuses(accepting(""), 409, "result_unavailable").await;
    assert_eq!(shop.runs(), 1);
}

/// RFC 9110, section 12.5.3: without the field any coding is acceptable. The first request was
/// answered so, too.
#[tokio::test]
async fn s_93_who_names_no_coding_is_given_the_one_that_is_stored() {
    let shop = compressed(Rules::ietf());

    shop.keeps(charge()).await;
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_93_who_is_to_read_a_body_of_several_codings_accepts_each_of_them() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        let response = Response::new(Body::from("compressed twice"));
        let once = with_field(response, "content-encoding", "gzip");
        with_field(once, "content-encoding", "br, identity")
    });
    let first = shop.send(charge()).await;
    for accepted in ["br, gzip", "gzip, *", "*, identity;q=0"] {
        shop.send(accepting(accepted)).await.replays(&first);
    }
    for accepted in ["gzip", "br", "br;q=0, *"] {
        shop.refuses(accepting(accepted), 409, "result_unavailable")
            .await;
    }
}

/// Without the field, no client could read the body.
#[tokio::test]
async fn s_80_s_93_a_replay_tells_the_coding_of_its_body_whatever_fields_are_kept() {
    for policy in [
        HeaderPolicy::only([CONTENT_TYPE]),
        HeaderPolicy::new().leave_out(CONTENT_ENCODING),
    ] {
        let shop = compressed(Rules::ietf().headers(policy));
        let first = shop.keeps(accepting("gzip")).await;
        assert_eq!(first.headers[CONTENT_ENCODING], "gzip");
        shop.refuses(accepting("br"), 409, "result_unavailable")
            .await;
        assert_eq!(shop.runs(), 1);
    }
}

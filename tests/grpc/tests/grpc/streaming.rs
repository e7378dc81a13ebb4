//! A9: streaming methods, which are not guarded.

use http::uri::PathAndQuery;
use idempotent_runtime::http::Rules;
use tonic::Code;
use tonic_types::StatusExt;

use crate::harness::{PLACE, Text, WATCH, open, order};

#[tokio::test]
async fn s_117_a_method_that_is_not_named_passes_with_any_key() {
    let shop = open(Rules::grpc_unary());
    for _ in 0..2 {
        let path = PathAndQuery::from_static(WATCH);
        let watch = shop
            .client()
            .await
            .server_streaming(order("all"), path, Text)
            .await;
        let watch = watch.expect("it is watched");
        assert!(!watch.metadata().contains_key("idempotent-replayed"));
        let event = watch.into_inner().message().await.expect("it goes on");
        assert_eq!(event.expect("there is one"), "event");
    }
    assert_eq!(shop.orders.runs(), 2);
    assert_eq!(shop.store.round_trips(), 0);
}

#[tokio::test]
async fn s_117_a_stream_of_messages_to_a_guarded_method_is_refused() {
    let shop = open(Rules::grpc_unary());
    let path = PathAndQuery::from_static(PLACE);
    let two = || tokio_stream::iter(["book".to_owned(), "pen".to_owned()]);
    let request = order("").map(|_| two());

    let status = shop
        .client()
        .await
        .client_streaming(request, path, Text)
        .await;

    let status = status.expect_err("it is no unary call");
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    let details = status.get_error_details();
    let info = details.error_info().expect("it says what it is");
    assert_eq!(info.reason, "IDEMPOTENCY_NOT_SUPPORTED");
    assert_eq!(shop.orders.runs(), 0);
    assert_eq!(shop.store.round_trips(), 0);
}

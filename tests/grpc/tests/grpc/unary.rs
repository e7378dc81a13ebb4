//! A9: unary calls, their retries, and refusals in statuses of gRPC.

use std::time::Duration;

use idempotent_runtime::{
    http::{Rules, ServerErrors},
    store::StoreErrorKind,
};
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt;

use crate::harness::{Shop, open, order, with};

/// It is a replay of `first`, with its message and its metadata.
#[track_caller]
fn replays(again: &Response<String>, first: &Response<String>) {
    assert!(!first.metadata().contains_key("idempotent-replayed"));
    assert_eq!(
        again.metadata().get("idempotent-replayed").expect("a mark"),
        "true"
    );
    assert_eq!(again.get_ref(), first.get_ref());
    assert_eq!(
        again.metadata().get("seen-key"),
        first.metadata().get("seen-key")
    );
}

/// It is a refusal of the layer's, by that code, and gives its details.
#[track_caller]
fn is_refused(status: Status, code: Code, reason: &str) -> tonic_types::ErrorDetails {
    assert_eq!(status.code(), code, "{status:?}");
    let details = status.get_error_details();
    let info = details.error_info().expect("it says what it is");
    assert_eq!(
        (info.reason.as_str(), info.domain.as_str()),
        (reason, "idempotent-runtime")
    );
    assert!(!status.message().is_empty());
    assert!(!status.metadata().contains_key("idempotent-replayed"));
    details
}

async fn fails_precondition(shop: &Shop, order: Request<String>, reason: &str) {
    let status = shop.fails(order).await;
    is_refused(status, Code::FailedPrecondition, reason);
}

#[tokio::test]
async fn s_116_a_retry_gets_the_message_and_the_metadata_of_the_first_call() {
    let shop = open(Rules::grpc_unary());
    let first = shop.placed(order("book")).await;
    assert_eq!(first.get_ref(), "receipt 1 for book");
    assert_eq!(
        first.metadata().get("seen-key").expect("the handler's own"),
        "k"
    );

    let again = shop.placed(order("book")).await;

    replays(&again, &first);
    let other = shop.place(with("caller", "B", order("book"))).await;
    assert_eq!(other.expect("it is placed").get_ref(), "receipt 2 for book");
    assert_eq!(shop.orders.runs(), 2);
}

#[tokio::test]
async fn s_116_a_status_of_the_handlers_is_an_outcome() {
    let shop = open(Rules::grpc_unary());
    for has_run in [false, true] {
        let status = shop.fails(order("unknown article")).await;
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "100 % unknown in run 1");
        let mark = status.metadata().get("idempotent-replayed");
        assert_eq!(mark.is_some(), has_run);
    }
    assert_eq!(shop.orders.runs(), 1);
}

#[tokio::test]
async fn j18_a_status_of_failure_that_is_kept_undoes_the_steps_of_its_handler() {
    let shop = open(Rules::grpc_unary());
    for _ in 0..2 {
        let status = shop.fails(order("too heavy a parcel")).await;
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(status.message(), "it is too heavy");
        assert_eq!((shop.orders.runs(), shop.orders.cancelled()), (1, 1));
    }
}

#[tokio::test]
async fn j18_a_message_undoes_no_step_of_its_handler() {
    let shop = open(Rules::grpc_unary());
    for _ in 0..2 {
        shop.placed(order("in a parcel")).await;
    }
    assert_eq!((shop.orders.runs(), shop.orders.cancelled()), (1, 0));
}

#[tokio::test]
async fn s_116_what_was_not_begun_is_released_and_what_failed_is_up_to_the_rules() {
    let shop = open(Rules::grpc_unary());
    for run in 1..=2 {
        let status = shop.fails(order("sold out today")).await;
        assert_eq!(status.message(), format!("sold out in run {run}"));
    }
    for (errors, again_is) in [
        (ServerErrors::Replay, (Code::Internal, "broken in run 1")),
        (ServerErrors::Release, (Code::Internal, "broken in run 2")),
        (ServerErrors::Uncertain, (Code::FailedPrecondition, "")),
    ] {
        let shop = open(Rules::grpc_unary().server_errors(errors));
        let first = shop.fails(order("broken shelf")).await;
        assert_eq!(first.message(), "broken in run 1");
        let again = shop.fails(order("broken shelf")).await;
        match again_is {
            (Code::FailedPrecondition, _) => {
                let reason = "IDEMPOTENCY_OUTCOME_UNKNOWN";
                let details = is_refused(again, Code::FailedPrecondition, reason);
                let info = details.error_info().expect("it says what it is");
                assert_eq!(info.metadata["key_action"], "keep");
                assert!(info.metadata["operation_ref"].starts_with("op_"));
            }
            (code, message) => assert_eq!((again.code(), again.message()), (code, message)),
        }
    }
}

#[tokio::test]
async fn s_116_a_mark_among_the_extensions_is_the_handlers_word() {
    let shop = open(Rules::grpc_unary());
    let first = shop.place(order("second hand")).await;
    assert_eq!(first.expect("it is answered").get_ref(), "perhaps");
    fails_precondition(&shop, order("second hand"), "IDEMPOTENCY_OUTCOME_UNKNOWN").await;
    assert_eq!(shop.orders.runs(), 1);
}

#[tokio::test]
async fn s_116_a_panic_is_an_internal_error_and_an_outcome() {
    let shop = open(Rules::grpc_unary());
    for _ in 0..2 {
        let status = shop.fails(order("wooden nickel")).await;
        assert_eq!(status.code(), Code::Internal);
    }
    assert_eq!(shop.orders.runs(), 1);
}

#[tokio::test]
async fn s_116_a_key_that_is_missing_or_malformed_is_an_invalid_argument() {
    let shop = open(Rules::grpc_unary());
    let missing = shop.fails(Request::new("book".to_owned())).await;
    let details = is_refused(missing, Code::InvalidArgument, "IDEMPOTENCY_KEY_MISSING");
    assert!(details.retry_info().is_none());
    let malformed = with("idempotency-key", "\"k", Request::new("book".to_owned()));
    let malformed = shop.fails(malformed).await;
    let details = is_refused(malformed, Code::InvalidArgument, "IDEMPOTENCY_KEY_INVALID");
    let info = details.error_info().expect("it says what it is");
    assert_eq!(info.metadata["reason"], "unterminated");
    let nobody = with("caller", "nobody", order("book"));
    let nobody = shop.fails(nobody).await;
    let reason = "IDEMPOTENCY_SCOPE_UNRESOLVED";
    is_refused(nobody, Code::Unauthenticated, reason);
    assert_eq!(shop.orders.runs(), 0);
}

#[tokio::test]
async fn s_116_another_message_with_the_key_is_a_failed_precondition() {
    let shop = open(Rules::grpc_unary());
    let first = shop.placed(order("book")).await;
    fails_precondition(&shop, order("pen"), "IDEMPOTENCY_KEY_REUSED").await;
    let again = shop.placed(order("book")).await;
    replays(&again, &first);
    assert_eq!(shop.orders.runs(), 1);
}

#[tokio::test]
async fn s_116_a_retry_while_the_first_call_runs_is_aborted_and_told_when_to_come_again() {
    let shop = open(Rules::grpc_unary().retry_after("3s"));
    let slow = shop.place(order("slow"));
    let others = async {
        shop.orders.gate.arrived(1).await;
        let early = shop.fails(order("slow")).await;
        let details = is_refused(early, Code::Aborted, "IDEMPOTENCY_REQUEST_IN_PROGRESS");
        let retry = details.retry_info().expect("it says when");
        assert_eq!(retry.retry_delay, Some(Duration::from_secs(3)));
        shop.orders.gate.open();
    };
    let (first, ()) = tokio::join!(slow, others);
    let again = shop.placed(order("slow")).await;
    replays(&again, &first.expect("it is placed"));
    assert_eq!(shop.orders.runs(), 1);
}

#[tokio::test]
async fn s_116_nothing_runs_while_the_store_is_unavailable() {
    let shop = open(Rules::grpc_unary());
    shop.store.outage(StoreErrorKind::Unavailable);
    let refused = shop.fails(order("book")).await;
    let details = is_refused(refused, Code::Unavailable, "IDEMPOTENCY_STORE_UNAVAILABLE");
    let retry = details.retry_info().expect("it says when");
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(5)));
    assert_eq!(shop.orders.runs(), 0);
    shop.store.heal();
    shop.placed(order("book")).await;
}

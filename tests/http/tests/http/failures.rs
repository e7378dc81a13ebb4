//! A8: handlers that fail, leases that end, stores that are out of reach.

use std::{fs, path::Path, time::Duration};

use axum::{BoxError, body::Body, response::IntoResponse as _};
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use idempotent_runtime::{
    Idempotency, OnCrash, OnOutage, RawOutcome, Status,
    http::{ReplayHint, Rules, ServerErrors, UnstorableResponse},
    store::StoreErrorKind,
    testing::{Fault, Gate, ManualClock, On, StoreOperation},
};
use tower::{Layer, ServiceExt, service_fn};

use crate::harness::{Shop, charge, held, layer_over, marked, on_a_clock, stream, vanished};

fn panicking(rules: Rules) -> Shop {
    Shop::with(rules, |_, _| async { panic!("the handler of a test") })
}

#[tokio::test]
async fn s_102_a_panic_is_a_failure() {
    let shop = panicking(Rules::ietf());
    let first = shop.send(charge()).await;
    first.is_problem(500, "handler_failed");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);

    let shop = panicking(Rules::ietf().server_errors(ServerErrors::Release));
    for _ in 0..2 {
        shop.send(charge()).await.is_problem(500, "handler_failed");
    }
    assert_eq!(shop.runs(), 2);

    let shop = panicking(Rules::ietf().server_errors(ServerErrors::Uncertain));
    shop.send(charge()).await.is_problem(500, "handler_failed");
    shop.send(charge()).await.is_problem(409, "outcome_unknown");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_103_an_error_of_the_service_is_a_failure() {
    for (errors, on_crash, again_is) in [
        (ServerErrors::Replay, OnCrash::Rerun, 500),
        (ServerErrors::Release, OnCrash::Rerun, 0),
        // It is the service's word, and no crash.
        (ServerErrors::Release, OnCrash::Uncertain, 0),
        (ServerErrors::Uncertain, OnCrash::Rerun, 409),
    ] {
        let rules = Rules::ietf().server_errors(errors).on_crash(on_crash);
        let layer = layer_over(&Idempotency::memory(), |layer| layer.rules(rules));
        let fails =
            service_fn(|_| async { Err::<Response<Empty<bytes::Bytes>>, _>("no connection") });
        let service = layer.layer(fails);
        let send = || service.clone().oneshot(Request::<Body>::from(charge()));

        let first = send().await.map(|response| response.status().as_u16());
        let again = send().await.map(|response| response.status().as_u16());

        assert_eq!(first, Err("no connection"));
        assert_eq!(again.unwrap_or(0), again_is, "{errors:?}");
    }
}

#[tokio::test]
async fn s_104_a_vanished_process_binds_a_key_for_one_lease() {
    for (on_crash, runs) in [(OnCrash::Rerun, 2), (OnCrash::Uncertain, 1)] {
        let (shop, gate, clock) = on_a_clock(Rules::ietf().on_crash(on_crash).lease("5s"));
        let first = vanished(&shop, &gate, charge()).await;
        shop.refuses(charge(), 409, "request_in_progress").await;

        clock.advance(Duration::from_secs(6));

        let again = shop.send(charge()).await;
        match on_crash {
            OnCrash::Rerun => again.is_fresh(),
            _ => drop(again.is_problem(409, "outcome_unknown")),
        }
        assert_eq!(shop.runs(), runs);
        first.abort();
    }
}

/// A shop on a clock, whose responses are not kept.
fn sending_a_long_receipt(
    rules: Rules,
    is_known: bool,
    mark: Option<ReplayHint>,
) -> (Shop, ManualClock) {
    Shop::timed(rules, move |_, _| async move {
        let receipt = "a long receipt";
        let response = Response::new(match is_known {
            true => Body::from(receipt),
            false => stream::<BoxError>(vec![Ok(receipt.into())]),
        });
        marked(response, mark)
    })
}

/// The fate of the only record when its holder vanishes, as the store says it.
async fn on_crash(shop: &Shop) -> OnCrash {
    let records = shop.records().await;
    assert_eq!(records.len(), 1);
    records[0].1.on_crash
}

/// The client has a status, and a part of a body that is not kept.
#[tokio::test]
async fn s_88_s_90_a_process_that_vanishes_while_it_sends_a_response_has_answered() {
    const LEASE: Duration = Duration::from_secs(5);
    let rules = || Rules::ietf().lease("5s").max_response(3);
    let again = || rules().unrepeatable(UnstorableResponse::RunAgain);
    for (rules, is_known, mark, runs) in [
        (rules(), false, None, 1),
        (rules(), true, None, 1),
        (rules(), true, Some(ReplayHint::Uncertain), 1),
        (again(), true, None, 2),
    ] {
        let (shop, clock) = sending_a_long_receipt(rules, is_known, mark);
        let sent = shop.begin(charge()).await;
        assert_eq!(sent.status(), 200);

        // To the store, a process is gone if nothing more is heard of it.
        shop.lose_heartbeats();
        clock.advance(LEASE * 2);
        let answer = shop.send(charge()).await;

        match runs {
            1 => drop(answer.is_problem(409, "outcome_unknown")),
            _ => answer.is_fresh(),
        }
        assert_eq!(shop.runs(), runs);
        drop(sent);
    }
}

#[tokio::test]
async fn s_88_a_store_that_does_not_listen_is_told_of_an_answer_again_and_holds_up_no_client() {
    for fault in [Fault::LoseRequest, Fault::Delay(Gate::new())] {
        let (shop, clock) = sending_a_long_receipt(Rules::ietf(), false, None);
        shop.store.fault(StoreOperation::Heartbeat, On::Next, fault);
        let router = shop.router.clone();
        let sent = tokio::spawn(router.oneshot(Request::<Body>::from(charge())));
        while shop.store.calls(StoreOperation::Heartbeat) == 0 {
            tokio::task::yield_now().await;
        }

        for _ in 0..10 {
            clock.advance(Duration::from_millis(100));
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }

        assert!(sent.is_finished(), "a second is over");
        let sent = sent.await.expect("no panic");
        let sent = sent.expect("a router does not fail");
        assert_eq!(sent.status(), 200);
        let told = async {
            while on_crash(&shop).await != OnCrash::Uncertain {
                tokio::task::yield_now().await;
            }
        };
        let told = tokio::time::timeout(Duration::from_secs(30), told).await;
        told.expect("it is told, in the background or not");
        drop(sent);
    }
}

#[tokio::test]
async fn s_104_a_response_that_is_only_to_be_recorded_is_treated_as_the_rules_say() {
    let (shop, clock) = sending_a_long_receipt(Rules::ietf(), true, None);
    shop.store
        .fault(StoreOperation::Ending, On::Every, Fault::LoseRequest);

    let first = shop.send(charge()).await;

    first.is_fresh();
    while shop.store.calls(StoreOperation::Heartbeat) == 0 {
        clock.await_sleepers(1).await;
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(on_crash(&shop).await, OnCrash::Rerun);
}

#[tokio::test]
async fn s_105_a_slow_handler_keeps_its_key() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf().lease("30s"));
    let first = held(&shop, &gate, charge()).await;
    for beats in 1..=6 {
        clock.await_sleepers(1).await;
        clock.advance(Duration::from_secs(10));
        while shop.store.calls(StoreOperation::Heartbeat) < beats {
            tokio::task::yield_now().await;
        }
    }
    shop.refuses(charge(), 409, "request_in_progress").await;
    gate.open();
    let first = first.await.expect("it is answered");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_106_who_lost_its_lease_gives_the_response_that_won() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf());
    let stale = vanished(&shop, &gate, charge()).await;
    clock.advance(Duration::from_secs(31));
    let winner = shop.send(charge()).await;
    assert_eq!(winner.body, "receipt 2");

    gate.open();

    let stale = stale.await.expect("it is answered");
    assert_eq!(stale.body, "receipt 2", "one outcome");
    assert!(!stale.is_replay(), "its client asked only once");
    shop.send(charge()).await.replays(&winner);
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_107_nothing_runs_without_a_store_unless_that_is_asked_for() {
    let shop = Shop::new(Rules::ietf());
    shop.store.outage(StoreErrorKind::Unavailable);
    let refused = shop.send(charge()).await;
    refused.is_problem(503, "store_unavailable");
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(shop.runs(), 0);
    shop.store.heal();
    shop.send(charge()).await.is_fresh();

    let open = Shop::new(Rules::ietf().on_outage(OnOutage::Open));
    open.store.outage(StoreErrorKind::Unavailable);
    for _ in 0..2 {
        open.send(charge()).await.is_fresh();
    }
    assert_eq!(open.runs(), 2);
}

/// The attempt before it may have been done, and no look at the store was possible.
#[tokio::test]
async fn s_107_what_runs_without_the_store_is_no_outcome_where_it_did_nothing() {
    let open = Rules::ietf().on_outage(OnOutage::Open);
    let shop = Shop::with(open, |_, _| async {
        (StatusCode::CONFLICT, ReplayHint::Retryable, "sold out").into_response()
    });
    shop.store.outage(StoreErrorKind::Unavailable);
    let answer = shop.send(charge()).await;
    assert_eq!(answer.headers["idempotency-status"], "open");
}

#[tokio::test]
async fn s_108_a_store_that_dies_meanwhile_costs_nobody_the_response() {
    let shop = Shop::new(Rules::ietf());
    shop.store.fault(
        StoreOperation::Ending,
        On::Every,
        Fault::Fail(StoreErrorKind::Unavailable),
    );

    let first = shop.send(charge()).await;

    first.is_fresh();
    shop.refuses(charge(), 409, "request_in_progress").await;
    shop.store.heal();
    while let Ok(Status::Processing { .. }) =
        shop.idem.lookup("http", Some(&("caller", "A")), "k").await
    {
        tokio::task::yield_now().await;
    }
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_109_what_cannot_be_read_is_neither_given_nor_run_again() {
    for damaged in [&b""[..], b"garbage", b"\xff\x01"] {
        let shop = Shop::new(Rules::ietf());
        shop.send(charge()).await.is_fresh();
        let records = shop.records().await;
        let (id, record) = &records[0];
        shop.overwrite(id, record, RawOutcome::value(damaged)).await;

        shop.send(charge()).await.is_problem(409, "outcome_unknown");

        assert_eq!(shop.runs(), 1);
        let kept = shop.idem.store().load(id).await.expect("the store answers");
        assert_eq!(
            kept.record.expect("it is kept").outcome,
            Some(RawOutcome::value(damaged))
        );
    }
}

#[test]
fn the_front_end_reads_no_clock() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = here.join("../../idempotent-runtime/src/http");
    let mut folders = vec![sources];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("it is text");
            read += 1;
            for clock in ["SystemTime", "Instant", "tokio::time"] {
                assert!(!text.contains(clock), "{} reads {clock}", path.display());
            }
        }
    }
    assert!(read > 20);
}

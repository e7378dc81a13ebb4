//! A5: seals that tell one record from another.

use http::{Response, StatusCode};
use idempotent_runtime::{
    BoxError,
    http::{KeyScope, LayerBuilder, ReplayHint, Rules, Scope, Seal},
    identity::RecordId,
};

use crate::harness::{Shop, charge, marked, receipt};

/// Stands for an encryption that authenticates: it opens nothing that was sealed for another
/// record.
#[derive(Debug)]
struct Bound;

impl Seal for Bound {
    fn seal(&self, record: &RecordId, response: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        Ok([record.as_bytes(), &response[..]].concat())
    }

    fn open(&self, record: &RecordId, sealed: &[u8]) -> Result<Vec<u8>, BoxError> {
        let opened = sealed.strip_prefix(record.as_bytes());
        Ok(opened.ok_or("it was sealed for another record")?.to_vec())
    }
}

/// A shop that says which run it was. In the third run, it also says that it is unknown what
/// happened.
fn sealed(key_scope: KeyScope) -> Shop {
    let rules = Rules::ietf().key_scope(key_scope);
    let set_up = |layer: LayerBuilder<Scope>| layer.rules(rules).seal(Bound);
    Shop::layered(set_up, |run, _| async move {
        marked(receipt(run), (run == 3).then_some(ReplayHint::Uncertain))
    })
}

#[tokio::test]
async fn s_72_a_response_that_was_sealed_for_another_record_is_not_opened() {
    for key_scope in [KeyScope::Caller, KeyScope::Route] {
        let shop = sealed(key_scope);
        let (ask, other) = (charge(), charge().caller("B"));
        let first = shop.send(ask.clone()).await;
        let others = shop.send(other.clone()).await;
        shop.send(ask.clone()).await.replays(&first);
        shop.send(other.clone()).await.replays(&others);

        exchange_outcomes(&shop).await;

        for ask in [ask, other] {
            shop.send(ask).await.is_problem(409, "outcome_unknown");
        }
        assert_eq!(shop.runs(), 2);
    }
}

#[tokio::test]
async fn s_72_what_somebody_settles_is_sealed_for_its_record() {
    let shop = sealed(KeyScope::Caller);
    for caller in ["A", "B", "C"] {
        shop.send(charge().caller(caller)).await.is_fresh();
    }
    let settle = shop.layer.settle(Some("C"), "k").expect("these are keys");
    let settled = settle.with_response(Response::new("receipt 99")).await;
    assert!(settled.is_ok(), "{settled:?}");

    let again = shop.send(charge().caller("C")).await;

    assert!(again.is_replay());
    assert_eq!(
        (again.status, &again.body[..]),
        (StatusCode::OK, &b"receipt 99"[..])
    );
}

/// Gives each of two records the outcome of the other, as a program that writes to the store can
/// do.
async fn exchange_outcomes(shop: &Shop) {
    let records = shop.records().await;
    let [(first, one), (second, other)] = &records[..] else {
        panic!("there are two records, not {}", records.len())
    };
    for (id, record, of) in [(first, one, other), (second, other, one)] {
        let outcome = of.outcome.clone().expect("each is recorded");
        shop.overwrite(id, record, outcome).await;
    }
}

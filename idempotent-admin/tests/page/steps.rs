//! A step and a number are settled as they were seen.

use http::StatusCode;
use idempotent_runtime::{Error, Idempotency, Unrecorded, identity::RecordId, step};

use crate::{acts::app, forms::Form, shop::get};

/// Nobody knows what an error of a step means.
fn unknown(_: &Error) -> Unrecorded {
    Unrecorded::Uncertain
}

/// A call of whose step nobody knows whether it happened.
async fn in_doubt(idem: &Idempotency, key: &str) -> RecordId {
    let call = idem.call("trips.book").key(key).uncertain_errors();
    let body = async |_| {
        let silent = async |_| Err::<String, _>(Error::InvalidPolicy("no answer"));
        step("hotel", silent).on_error(unknown).run().await
    };
    call.run(body).await.expect_err("the hotel is silent");
    let records = idem.records().operation("trips.book").key(key);
    records.page(1).await.expect("a page").rows[0].id
}

#[tokio::test]
async fn a_step_is_settled_as_it_was_seen() {
    for (how, expected) in [("value", "room 7"), ("not_done", "room 9")] {
        let idem = Idempotency::memory();
        let app = app(&idem);
        let id = in_doubt(&idem, "trip").await;
        let record = get(&app, &format!("/records/{}", id.to_hex())).await;
        let link = record.link("/step?step=");
        let form = Form::opened(&app, &format!("/records/{link}")).await;
        let form = form
            .with("how", how)
            .with("value", "\"room 7\"")
            .with("reason", "r");
        let other = form.clone().with("step", &"7".repeat(64)).send(&app).await;
        assert_eq!(
            other.status,
            StatusCode::FORBIDDEN,
            "the token is for one step"
        );
        let done = form.send(&app).await;
        assert_eq!(done.status, StatusCode::OK, "{how}: {}", done.text);
        let call = idem.call("trips.book").key("trip").uncertain_errors();
        let body = async |_| {
            let body = async |_| Ok::<_, Error>("room 9".to_owned());
            step("hotel", body).on_error(unknown).run().await
        };
        assert_eq!(call.run(body).await.expect("it goes on"), expected, "{how}");
    }
    let idem = Idempotency::memory();
    let (app, id) = (app(&idem), in_doubt(&idem, "trip").await);
    let name = idem.steps(id).await.expect("steps")[0].name;
    let step = RecordId::from_bytes(*name.as_bytes()).to_hex();
    let path = format!("/records/{}/step?step={step}", id.to_hex());
    let form = Form::opened(&app, &path).await.with("how", "value");
    let settle = idem.settle_id(id).await.expect("a record").step_id(name);
    settle
        .by("zoe")
        .with_value(&"room 8")
        .await
        .expect("it is settled");
    let moved = form.with("value", "7").with("reason", "r").send(&app).await;
    assert_eq!(moved.status, StatusCode::CONFLICT);
    moved.has("written by zoe");
    let id = id.to_hex();
    for path in [
        format!("/records/{id}/step"),
        format!("/records/{id}/step?step=7"),
    ] {
        assert_eq!(
            get(&app, &path).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_number_is_settled_at_which_a_stream_stops() {
    for (how, next) in [("value", 2), ("error", 2), ("done", 2), ("not_done", 1)] {
        let idem = Idempotency::memory();
        let app = app(&idem);
        let stream = || idem.sequence("ledger.apply", "eur").first(1);
        let silent = stream().number(1).uncertain_errors();
        let failed = silent.run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")));
        failed.await.expect_err("it fails");
        let list = get(&app, "/records?state=uncertain").await;
        let record = get(&app, &format!("/{}", list.link("records/"))).await;
        record.lacks("/settle\"");
        let form = Form::opened(&app, &format!("/records/{}", record.link("/number"))).await;
        let form = form.with("how", how).with("value", "7").with("reason", "r");
        let skipped = form.clone().with("how", "skip").send(&app).await;
        assert_eq!(
            skipped.status,
            StatusCode::CONFLICT,
            "only a parked one is skipped"
        );
        let done = form.send(&app).await;
        assert_eq!(done.status, StatusCode::OK, "{how}: {}", done.text);
        let applied = stream()
            .number(next)
            .run(async |_| Ok::<_, Error>(next))
            .await;
        let decision = applied.expect("it is applied");
        assert_eq!(decision.into_value(), Some(next), "{how}");
    }
}

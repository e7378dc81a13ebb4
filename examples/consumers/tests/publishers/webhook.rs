//! A webhook.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, header::RETRY_AFTER},
    response::AppendHeaders,
    routing::post,
};
use consumer_examples::{network::between, publishers::webhook::WebhookPublisher};
use idempotent_runtime::{
    outbox::{Envelope, Message, PublishError, Publisher as _},
    testing::Disconnect,
};
use tokio::{net::TcpListener, time::sleep};

use crate::envelopes::{BATCH, batch, envelopes, nowhere};

/// A receiver, and all that it was sent.
#[derive(Clone, Default)]
struct Receiver {
    received: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Receiver {
    /// Starts it, and tells its address. The payload is the status of its answer, and behind it the
    /// value of `Retry-After`.
    async fn start(&self) -> String {
        let received = Arc::clone(&self.received);
        let answer = async move |headers: HeaderMap, body: Bytes| {
            let said = String::from_utf8_lossy(&body).into_owned();
            let (said, retry_after) = said.split_once(' ').unwrap_or((&said, ""));
            let retry_after = (!retry_after.is_empty()).then(|| retry_after.to_owned());
            let said = said.parse().ok();
            let mut received = received.lock().expect("nobody panics");
            received.push((headers, body));
            let status: u16 = said.filter(|status| *status >= 200).unwrap_or(204);
            let status = StatusCode::from_u16(status).expect("a status");
            let retry_after = retry_after.map(|seconds| [(RETRY_AFTER, seconds)]);
            (status, AppendHeaders(retry_after.into_iter().flatten()))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new().route("/hook", post(answer));
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}/hook")
    }

    fn received(&self) -> Vec<(HeaderMap, Bytes)> {
        let mut received = self.received.lock().expect("nobody panics").clone();
        received.sort_by(|(_, one), (_, other)| one.cmp(other));
        received
    }
}

fn publisher(url: &str) -> WebhookPublisher {
    let http = reqwest::Client::builder();
    WebhookPublisher::new(url, http).expect("a client")
}

fn one(payload: &'static str) -> Vec<Envelope> {
    envelopes(&[Message::raw("orders", payload)])
}

#[tokio::test]
async fn a_batch_arrives_with_its_ids() {
    let receiver = Receiver::default();
    let publisher = publisher(&receiver.start().await);
    let batch = batch("orders");
    assert_eq!(publisher.publish(&batch).await, vec![Ok(()); BATCH]);
    let received = receiver.received();
    assert_eq!(received.len(), BATCH);
    for ((headers, payload), envelope) in received.iter().zip(&batch) {
        let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        assert_eq!(*payload, envelope.payload);
        let id = format!("\"{}\"", envelope.id);
        assert_eq!(header("Idempotency-Key"), Some(id));
        assert_eq!(header("Outbox-Topic").as_ref(), Some(&envelope.topic));
        assert_eq!(header("Outbox-Key"), envelope.key);
        let number = envelope.number.map(|number| number.to_string());
        assert_eq!(header("Outbox-Number"), number);
        assert_eq!(header("Colour").as_ref(), Some(&envelope.headers[0].1));
    }
}

#[tokio::test]
async fn each_answer_is_told_at_its_place_in_the_batch() {
    let receiver = Receiver::default();
    let publisher = publisher(&receiver.start().await);
    let answers = ["200", "201", "404", "422", "429", "500", "503"];
    let messages = answers.map(|status| Message::raw("orders", status));
    let results = publisher.publish(&envelopes(&messages)).await;
    let rejected = |reason: &str| Err(PublishError::Rejected(reason.to_owned()));
    assert_eq!(
        results,
        [
            Ok(()),
            Ok(()),
            rejected("404 Not Found"),
            rejected("422 Unprocessable Entity"),
            Err(PublishError::Outage),
            Err(PublishError::Unknown),
            Err(PublishError::Outage),
        ]
    );
}

#[tokio::test]
async fn mend_11_an_expired_credential_and_a_busy_receiver_reject_no_message() {
    let receiver = Receiver::default();
    let publisher = publisher(&receiver.start().await);
    let answers = ["401", "403", "429 7", "503 7", "503 later", "413"];
    let messages = answers.map(|answer| Message::raw("orders", answer));
    let results = publisher.publish(&envelopes(&messages)).await;
    let later = Err(PublishError::RetryAfter(Duration::from_secs(7)));
    let too_long = PublishError::Rejected("413 Payload Too Large".to_owned());
    assert_eq!(
        results,
        [
            Err(PublishError::Outage),
            Err(PublishError::Outage),
            later.clone(),
            later,
            Err(PublishError::Outage),
            Err(too_long),
        ]
    );
}

/// The receiver may have been put right meanwhile.
#[tokio::test]
async fn a_message_that_was_refused_is_sent_again_with_its_id() {
    let receiver = Receiver::default();
    let publisher = publisher(&receiver.start().await);
    let batch = one("422");
    for _ in 0..2 {
        let results = publisher.publish(&batch).await;
        assert!(crate::envelopes::is_refused(&results[0]), "{results:?}");
    }
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    let key = |place: usize| received[place].0.get("Idempotency-Key");
    assert!(key(0).is_some());
    assert_eq!(key(0), key(1));
}

#[tokio::test]
async fn a_receiver_that_is_away_is_an_outage() {
    let publisher = publisher(&format!("http://{}/hook", nowhere()));
    let results = publisher.publish(&batch("orders")).await;
    assert_eq!(results, vec![Err(PublishError::Outage); BATCH]);
}

#[tokio::test]
async fn a_lost_answer_is_not_known_and_the_message_goes_out_again() {
    let receiver = Receiver::default();
    let url = receiver.start().await;
    let (proxy, through) = between(&url).await.expect("a proxy");
    let publisher = publisher(&through);
    let batch = one("200");
    proxy.cut_next(Disconnect::BeforeAnswer);
    let results = publisher.publish(&batch).await;
    assert_eq!(results, [Err(PublishError::Unknown)]);
    while receiver.received().is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(publisher.publish(&batch).await, [Ok(())]);
    let received = receiver.received();
    let key = |place: usize| received[place].0.get("Idempotency-Key");
    assert_eq!(received.len(), 2);
    assert_eq!(key(0), key(1));
}

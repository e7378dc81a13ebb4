//! A topic and its messages pay for failures, by a clock that stands still.

use std::time::Duration;

use super::{super::builder::Settings, Envelope, Failures, LONGEST_ASKED, OnPoison, PublishError};

fn first_of(key: &str) -> Envelope {
    Envelope {
        id: format!("message of {key}"),
        topic: "orders".to_owned(),
        key: Some(key.to_owned()),
        number: Some(1),
        headers: Vec::new(),
        payload: bytes::Bytes::new(),
        traceparent: None,
        place: key.as_bytes().to_vec(),
        row: 1,
        attempts: 0,
    }
}

fn settings() -> Settings {
    Settings {
        lease: Duration::from_secs(30),
        publish_timeout: Duration::from_secs(30),
        budget: 10,
        on_poison: OnPoison::Park,
        pauses: (Duration::from_millis(50), Duration::from_secs(5)),
    }
}

#[tokio::test(start_paused = true)]
async fn mend_11_a_message_whose_receiver_asks_for_the_longest_pause_pays_in_the_end() {
    let (mut failures, settings) = (Failures::default(), settings());
    let asks = PublishError::RetryAfter(Duration::from_secs(24 * 60 * 60));
    let mut paid = 0;
    for _ in 0..4 {
        let mut batch = vec![first_of("busy"), first_of("sound")];
        assert!(
            failures.take_out(&mut batch).is_empty(),
            "the pause is over"
        );
        // Each has its turn.
        let mut has_more = true;
        while has_more {
            let (turn, more) = failures.part(batch.clone());
            batch.retain(|it| !turn.contains(it));
            has_more = more && !batch.is_empty();
            let is_busy = |it: &&Envelope| it.place == b"busy";
            let (busy, sound): (Vec<_>, Vec<_>) = turn.iter().partition(is_busy);
            let failed: Vec<_> = busy.into_iter().map(|it| (it, asks.clone())).collect();
            let pauses = failures.settle((&sound, Duration::ZERO), &failed, &settings);
            paid += pauses.iter().filter(|it| it.attempt.is_some()).count();
        }
        tokio::time::advance(LONGEST_ASKED + Duration::from_secs(1)).await;
    }
    assert!(paid > 0, "it keeps its topic waiting, and is never parked");
}

//! How long the client pauses where an answer says when to ask again.

use std::time::{Duration, SystemTime};

use idempotent_client::{ClientCall, ClientError};

use super::SECOND;
use crate::kit::{Ending, Server, answer, client, client_with, patient};

#[tokio::test]
async fn cl14_retry_after_is_never_cut_short() {
    for status in [429, 500, 503] {
        let server = Server::doing([answer(status).with("retry-after", "2"), answer(201)]).await;
        let client = client();
        client.pay(&server).await;
        let pauses = client.pauses.taken();
        assert_eq!(pauses.len(), 1, "{status}");
        assert!(
            pauses[0] >= 2 * SECOND && pauses[0] < 3 * SECOND,
            "{pauses:?}"
        );
    }
}

#[tokio::test]
async fn cl15_dates_nothing_and_nonsense_in_retry_after() {
    let now = SystemTime::now();
    let date = |moment| httpdate::fmt_http_date(moment);
    let least = Duration::from_millis(250);
    let rows = [
        (date(now + 30 * SECOND), 29 * SECOND, 31 * SECOND),
        (date(now - 30 * SECOND), least, SECOND),
        ("0".to_owned(), least, SECOND),
        ("soon".to_owned(), least, SECOND),
        ("-5".to_owned(), least, SECOND),
    ];
    for (value, shortest, longest) in rows {
        let busy = answer(503)
            .with("date", date(now))
            .with("retry-after", &value);
        let server = Server::doing([busy, answer(201)]).await;
        let client = client();
        client.pay(&server).await;
        let pause = client.pauses.taken()[0];
        assert!(pause >= shortest && pause <= longest, "{value}: {pause:?}");
    }
}

#[tokio::test]
async fn cl16_who_asks_for_too_long_a_pause_is_told_about() {
    // Longer than is waited out, and longer than the deadline leaves.
    for (longest, value) in [(60, 61), (3_600, 100)] {
        let busy = answer(503)
            .with("retry-after", value.to_string())
            .body("busy");
        let server = Server::doing([busy]).await;
        let limits = patient().longest_retry_after(longest * SECOND);
        let client = client_with(|keys| keys.limits(limits));
        let wish = ClientCall::new().deadline(100 * SECOND);
        let call = client.post(&server.url("/pay")).with_extension(wish);

        let ended = call.send().await;

        let ClientError::RetryLater { after, call, .. } = ended.ending() else {
            panic!("{ended:?}")
        };
        assert_eq!(*after, value * SECOND);
        assert!(client.pauses.taken().is_empty());
        let sent = server.keys()[0].clone().expect("a key");
        assert_eq!(sent, format!("\"{}\"", call.key.as_str()));
        let answer = call.answer.as_ref().expect("the last answer");
        assert_eq!(answer.body.as_deref(), Some(&b"busy"[..]));
    }
}

//! Errors of handlers that cannot be recorded, or not be read back.

use std::{fmt, io};

use idempotent_runtime::{
    Idempotency,
    consumer::{Consumer, DeadLetterReason},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Refused, assert_dead, assert_retry};

fn consumer() -> Consumer {
    let consumer = Idempotency::memory().consumer("billing");
    consumer.broker_retention("1d").build().expect("a consumer")
}

/// The type of the error in a later build.
#[derive(Debug, Serialize, Deserialize)]
struct Changed {
    code: String,
}

/// An error that is never stored.
#[derive(Debug, Serialize, Deserialize)]
enum Hidden {
    #[serde(skip)]
    Nested,
}

macro_rules! errors {
    ($($error:ty),*) => { $(
        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self:?}")
            }
        }
        impl std::error::Error for $error {}
    )* };
}
errors!(Changed, Hidden);

#[tokio::test]
async fn an_error_that_cannot_be_recorded_is_released() {
    let consumer = consumer();
    for _ in 0..2 {
        let message = consumer.message("m").without_payload().record_errors();
        let disposition = message.run(async |_| Err::<(), _>(Hidden::Nested)).await;
        assert_retry(disposition);
    }
}

#[tokio::test]
async fn a_recorded_error_that_cannot_be_read_back_is_a_dead_letter() {
    async fn fails<E>(consumer: &Consumer, error: E)
    where
        E: std::error::Error + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let message = consumer.message("m").without_payload().record_errors();
        let disposition = message.run(async |_| Err::<(), _>(error)).await;
        assert_dead(disposition, DeadLetterReason::Failed);
    }
    let consumer = consumer();
    fails(&consumer, Refused).await;
    let code = "a later build".to_owned();
    fails(&consumer, Changed { code }).await;

    let message = consumer.message("m").without_payload();
    let disposition = message.run(async |_| Ok::<_, io::Error>(())).await;
    assert_dead(disposition, DeadLetterReason::Failed);
}

#[tokio::test]
async fn a_redrive_does_not_take_another_message_s_effect_for_its_own() {
    let consumer = consumer();
    let run = async |payload: &str, redrive| {
        let message = consumer.message("m").redrive(redrive).payload(payload);
        message.run(async |_| Ok::<_, io::Error>(())).await
    };
    super::assert_ack(run("one", 0).await, false);
    assert_dead(run("other", 0).await, DeadLetterReason::KeyReused);
    assert_dead(run("other", 1).await, DeadLetterReason::KeyReused);
    super::assert_ack(run("one", 1).await, true);
}

#[tokio::test]
async fn a_redrive_does_not_run_what_is_uncertain() {
    let consumer = consumer();
    let message = consumer.message("m").without_payload().uncertain_errors();
    let lost = async |_| Err::<(), _>(io::Error::other("the answer is lost"));
    assert_dead(message.run(lost).await, DeadLetterReason::Uncertain);

    let again = consumer.message("m").redrive(1).without_payload();
    let again = again.run(async |_| -> io::Result<()> { panic!("it ran") });
    assert_dead(again.await, DeadLetterReason::Uncertain);
}

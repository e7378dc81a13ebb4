//! A publisher that calls a webhook over HTTP.
//!
//! The header `Idempotency-Key` has the message's id, and the receiver must honour it, as one with
//! the layer of `idempotent-runtime` does. The topic is a header, too.

use std::{sync::Arc, time::Duration};

use idempotent_client::{
    CallSummary, ClientCall, ClientError, ClientKey, IdempotencyKeys, Limits, MemoryJournal,
    Profile, journal::ClientJournal as _,
};
use idempotent_runtime::{
    Time,
    outbox::{Envelope, PublishError, Publisher},
};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use reqwest_middleware::{ClientWithMiddleware, Error, RequestBuilder};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::Failure;

const TOPIC: &str = "outbox-topic";
const KEY: &str = "outbox-key";
const NUMBER: &str = "outbox-number";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How many requests are under way at once.
const AT_ONCE: usize = 16;

/// How long a request may take. It is shorter than the relay's own time for a batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// Posts each message to one address.
pub struct WebhookPublisher {
    url: String,
    client: ClientWithMiddleware,
    journal: Arc<MemoryJournal>,
}

impl WebhookPublisher {
    pub fn new(url: &str, http: reqwest::ClientBuilder) -> Result<Self, Failure> {
        let journal = Arc::new(MemoryJournal::new());
        // The relay sends again, so that this client does not.
        let limits = Limits::default().attempts(1).deadline(PATIENCE);
        let keys = IdempotencyKeys::builder(Profile::ietf()).limits(limits);
        Ok(Self {
            url: url.to_owned(),
            client: keys.journal(Arc::clone(&journal)).client(http)?,
            journal,
        })
    }

    fn request(&self, envelope: &Envelope) -> Result<RequestBuilder, PublishError> {
        let key = ClientKey::new(&envelope.id).map_err(rejected)?;
        let call = ClientCall::new().key(key);
        let request = self.client.post(&self.url).headers(headers(envelope)?);
        Ok(request.body(envelope.payload.clone()).with_extension(call))
    }
}

impl Publisher for WebhookPublisher {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let mut results = vec![Err(PublishError::Unknown); batch.len()];
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        // Dropped, it ends the requests.
        let mut requests = JoinSet::new();
        for (place, envelope) in batch.iter().enumerate() {
            match self.request(envelope) {
                Ok(request) => {
                    let permits = Arc::clone(&permits);
                    requests.spawn(async move {
                        let _permit = permits.acquire().await;
                        (place, post(request).await)
                    });
                }
                Err(error) => results[place] = Err(error),
            }
        }
        while let Some(posted) = requests.join_next().await {
            if let Ok((place, result)) = posted {
                results[place] = result;
            }
        }
        // The client would give a refusal from memory, and not ask the receiver again.
        let all = Time::from_micros(i64::MAX);
        let _ = self.journal.purge(all, u32::MAX).await;
        results
    }
}

fn headers(envelope: &Envelope) -> Result<HeaderMap, PublishError> {
    let number = envelope.number.map(|number| number.to_string());
    let own = [
        (TOPIC, Some(&envelope.topic)),
        (KEY, envelope.key.as_ref()),
        (NUMBER, number.as_ref()),
    ];
    let own = own
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_ref()?.as_str())));
    let theirs = envelope.headers.iter();
    let theirs = theirs.map(|(name, value)| (name.as_str(), value.as_str()));
    let json = [(CONTENT_TYPE.as_str(), "application/json")];
    let mut headers = HeaderMap::new();
    // A later one takes the place of an earlier one.
    for (name, value) in json.into_iter().chain(theirs).chain(own) {
        let name: HeaderName = name.parse().map_err(rejected)?;
        // By its bytes: a key may be any text.
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(rejected)?;
        headers.insert(name, value);
    }
    headers.remove(IDEMPOTENCY_KEY);
    Ok(headers)
}

async fn post(request: RequestBuilder) -> Result<(), PublishError> {
    match request.send().await {
        Ok(response) => by_answer(response.status(), response.headers()),
        Err(error) => by_error(&error),
    }
}

fn by_answer(status: StatusCode, headers: &HeaderMap) -> Result<(), PublishError> {
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            Err(retry_after(headers).map_or(PublishError::Outage, PublishError::RetryAfter))
        }
        // A credential has expired, and no message is to blame for it.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(PublishError::Outage),
        StatusCode::REQUEST_TIMEOUT => Err(PublishError::Unknown),
        _ if status.is_server_error() => Err(PublishError::Unknown),
        _ => Err(rejected(status)),
    }
}

/// How many seconds the receiver asks for. A date would need its clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

fn by_error(error: &Error) -> Result<(), PublishError> {
    match ClientError::from_error(error) {
        // It took effect earlier, and only its response is gone.
        Some(ClientError::ResultGone { .. }) => Ok(()),
        // There was no connection, or the receiver says that it did nothing.
        Some(ClientError::Exhausted { call, .. }) => {
            Err(by_last(call).unwrap_or(PublishError::Outage))
        }
        Some(ClientError::RetryLater { after, .. }) => Err(PublishError::RetryAfter(*after)),
        // Without its journal, the client sends nothing.
        Some(ClientError::Journal { .. }) => Err(PublishError::Outage),
        Some(ClientError::Unknown { call, .. }) => {
            Err(by_last(call).unwrap_or(PublishError::Unknown))
        }
        Some(error @ (ClientError::KeyReused { .. } | ClientError::Unsupported { .. })) => {
            Err(rejected(error))
        }
        _ => Err(PublishError::Unknown),
    }
}

/// Whether the last answer says that the receiver takes nothing now.
fn by_last(call: &CallSummary) -> Option<PublishError> {
    let answer = call.answer.as_ref()?;
    match by_answer(answer.status, &answer.headers) {
        Err(error @ (PublishError::Outage | PublishError::RetryAfter(_))) => Some(error),
        _ => None,
    }
}

fn rejected(reason: impl ToString) -> PublishError {
    PublishError::Rejected(reason.to_string())
}

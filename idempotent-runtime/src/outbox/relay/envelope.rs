//! A message on its way to a publisher.

use std::collections::BTreeSet;

use bytes::Bytes;
use tracing::Span;

#[cfg(feature = "testing")]
use crate::outbox::Message;
use crate::{
    engine::parts::Traces, error::BoxError, framing::read_framed, outbox::send::OF_A_KEY,
    store::sql::Row,
};

/// A message on its way to a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope {
    /// Its id, the same in every copy.
    pub id: String,
    /// The topic.
    pub topic: String,
    /// The key, where it has one.
    pub key: Option<String>,
    /// Its number within the key. Numbers grow and have gaps: a receiver that uses them accepts
    /// gaps.
    pub number: Option<u64>,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The payload.
    pub payload: Bytes,
    /// The W3C `traceparent` of the sender, where the outbox
    /// [knows](crate::outbox::Outbox::trace_parent) it.
    pub traceparent: Option<String>,
    /// The key or the lane, as it is claimed.
    pub(super) place: Vec<u8>,
    /// The number of its row.
    pub(super) row: i64,
    /// How often it was rejected.
    pub(super) attempts: u32,
}

/// The columns of which an envelope is made.
pub(super) const COLUMNS: &str =
    "id, message_key, number, topic, headers, payload, attempts, traceparent";

impl Envelope {
    /// Makes the envelope of a message, with this number where the message has a key: for tests of
    /// a publisher.
    #[cfg(feature = "testing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
    #[must_use]
    pub fn of(message: &Message, number: u64) -> Self {
        Self {
            id: message.identity(None).0,
            topic: message.topic.clone(),
            key: message.key.clone(),
            number: message.key.is_some().then_some(number),
            headers: message.headers.clone(),
            payload: message.payload.clone(),
            traceparent: None,
            place: Vec::new(),
            row: 0,
            attempts: 0,
        }
    }

    pub(super) fn read(row: &impl Row) -> Result<Self, BoxError> {
        let bytes = |place| -> Result<Vec<u8>, BoxError> {
            Ok(row.bytes(place)?.ok_or("a column is NULL")?)
        };
        let text = |place| -> Result<String, BoxError> { Ok(String::from_utf8(bytes(place)?)?) };
        let number =
            |place| -> Result<i64, BoxError> { Ok(row.number(place)?.ok_or("a column is NULL")?) };
        let place = bytes(1)?;
        let key = match place.split_first() {
            Some((&OF_A_KEY, key)) => Some(String::from_utf8(key.to_vec())?),
            _ => None,
        };
        let traceparent = row.bytes(7)?.map(String::from_utf8).transpose()?;
        let number_of_row = number(2)?;
        let counted = match key {
            Some(_) => Some(u64::try_from(number_of_row)?),
            None => None,
        };
        Ok(Self {
            traceparent,
            id: text(0)?,
            topic: text(3)?,
            number: counted,
            key,
            headers: headers(&bytes(4)?)?,
            payload: bytes(5)?.into(),
            place,
            row: number_of_row,
            attempts: u32::try_from(number(6)?)?,
        })
    }
}

fn headers(mut framed: &[u8]) -> Result<Vec<(String, String)>, BoxError> {
    let mut headers = Vec::new();
    while !framed.is_empty() {
        let mut next = || -> Result<String, BoxError> {
            let bytes = read_framed(&mut framed).ok_or("a header is cut off")?;
            Ok(String::from_utf8(bytes.to_vec())?)
        };
        headers.push((next()?, next()?));
    }
    Ok(headers)
}

/// The span in which a batch is published. It links to those that sent the messages.
pub(super) fn span_of(batch: &[Envelope], traces: Option<&Traces>) -> Span {
    let messages = batch.len();
    let span = tracing::info_span!(target: "idempotent", "idempotent.publish", messages);
    if let Some(traces) = traces {
        let senders = batch.iter().filter_map(|it| it.traceparent.as_deref());
        let senders: BTreeSet<_> = senders.collect();
        senders.iter().for_each(|sender| traces.link(&span, sender));
    }
    span
}

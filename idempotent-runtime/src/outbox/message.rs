//! A message, and which ones can be sent.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use serde::Serialize;

use crate::{
    attempt::{Attempt, Sending},
    error::{BoxError, Error, LONGEST_HEADERS, LONGEST_NAME, MessageError},
    framing::{Hex, write_framed},
    record::Version,
    sha256::sha256,
    value::opaque,
};

/// A message that is to be sent once its transaction has committed.
///
/// Messages of one key arrive in the order in which their transactions have committed. A message
/// without a key has no order.
#[derive(Clone)]
#[must_use = "a message is not sent until it is given to an outbox"]
pub struct Message {
    id: Id,
    pub(super) topic: String,
    pub(super) key: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) payload: Bytes,
}

#[derive(Clone)]
enum Id {
    /// Inside an attempt another one takes its place, which is the same in every run.
    Drawn(Version),
    Set(String),
}

impl Message {
    /// Makes a message of a value, in JSON.
    ///
    /// # Errors
    ///
    /// When the value cannot be encoded.
    pub fn new<T: Serialize + ?Sized>(topic: &str, payload: &T) -> Result<Self, BoxError> {
        Ok(Self::raw(topic, serde_json::to_vec(payload)?))
    }

    /// Makes a message of bytes.
    pub fn raw(topic: &str, payload: impl Into<Bytes>) -> Self {
        Self {
            id: Id::Drawn(Version::random()),
            topic: topic.to_owned(),
            key: None,
            headers: Vec::new(),
            payload: payload.into(),
        }
    }

    /// Sets the key: 1 to 255 bytes, compared byte by byte.
    pub fn key<K: fmt::Display + ?Sized>(mut self, key: &K) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Adds a header. All headers together have at most 8 KiB.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the id: 1 to 255 bytes. A message under an id that is there already is not sent again,
    /// and is refused where its topic, key or payload is another one.
    ///
    /// Without it, a message inside the body of a call gets an id that is the same in every run of
    /// the body, and one inside a step in every run of the step. Outside of one it is drawn when
    /// the message is made, and a clone keeps it.
    pub fn id<K: fmt::Display + ?Sized>(mut self, id: &K) -> Self {
        self.id = Id::Set(id.to_string());
        self
    }

    /// Returns the id under which it is sent. `attempt` names the body, step or undo that sends it,
    /// and counts its equal messages; a message that is new there comes back, too.
    pub(super) fn identity(&self, attempt: Option<&Attempt>) -> (String, Option<Sending>) {
        match (&self.id, attempt) {
            (Id::Set(id), _) => (id.clone(), None),
            (Id::Drawn(drawn), None) => (Hex(&drawn.to_bytes()).to_string(), None),
            (Id::Drawn(drawn), Some(attempt)) => {
                let digest = self.digest();
                let (part, place, sending) = attempt.sends(digest, *drawn);
                let mut bytes = b"idempotent-runtime/outbox-id/1".to_vec();
                bytes.extend(part.as_bytes());
                bytes.extend(digest);
                bytes.extend(place.to_be_bytes());
                (Hex(&sha256(&mut bytes)[..16]).to_string(), sending)
            }
        }
    }

    /// Says what equal messages have in common.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut bytes = Vec::new();
        write_framed(&mut bytes, self.topic.as_bytes());
        bytes.push(u8::from(self.key.is_some()));
        write_framed(&mut bytes, self.key.as_deref().unwrap_or("").as_bytes());
        write_framed(&mut bytes, &self.payload);
        sha256(&mut bytes)
    }

    /// Refuses what cannot be sent.
    pub(super) fn check(&self, max: usize) -> Result<(), Error> {
        self.flaw(max).map_or(Ok(()), |reason| {
            Err(Error::InvalidMessage {
                topic: Arc::from(self.topic.chars().take(LONGEST_NAME).collect::<String>()),
                reason,
            })
        })
    }

    fn flaw(&self, max: usize) -> Option<MessageError> {
        let id = match &self.id {
            Id::Set(id) => Some(id.as_str()),
            Id::Drawn(_) => None,
        };
        let names = [
            ("topic", Some(&*self.topic)),
            ("key", self.key.as_deref()),
            ("id", id),
        ];
        for (part, name) in names {
            let bytes = name.map_or(1, str::len);
            if bytes == 0 || bytes > LONGEST_NAME {
                return Some(MessageError::Length { part, bytes });
            }
        }
        let is_header = |(name, value): &(String, String)| {
            let fits = |byte: u8| byte.is_ascii_graphic() && byte != b':';
            !name.is_empty() && name.bytes().all(fits) && !value.contains(char::is_control)
        };
        if let Some(place) = self.headers.iter().position(|header| !is_header(header)) {
            return Some(MessageError::Header { place });
        }
        let headers = self.headers.iter();
        let bytes = headers.map(|(name, value)| name.len() + value.len()).sum();
        if bytes > LONGEST_HEADERS {
            return Some(MessageError::Headers { bytes });
        }
        let bytes = bytes + self.payload.len();
        (bytes > max).then_some(MessageError::Payload { bytes, max })
    }

    /// The headers, as they are kept.
    pub(super) fn framed_headers(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in &self.headers {
            write_framed(&mut bytes, name.as_bytes());
            write_framed(&mut bytes, value.as_bytes());
        }
        bytes
    }
}

// Keys and payloads name customers and orders, and debug output ends up in logs.
opaque!(
    Message,
    |it| topic = it.topic,
    payload = format_args!("{} bytes", it.payload.len())
);

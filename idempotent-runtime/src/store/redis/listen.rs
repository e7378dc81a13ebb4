//! Hears what `PUBLISH` tells.

use std::{future::poll_fn, pin::Pin, sync::Arc};

use futures_core::Stream;
use redis::{Client, RedisResult, aio::PubSubStream};
use tokio::time::timeout;

use super::{
    failure,
    link::{Link, Node},
};
use crate::store::{
    StoreError, StoreErrorKind,
    notifications::{Channel, HELLO},
};

/// The channel of a prefix. Every node of a cluster passes on what any of them is told.
pub(super) struct Published {
    pub(super) places: Arc<[Client]>,
    pub(super) link: Arc<Link>,
    pub(super) channel: String,
    pub(super) stream: Option<PubSubStream>,
}

const DOING: &str = "listening for records that move";

impl Published {
    async fn subscribe(&self, place: &Client) -> RedisResult<PubSubStream> {
        let mut listening = place.get_async_pubsub().await?;
        listening.subscribe(&self.channel).await?;
        Ok(listening.into_on_message())
    }
}

impl Channel for Published {
    type Error = StoreError;

    const WHEN_LOST: &str = "notifications get lost, so waiters look by themselves; allow the user the channel that begins with the store's key prefix";

    fn place(&self) -> String {
        let places = self.places.iter();
        let places: Vec<_> = places
            .map(|client| client.get_connection_info().addr().to_string())
            .collect();
        places.join(", ")
    }

    async fn open(&mut self) -> Result<(), StoreError> {
        self.stream = None;
        let mut answer = Err(StoreError::new(StoreErrorKind::Configuration, DOING));
        for place in self.places.iter() {
            answer = match timeout(self.link.limits().connect, self.subscribe(place)).await {
                Ok(opened) => opened.map_err(|error| failure::of(error, DOING)),
                Err(late) => {
                    Err(StoreError::new(StoreErrorKind::Unavailable, DOING).with_source(late))
                }
            };
            if answer.is_ok() {
                break;
            }
        }
        self.stream = Some(answer?);
        Ok(())
    }

    async fn hello(&mut self) -> Result<(), StoreError> {
        let mut hello = redis::cmd("PUBLISH");
        hello.arg(&self.channel).arg(HELLO);
        self.link.send(&hello, &Node::Only, DOING).await.map(drop)
    }

    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let told = poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
        Ok(told.map(|told| String::from_utf8_lossy(told.get_payload_bytes()).into_owned()))
    }

    async fn close(self) {}
}

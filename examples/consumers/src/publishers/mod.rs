//! Publishers for a relay, one a file, to copy.

pub mod nats;
pub mod rabbitmq;
pub mod webhook;

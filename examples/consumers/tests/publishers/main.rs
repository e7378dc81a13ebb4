//! The publishers, on brokers and a receiver that run for real.

mod envelopes;
mod nats;
mod rabbitmq;
mod webhook;

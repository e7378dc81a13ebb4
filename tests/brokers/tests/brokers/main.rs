//! Consumers behind brokers that run for real.

#![allow(
    clippy::print_stdout,
    reason = "a seed and what it led to are told to whoever reads a failure"
)]

mod dispositions;
mod kills;

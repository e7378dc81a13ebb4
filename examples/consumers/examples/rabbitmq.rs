//! 200 orders on RabbitMQ make 200 invoices, however often the broker delivers them.
//!
//! ```sh
//! cargo run -p consumer-examples --example rabbitmq
//! cargo run -p consumer-examples --example rabbitmq -- --unprotected     # without us: too many invoices
//! ```
//!
//! The consumer is `src/worker.rs`, and `src/rabbitmq.rs` is how it speaks to the broker.

use std::process::ExitCode;

use consumer_examples::{Failure, program, rabbitmq::RabbitMq};

fn main() -> Result<ExitCode, Failure> {
    program::<RabbitMq>()
}

//! 200 orders on NATS JetStream make 200 invoices, however often the broker delivers them.
//!
//! ```sh
//! cargo run -p consumer-examples --example nats
//! cargo run -p consumer-examples --example nats -- --unprotected     # without us: too many invoices
//! ```
//!
//! The consumer is `src/worker.rs`, and `src/nats.rs` is how it speaks to the broker.

use std::process::ExitCode;

use consumer_examples::{Failure, nats::Nats, program};

fn main() -> Result<ExitCode, Failure> {
    program::<Nats>()
}

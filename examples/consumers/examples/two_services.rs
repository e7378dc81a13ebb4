//! 180 of 200 orders are committed, and each of these makes one invoice at another service. Both
//! services are killed, and the broker is restarted. The invoices of a customer still come in
//! order.
//!
//! ```sh
//! cargo run -p consumer-examples --example two_services
//! cargo run -p consumer-examples --example two_services -- rabbitmq
//! cargo run -p consumer-examples --example two_services -- --unprotected     # without us: wrong invoices
//! ```
//!
//! `src/two_services/orders.rs` is the service with the outbox, and `src/two_services/invoices.rs`
//! the one with the inbox. `src/publishers/` has the publishers of the relay.

use std::process::ExitCode;

use consumer_examples::{Failure, two_services};

fn main() -> Result<ExitCode, Failure> {
    two_services::program()
}

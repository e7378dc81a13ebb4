//! A client pays for one order over a network that loses answers, and is charged once.
//!
//! ```sh
//! cargo run --example payments
//! cargo run --example payments -- --without-child-key      # the gateway charges twice
//! cargo run --example payments -- --on-crash uncertain     # never run again: an operator settles
//! ```
//!
//! Three processes are at work, all from this one program. This one is the [client]; it starts a
//! payment [gateway], which keeps its log on disk, and the payment [service], which it kills
//! half-way with SIGKILL. Read `service.rs` first: the charge is protected there, by one attribute.

mod service;

mod choices;
mod client;
mod gateway;
mod process;
mod table;
mod wire;

use std::error::Error;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [role, settings] if role == gateway::ROLE => {
            gateway::run(serde_json::from_str(settings)?).await
        }
        [role, settings] if role == service::ROLE => {
            service::run(serde_json::from_str(settings)?).await
        }
        choices => client::run(choices::read(choices)?).await,
    }
}

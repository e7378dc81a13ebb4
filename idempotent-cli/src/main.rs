//! The binary: see the library.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    idempotent_cli::run_by_url().await
}

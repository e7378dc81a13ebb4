#![deny(unused_variables)]

use idempotent_runtime::{Error, idempotent};

struct Gateway;

#[idempotent(key = order, skip(gateway))]
async fn skipped_and_never_read(gateway: &Gateway, order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {}

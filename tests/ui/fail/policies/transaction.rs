use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = id, tx = tx)]
async fn not_yet(id: u64, tx: &mut Vec<u8>) -> Result<u64, Error> {
    tx.clear();
    Ok(id)
}

#[idempotent(key = id, tx = tx, on_crash = uncertain, lease = "30s", in_flight = reject)]
async fn conflicts(id: u64, tx: &mut Vec<u8>) -> Result<u64, Error> {
    tx.clear();
    Ok(id)
}

#[idempotent(key = id, tx = conn)]
async fn not_an_argument(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[idempotent(key = id, tx = &mut tx)]
async fn not_a_name(id: u64, tx: &mut Vec<u8>) -> Result<u64, Error> {
    tx.clear();
    Ok(id)
}

fn main() {}

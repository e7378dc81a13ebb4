use idempotent_runtime::{Error, idempotent};

#[idempotent(key = order, lease = "50ms")]
async fn too_short(order: u64) -> Result<u64, Error> {
    Ok(order)
}

#[idempotent(key = order, lease = "100ms")]
async fn the_shortest(order: u64) -> Result<u64, Error> {
    Ok(order)
}

fn main() {}

use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

#[idempotent(key = order.id, in_flight = rejct)]
async fn in_flight_word(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, in_flight = queue)]
async fn in_flight_other(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, in_flight = wait)]
async fn wait_without_end(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, in_flight = wait("1s", "2s"))]
async fn wait_for_two(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = relase)]
async fn on_error_word(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = 5)]
async fn on_error_number(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = rerum)]
async fn on_crash_word(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = replay)]
async fn on_crash_other(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = reconcile)]
async fn reconcile_with_nothing(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = reconcile(ask()))]
async fn reconcile_a_call(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_cancel = abort)]
async fn on_cancel_word(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_missing_key = refused)]
async fn on_missing_key_word(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_outage = readonly)]
async fn on_outage_word(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_cancel = "detach")]
async fn on_cancel_in_quotes(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = "uncertain")]
async fn on_crash_in_quotes(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = "release", in_flight = "reject")]
async fn two_in_quotes(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = ErrorVerdict)]
async fn on_error_trait(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = retry)]
async fn on_error_other(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}

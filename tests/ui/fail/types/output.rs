use idempotent_runtime::{Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    tenant: String,
}

struct Pool;

#[derive(Debug, Serialize, Deserialize)]
struct NoRefusal;

#[derive(Debug)]
struct NotStorable;

impl From<Error> for NotStorable {
    fn from(_: Error) -> Self {
        Self
    }
}

type Answer<T> = Result<T, NotStorable>;

#[idempotent(key = order.id)]
async fn no_result(order: Order) -> Option<u64> {
    Some(order.id)
}

#[idempotent(key = order.id)]
async fn value_not_storable(order: Order) -> Result<Pool, Error> {
    drop(order);
    Ok(Pool)
}

#[idempotent(key = order.id)]
async fn value_of_any_type<T: Default>(order: Order) -> Result<T, Error> {
    drop(order);
    Ok(T::default())
}

#[idempotent(key = order.id)]
async fn error_without_from(order: Order) -> Result<u64, NoRefusal> {
    Ok(order.id)
}

#[idempotent(key = order.id)]
async fn error_not_storable(order: Order) -> Result<u64, NotStorable> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = replay)]
async fn error_not_storable_but_replayed(order: Order) -> Answer<u64> {
    Ok(order.id)
}

struct StatusCode;

#[derive(Serialize, Deserialize)]
struct Json<T>(T);

#[idempotent(key = order.id)]
async fn status_and_value(order: Order) -> Result<(StatusCode, Json<u64>), Error> {
    Ok((StatusCode, Json(order.id)))
}

fn main() {}

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

fn of_another_error(_: &Error) -> idempotent_runtime::Verdict {
    idempotent_runtime::Verdict::Replay
}

fn of_no_verdict(_: &NotStorable) -> bool {
    true
}

fn that_replays(_: &NotStorable) -> idempotent_runtime::Verdict {
    idempotent_runtime::Verdict::Replay
}

async fn with_other_arguments(_: &str) -> idempotent_runtime::Reconciled<u64, Error> {
    idempotent_runtime::Reconciled::Unknown
}

fn without_waiting(_: &Order) -> idempotent_runtime::Reconciled<u64, Error> {
    idempotent_runtime::Reconciled::Unknown
}

async fn about_another_value(_: &Order) -> idempotent_runtime::Reconciled<String, Error> {
    idempotent_runtime::Reconciled::Unknown
}

#[idempotent(key = order.id, on_error = of_another_error)]
async fn classifies_another_error(order: Order) -> Answer<u64> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = of_no_verdict)]
async fn classifies_into_no_verdict(order: Order) -> Answer<u64> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_error = that_replays)]
async fn replays_without_serde(order: Order) -> Answer<u64> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = reconcile(with_other_arguments))]
async fn reconciles_other_arguments(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = reconcile(without_waiting))]
async fn reconciles_without_waiting(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

#[idempotent(key = order.id, on_crash = reconcile(about_another_value))]
async fn reconciles_another_value(order: Order) -> Result<u64, Error> {
    Ok(order.id)
}

fn main() {}

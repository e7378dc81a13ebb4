use idempotent_runtime::{Error, idempotent};

struct PgConnection;
struct PoolConnection;
struct Transaction<'c>(&'c mut PgConnection);

trait Executor {}

#[idempotent(key = id, tx = tx, on_crash = uncertain, lease = "30s", in_flight = reject)]
async fn conflicts(id: u64, tx: &mut PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, tx = tx, on_cancel = detach, on_outage = open, also_accept = "old.name")]
async fn conflicts_too(id: u64, tx: &mut PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, tx = conn)]
async fn not_an_argument(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[idempotent(key = id, tx = &mut tx)]
async fn not_a_name(id: u64, tx: &mut PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, tx = tx)]
async fn by_value(id: u64, tx: Transaction<'_>) -> Result<u64, Error> {
    let _ = tx.0;
    Ok(id)
}

#[idempotent(key = id, tx = conn)]
async fn pooled(id: u64, mut conn: PoolConnection) -> Result<u64, Error> {
    let _ = &mut conn;
    Ok(id)
}

#[idempotent(key = id, tx = executor)]
async fn any_executor(id: u64, executor: impl Executor) -> Result<u64, Error> {
    let _ = executor;
    Ok(id)
}

#[idempotent(key = id, tx = tx)]
async fn shared(id: u64, tx: &PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, tx = tx, on_error = replay)]
async fn records(id: u64, tx: &mut PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, tx = tx, on_error = classify)]
async fn classifies(id: u64, tx: &mut PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, tx = tx, on_error = release, commits_errors)]
async fn commits_nothing(id: u64, tx: &mut PgConnection) -> Result<u64, Error> {
    let _ = tx;
    Ok(id)
}

#[idempotent(key = id, commits_errors)]
async fn commits_elsewhere(id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() {}

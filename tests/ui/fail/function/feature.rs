use idempotent_runtime::{Error, Idempotency};

#[tokio::main]
async fn main() -> Result<(), Error> {
    Idempotency::sqlite("idempotency.db").await?.install()?;
    Idempotency::postgres("postgres://localhost/shop").await?.install()
}

use idempotent_runtime::{Error, Idempotency, idempotent};

#[idempotent(name = "payments.charge", key = order_id, scope = merchant, ttl = "24h")]
async fn charge(merchant: &str, order_id: &str, cents: u64) -> Result<String, Error> {
    println!("charging {cents} cents");
    Ok(format!("receipt for {order_id}"))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    Idempotency::memory().install()?; // or a file: `Idempotency::sqlite("shop.db").await?`

    let first = charge("merchant-7", "order-42", 1_250).await?;
    let again = charge("merchant-7", "order-42", 1_250).await?; // the body does not run
    assert_eq!(first, again);

    let other = charge("merchant-7", "order-42", 9_900).await;
    assert!(matches!(other, Err(Error::KeyReused { .. })));
    Ok(())
}

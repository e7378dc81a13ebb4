use idempotent_runtime::{Error, idempotent};

#[idempotent(key = (a, a, a, a, b, b, b, b, 9))]
async fn nine_parts(a: u64, b: u64) -> Result<u64, Error> {
    Ok(a + b)
}

#[idempotent(key = a, scope = ("tenant", (1, 2, 3, 4, 5, 6, 7, 8, b, 10)))]
async fn nine_parts_of_a_part(a: u64, b: u64) -> Result<u64, Error> {
    Ok(a + b)
}

fn main() {}

use idempotent_runtime::{Error, idempotent};

struct Order {
    id: u64,
}

async fn load(id: u64) -> Result<Order, Error> {
    Ok(Order { id })
}

async fn load_by_name(name: String) -> Result<Order, Error> {
    Ok(Order { id: name.len() as u64 })
}

#[idempotent(key = id, outcome = reference(|order: &Order| order.id, load_by_name))]
async fn loads_by_another_reference(id: u64) -> Result<Order, Error> {
    Ok(Order { id })
}

#[idempotent(key = id, outcome = reference(|order: &u64| *order, load))]
async fn saves_another_value(id: u64) -> Result<Order, Error> {
    Ok(Order { id })
}

fn main() {}

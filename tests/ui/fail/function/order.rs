use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use idempotent_runtime::{Error, idempotent};

#[idempotent(key = id)]
async fn in_random_order(id: u64, tags: HashSet<String>) -> Result<u64, Error> {
    Ok(id + tags.len() as u64)
}

#[idempotent(key_from_arguments)]
async fn in_random_order_inside(
    tags: Option<&std::collections::HashSet<String>>,
    by_name: (u64, HashMap<String, Arc<HashSet<u64>>>),
) -> Result<u64, Error> {
    Ok(tags.map_or(by_name.0, |tags| tags.len() as u64))
}

#[idempotent(key = id, skip(tags))]
async fn skipped(id: u64, tags: HashSet<String>) -> Result<u64, Error> {
    Ok(id + tags.len() as u64)
}

#[idempotent(key = id, fingerprint = tags.len())]
async fn compared_otherwise(id: u64, tags: HashSet<String>) -> Result<u64, Error> {
    Ok(id + tags.len() as u64)
}

#[idempotent(key = id)]
async fn in_the_order_of_its_hasher(
    id: u64,
    tags: HashSet<String, BuildHasherDefault<DefaultHasher>>,
) -> Result<u64, Error> {
    Ok(id + tags.len() as u64)
}

fn main() {}

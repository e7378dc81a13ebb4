//! The stores that need a server. `cargo xtask test` starts the servers and says in the environment where they are; a plain
//! `cargo test` ignores these tests, and says so.

mod postgres;

pub(crate) use self::postgres::Postgres;

/// Where a server is.
///
/// # Panics
///
/// Where nobody says: a store whose server is missing is a failure.
fn url(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: `cargo xtask test` starts the servers, `cargo xtask servers` only starts them")
    })
}

/// Tables of its own for each test.
fn prefix() -> String {
    format!("t{:016x}_", rand::random::<u64>())
}

//! `PgBouncer`, which gives each transaction any connection: what a session holds does not survive
//! it.

use std::{fmt::Write as _, io};

use super::{Ending, POSTGRES, Start, ports};

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    let part = start.part("pgbouncer", Ending::Kill)?;
    let behind = start.known(POSTGRES).unwrap_or_default();
    let behind = Behind::parse(&behind)
        .ok_or_else(|| io::Error::other(format!("`{POSTGRES}` is not understood")))?;
    let version = part.command(start.program).arg("--version").output()?;
    let prepares = prepares(&String::from_utf8_lossy(&version.stdout));
    part.write(
        "users",
        &format!("\"{}\" \"{}\"\n", behind.user, behind.password),
    )?;
    let port = part.serve(
        |port| {
            let mut server = part.command(start.program);
            // It stands where the server finds it, or else the server says so.
            let _ = part.write("pgbouncer.ini", &config(&behind, port, prepares));
            server.arg("pgbouncer.ini");
            server
        },
        |port| ports::connect(port).is_ok(),
    )?;
    let Behind { user, database, .. } = behind;
    Ok(format!("postgres://{user}@127.0.0.1:{port}/{database}"))
}

/// The Postgres behind it.
#[derive(Debug, PartialEq, Eq)]
struct Behind<'a> {
    user: &'a str,
    password: &'a str,
    host: &'a str,
    port: &'a str,
    database: &'a str,
}

impl<'a> Behind<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (user, rest) = rest.split_once('@')?;
        let (host, rest) = rest.split_once('/')?;
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        let (host, port) = host.split_once(':').unwrap_or((host, "5432"));
        let database = rest.split('?').next()?;
        scheme.starts_with("postgres").then_some(Self {
            user,
            password,
            host,
            port,
            database,
        })
    }
}

/// Whether this version keeps prepared statements for its clients, as 1.21 was the first to do.
/// Older ones refuse to be told not to.
fn prepares(version: &str) -> bool {
    let numbers = version.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = numbers.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(1), Some(21))
}

fn config(behind: &Behind<'_>, port: u16, prepares: bool) -> String {
    let Behind { host, port: to, .. } = behind;
    let mut config = format!("[databases]\n* = host={host} port={to}\n\n[pgbouncer]\n");
    let port = port.to_string();
    let settings = [
        ("listen_addr", "127.0.0.1"),
        ("listen_port", &port),
        ("unix_socket_dir", ""),
        ("auth_type", "trust"),
        ("auth_file", "users"),
        ("pool_mode", "transaction"),
        ("max_client_conn", "1000"),
        // Drivers send it always, and only some versions know it.
        ("ignore_startup_parameters", "extra_float_digits"),
    ];
    let none_prepared = prepares.then_some(("max_prepared_statements", "0"));
    for (name, value) in settings.into_iter().chain(none_prepared) {
        // Writing to a string does not fail.
        let _ = writeln!(config, "{name} = {value}");
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "postgres://idempotent@127.0.0.1:6000/idempotent";

    #[test]
    fn the_address_of_any_postgres_is_understood() {
        let behind = Behind::parse(OURS).expect("our own");
        let parts = (behind.user, behind.password, behind.host, behind.port);
        assert_eq!(parts, ("idempotent", "", "127.0.0.1", "6000"));
        let theirs = Behind::parse("postgresql://me:secret@db/mine?sslmode=disable");
        let theirs = theirs.expect("another's");
        assert_eq!(
            (theirs.password, theirs.host, theirs.port),
            ("secret", "db", "5432")
        );
        assert_eq!((theirs.user, theirs.database), ("me", "mine"));
        assert_eq!(Behind::parse("mysql://me@db/mine"), None);
        assert_eq!(Behind::parse(""), None);
    }

    #[test]
    fn only_versions_that_prepare_are_told_not_to() {
        let behind = Behind::parse(OURS).expect("our own");
        for (version, expected) in [
            ("PgBouncer 1.18.0\nlibevent 2.1.12", false),
            ("PgBouncer 1.21.0", true),
            ("PgBouncer 1.24.1", true),
            ("PgBouncer 2.0", true),
        ] {
            assert_eq!(prepares(version), expected, "{version}");
            let config = config(&behind, 7000, prepares(version));
            assert_eq!(config.contains("max_prepared_statements = 0"), expected);
        }
    }

    #[test]
    fn the_configuration_pools_transactions_in_front_of_postgres() {
        let config = config(&Behind::parse(OURS).expect("our own"), 7000, false);
        for line in [
            "* = host=127.0.0.1 port=6000",
            "listen_port = 7000",
            "pool_mode = transaction",
        ] {
            assert!(config.lines().any(|found| found == line), "{config}");
        }
    }
}

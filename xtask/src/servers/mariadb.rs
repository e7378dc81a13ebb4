//! MariaDB, as durable as in production.

use std::io::{self, Read};

use super::{Ending, Start, authority::Certificate, find, ports};

const SETTINGS: [&str; 9] = [
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    // In the folder of the data: a longer path may be too long.
    "--socket=socket",
    "--pid-file=pid",
    "--character-set-server=utf8mb4",
    "--innodb-flush-log-at-trx-commit=1",
    "--max-connections=400",
    "--max-allowed-packet=64M",
    "--log-warnings=1",
];

/// A line is a statement.
const USER_AND_DATABASE: &str = "\
CREATE DATABASE IF NOT EXISTS idempotent;
CREATE USER IF NOT EXISTS idempotent@'%';
GRANT ALL ON *.* TO idempotent@'%' WITH GRANT OPTION;
";

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    serve(start, &[])
}

/// Starts one that lets no client in that does not encrypt.
pub(super) fn start_encrypted(start: &Start<'_>) -> io::Result<String> {
    let certificate = Certificate::of(start)?;
    let settings = [
        "--require-secure-transport=ON".to_owned(),
        format!("--ssl-cert={}", certificate.file.display()),
        format!("--ssl-key={}", certificate.key.display()),
    ];
    let url = serve(start, &settings)?;
    let authority = certificate.authority.display();
    Ok(format!("{url}?ssl-mode=VERIFY_IDENTITY&ssl-ca={authority}"))
}

/// Starts one with settings of its own.
fn serve(start: &Start<'_>, settings: &[String]) -> io::Result<String> {
    let part = start.part(start.name, Ending::Kill)?;
    let install = find::beside(start.program, "mariadb-install-db")
        .ok_or_else(|| io::Error::other("`mariadb-install-db` is not there"))?;
    let data = format!("--datadir={}", part.path("data").display());
    part.run(part.command(&install).args([
        "--no-defaults",
        &data,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ]))?;
    let script = part.write("init.sql", USER_AND_DATABASE)?;
    let port = part.serve(
        |port| {
            let mut server = part.command(start.program);
            server
                .args(["--no-defaults", &data])
                .arg(format!("--port={port}"))
                .arg(format!("--init-file={}", script.display()))
                .args(SETTINGS)
                .args(settings);
            server
        },
        |port| greets(port).unwrap_or(false),
    )?;
    Ok(format!("mysql://idempotent@127.0.0.1:{port}/idempotent"))
}

/// It speaks first, when the script has run: the length of what it says, a number, and the
/// protocol's version.
fn greets(port: u16) -> io::Result<bool> {
    let mut greeting = [0; 5];
    ports::connect(port)?.read_exact(&mut greeting)?;
    Ok(greeting[4] == 10)
}

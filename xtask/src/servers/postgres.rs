//! Postgres, as durable as in production.

use std::{io, process::Command};

use super::{Ending, Start, authority::Certificate, find, part::Part};

const INITDB: [&str; 6] = [
    "--username=idempotent",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    // The promise of durability begins when the server runs.
    "--no-sync",
    "--pgdata=data",
];

const SETTINGS: [&str; 7] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    "max_prepared_transactions=8",
    "wal_level=replica",
    "fsync=on",
    "synchronous_commit=on",
];

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    serve(start, &start.part(start.name, Ending::Quit)?, &[])
}

/// Starts one that lets no client in that does not encrypt.
pub(super) fn start_encrypted(start: &Start<'_>) -> io::Result<String> {
    let part = start.part(start.name, Ending::Quit)?;
    let certificate = Certificate::of(start)?;
    let who = part.write("who", "hostssl all all 127.0.0.1/32 trust\n")?;
    let settings = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", certificate.file.display()),
        format!("ssl_key_file={}", certificate.key.display()),
        format!("hba_file={}", who.display()),
    ];
    let url = serve(start, &part, &settings)?;
    let authority = certificate.authority.display();
    Ok(format!("{url}?sslmode=verify-full&sslrootcert={authority}"))
}

/// Starts one with settings of its own.
fn serve(start: &Start<'_>, part: &Part<'_>, settings: &[String]) -> io::Result<String> {
    let tool = |name: &str| {
        let program = find::beside(start.program, name);
        let program =
            program.ok_or_else(|| io::Error::other(format!("`{name}` is not beside `postgres`")));
        program.map(|program| part.command(&program))
    };
    part.run(tool("initdb")?.args(INITDB))?;
    let port = part.serve(
        |port| {
            let mut server = part.command(start.program);
            server.args(["-D", "data", "-p", &port.to_string()]);
            let settings = SETTINGS
                .into_iter()
                .chain(settings.iter().map(String::as_str));
            server.args(settings.flat_map(|setting| ["-c", setting]));
            server
        },
        |port| {
            let ready = tool("pg_isready").and_then(|mut tool| to(&mut tool, port).output());
            ready.is_ok_and(|output| output.status.success())
        },
    )?;
    part.run(to(&mut tool("createdb")?, port).args(["--username=idempotent", "idempotent"]))?;
    Ok(format!("postgres://idempotent@127.0.0.1:{port}/idempotent"))
}

fn to(tool: &mut Command, port: u16) -> &mut Command {
    tool.args(["--host=127.0.0.1", "--port", &port.to_string()])
}

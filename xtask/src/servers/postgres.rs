//! Postgres, as durable as in production.

use std::{io, process::Command};

use super::{Ending, Start, find};

const INITDB: [&str; 6] = [
    "--username=idempotent",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    // What is promised about durability begins when the server runs.
    "--no-sync",
    "--pgdata=data",
];

const SETTINGS: [&str; 6] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    "wal_level=replica",
    "fsync=on",
    "synchronous_commit=on",
];

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    let part = start.part(start.name, Ending::Quit)?;
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
            server.args(SETTINGS.iter().flat_map(|setting| ["-c", *setting]));
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

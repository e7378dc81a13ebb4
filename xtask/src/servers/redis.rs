//! Redis, as durable as it can be.

use std::{io, process::Command};

use super::{Ending, Start, authority::Certificate, find, part::Part, ports};

const SETTINGS: [&str; 10] = [
    "--bind",
    "127.0.0.1",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--maxmemory-policy",
    "noeviction",
    "--save",
    "",
];

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    let port = serve(start, &start.part("redis", Ending::Kill)?, &[])?;
    Ok(url(port))
}

/// Starts one that has no port but the encrypted one.
pub(super) fn start_encrypted(start: &Start<'_>) -> io::Result<String> {
    let part = start.part(start.name, Ending::Kill)?;
    let client = find::beside(start.program, "redis-cli")
        .ok_or_else(|| io::Error::other("`redis-cli` is not there"))?;
    let certificate = Certificate::of(start)?;
    let port = part.serve(
        |port| {
            let port = port.to_string();
            let mut server = part.command(start.program);
            server.args(["--port", "0", "--tls-port", &port]);
            server.args(["--tls-auth-clients", "no"]);
            server.arg("--tls-cert-file").arg(&certificate.file);
            server.arg("--tls-key-file").arg(&certificate.key);
            server.args(SETTINGS);
            server
        },
        |port| {
            let mut client = part.command(&client);
            client.args(["-h", "127.0.0.1", "-p", &port.to_string(), "--tls"]);
            client.arg("--cacert").arg(&certificate.authority);
            let said = client.arg("PING").output();
            said.is_ok_and(|output| output.stdout == b"PONG\n")
        },
    )?;
    Ok(format!("rediss://127.0.0.1:{port}"))
}

/// Starts one with settings of its own.
pub(super) fn serve(start: &Start<'_>, part: &Part<'_>, settings: &[&str]) -> io::Result<u16> {
    part.serve(
        |port| -> Command {
            let mut server = part.command(start.program);
            server.args(["--port", &port.to_string()]);
            server.args(SETTINGS).args(settings);
            server
        },
        |port| says(port, "PING", &["+PONG"]),
    )
}

/// Whether the answer to a command has any of these words.
pub(super) fn says(port: u16, command: &str, words: &[&str]) -> bool {
    let answer = ports::ask(port, &format!("{command}\r\nQUIT\r\n"));
    answer.is_ok_and(|answer| words.iter().any(|word| answer.contains(word)))
}

pub(super) fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

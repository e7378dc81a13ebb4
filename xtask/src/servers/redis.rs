//! Redis, as durable as it can be.

use std::{io, process::Command};

use super::{Ending, Start, part::Part, ports};

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

//! NATS with JetStream, which keeps its streams in files.

use std::io::{self, Read};

use super::{Ending, Start, ports};

pub(super) fn start(start: &Start<'_>) -> io::Result<String> {
    let part = start.part(start.name, Ending::Kill)?;
    let port = part.serve(
        |port| {
            let mut server = part.command(start.program);
            server.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
            server.args(["--jetstream", "--store_dir", "data"]);
            server
        },
        |port| greets(port).unwrap_or(false),
    )?;
    Ok(format!("nats://127.0.0.1:{port}"))
}

/// It speaks first, and opens its port when its streams are there.
fn greets(port: u16) -> io::Result<bool> {
    let mut greeting = [0; 5];
    ports::connect(port)?.read_exact(&mut greeting)?;
    Ok(&greeting == b"INFO ")
}

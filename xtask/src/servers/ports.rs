//! Ports that are not in use.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The nodes of a cluster talk to each other on the port this far above their own.
const BUS: u16 = 10_000;

/// No two of our servers get the same port, whatever the system says.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port that is free, as is the one of the bus above it.
pub(super) fn free() -> io::Result<u16> {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..1_000 {
        let port = bind(0)?.local_addr()?.port();
        let Some(bus) = port.checked_add(BUS) else {
            continue;
        };
        if !given.contains(&port) && !given.contains(&bus) && bind(bus).is_ok() {
            given.extend([port, bus]);
            return Ok(port);
        }
    }
    Err(io::Error::other("no port is free"))
}

/// The port of the bus above one that was free.
pub(super) fn above(port: u16) -> u16 {
    port + BUS
}

fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// A connection to a server that may not be there.
pub(super) fn connect(port: u16) -> io::Result<TcpStream> {
    let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    connection.set_read_timeout(Some(Duration::from_secs(1)))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_can_be_used() {
        let (one, other) = (free().expect("a port"), free().expect("another"));
        assert_ne!(one, other);
        for port in [one, one + BUS, other, other + BUS] {
            assert!(bind(port).is_ok(), "{port}");
        }
    }
}

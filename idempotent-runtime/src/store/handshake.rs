//! The signs of a failed handshake of TLS.

use std::io::{Error, ErrorKind};

/// Tells whether a connection was not made because of what the server showed: a certificate that no
/// trusted authority vouches for, one of another name, or no encryption at all. Trying again shows
/// the same.
///
/// Encryption reports that as invalid data, and a connection that broke as something else. Once a
/// connection stands, invalid data means that something on the way damaged it.
pub(crate) fn is_refused(error: &Error) -> bool {
    error.kind() == ErrorKind::InvalidData
}

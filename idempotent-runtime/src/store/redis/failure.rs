//! The meaning of an error of the driver or the server to a caller.

use std::{error::Error, io, sync::Arc};

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::store::{StoreError, StoreErrorKind, handshake};

/// Gives an error its kind, and keeps it as the source.
pub(super) fn of(error: RedisError, doing: &'static str) -> StoreError {
    StoreError::new(kind(&error), doing).with_source(error)
}

/// The same for an error that kept a connection from being made.
pub(super) fn while_opening(error: RedisError, doing: &'static str) -> StoreError {
    StoreError::new(kind_while_opening(&error), doing).with_source(error)
}

pub(super) fn kind_while_opening(error: &RedisError) -> StoreErrorKind {
    match error.kind() {
        // An error that the other encryption reports has a kind of its own. And if not even a first
        // answer can be read, it is not a server of this kind that answers.
        ErrorKind::Client | ErrorKind::Parse => StoreErrorKind::Configuration,
        ErrorKind::Io if io_error(error).is_some_and(handshake::is_refused) => {
            StoreErrorKind::Configuration
        }
        _ => kind(error),
    }
}

/// The system's error in one of the driver's, which shares it by a pointer and shows that.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let shared = error.source()?;
    let shared = shared.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    shared.downcast_ref()
}

/// Whether the connection broke before the whole answer was there, so that it is unknown what the
/// server did. If the end of an answer is missing, the driver says that it cannot read it. An
/// answer that took too long is something else.
pub(super) fn broke_off(error: &RedisError) -> bool {
    match error.kind() {
        // The driver has limits of its own if the connection is the application's or leads to a
        // cluster.
        ErrorKind::Io => !error.is_timeout(),
        ErrorKind::Parse => true,
        _ => false,
    }
}

/// Whether the connection is of no more use: it is gone, or leads to a server that was the primary
/// once.
pub(super) fn ends_the_connection(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::AuthenticationFailed
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    ) || error.code() == Some("NOAUTH")
}

fn kind(error: &RedisError) -> StoreErrorKind {
    match error.kind() {
        // An answer that cannot be read lacks its end, because the connection broke.
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
            StoreErrorKind::Unavailable
        }
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::RESP3NotSupported => StoreErrorKind::Configuration,
        ErrorKind::UnexpectedReturnType => StoreErrorKind::Corrupt,
        ErrorKind::Server(kind) => match kind {
            // A primary that became a replica: a new connection finds the new one.
            ServerErrorKind::ReadOnly
            | ServerErrorKind::BusyLoading
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::TryAgain
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask => StoreErrorKind::Unavailable,
            ServerErrorKind::NoPerm => StoreErrorKind::Denied,
            ServerErrorKind::CrossSlot => StoreErrorKind::Configuration,
            ServerErrorKind::ResponseError => kind_of_text(error),
            _ => StoreErrorKind::Other,
        },
        _ => match error.code() {
            // The server refuses writes while it cannot write its own files, and says why if it
            // knows.
            Some("MISCONF") if says(error, "No space left") => StoreErrorKind::Full,
            Some("MISCONF") => StoreErrorKind::Denied,
            code => code.map_or(StoreErrorKind::Other, kind_of_code),
        },
    }
}

fn kind_of_code(code: &str) -> StoreErrorKind {
    match code {
        "NOAUTH" | "WRONGPASS" => StoreErrorKind::Configuration,
        "OOM" => StoreErrorKind::Full,
        "NOREPLICAS" => StoreErrorKind::Unavailable,
        "BUSY" => StoreErrorKind::Busy,
        "WRONGTYPE" => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Other,
    }
}

/// Some refusals have no code of their own.
fn kind_of_text(error: &RedisError) -> StoreErrorKind {
    // Redis 7.0 says the first, and later versions and Valkey the second.
    if says(error, "user executing the script can't")
        || says(error, "ACL failure in script")
        // An operator takes commands away from every user by renaming them.
        || says(error, "unknown command")
    {
        StoreErrorKind::Denied
    } else if says(error, "max number of clients reached") {
        StoreErrorKind::Unavailable
    } else if says(error, "DB index is out of range") || says(error, "cluster support disabled") {
        StoreErrorKind::Configuration
    } else {
        StoreErrorKind::Other
    }
}

fn says(error: &RedisError, words: &str) -> bool {
    error.detail().is_some_and(|said| said.contains(words))
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    /// The kind of what the server says.
    fn kind_of(said: &str) -> StoreErrorKind {
        let value = parse_redis_value(format!("-{said}\r\n").as_bytes()).expect("an answer");
        let error = value.extract_error().map(|_: Value| ());
        kind(&error.expect_err("an error"))
    }

    #[test]
    fn only_while_a_connection_is_made_is_invalid_data_a_matter_of_the_handshake() {
        let refused = || RedisError::from(io::Error::from(io::ErrorKind::InvalidData));
        let opening = |error| while_opening(error, "").kind();
        assert_eq!(opening(refused()), StoreErrorKind::Configuration);
        assert_eq!(of(refused(), "").kind(), StoreErrorKind::Unavailable);
        let broken = RedisError::from(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(opening(broken), StoreErrorKind::Unavailable);
        let native = RedisError::from((ErrorKind::Client, "the handshake failed"));
        assert_eq!(opening(native), StoreErrorKind::Configuration);
    }

    #[test]
    fn only_while_a_connection_is_made_is_an_answer_that_cannot_be_read_that_of_another_server() {
        let unread = || parse_redis_value(b"HTTP/1.1 400 Bad Request\r\n").expect_err("no answer");
        assert_eq!(unread().kind(), ErrorKind::Parse);
        assert_eq!(
            while_opening(unread(), "").kind(),
            StoreErrorKind::Configuration
        );
        assert_eq!(of(unread(), "").kind(), StoreErrorKind::Unavailable);
        assert!(broke_off(&unread()) && ends_the_connection(&unread()));
    }

    #[test]
    fn each_refusal_has_its_kind() {
        use StoreErrorKind::{Busy, Configuration, Corrupt, Denied, Full, Other, Unavailable};
        for (said, expected) in [
            (
                "LOADING Redis is loading the dataset in memory",
                Unavailable,
            ),
            ("MASTERDOWN Link with MASTER is down", Unavailable),
            ("CLUSTERDOWN The cluster is down", Unavailable),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Unavailable,
            ),
            ("MOVED 3999 127.0.0.1:6381", Unavailable),
            (
                "READONLY You can't write against a read only replica.",
                Unavailable,
            ),
            ("NOREPLICAS Not enough good replicas to write.", Unavailable),
            ("ERR max number of clients reached", Unavailable),
            ("BUSY Redis is busy running a script.", Busy),
            ("NOAUTH Authentication required.", Configuration),
            ("WRONGPASS invalid username-password pair", Configuration),
            (
                "CROSSSLOT Keys in request don't hash to the same slot",
                Configuration,
            ),
            ("NOPERM this user has no permissions", Denied),
            (
                "ERR The user executing the script can't run this command or subcommand",
                Denied,
            ),
            (
                "ERR ACL failure in script: User reader has no permissions to run the 'hset' command",
                Denied,
            ),
            (
                "ERR unknown command 'INFO', with args beginning with: ",
                Denied,
            ),
            ("MISCONF Redis is configured to save RDB snapshots", Denied),
            (
                "MISCONF Errors writing to the AOF file: No space left on device",
                Full,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                Full,
            ),
            ("WRONGTYPE Operation against a key", Corrupt),
            ("ERR something else", Other),
            ("NEWS that this build does not know", Other),
        ] {
            assert_eq!(kind_of(said), expected, "{said}");
        }
    }
}

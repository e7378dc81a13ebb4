//! gRPC: what a status of a handler's means, and refusals in statuses.
//!
//! A call of gRPC is a POST over HTTP/2. Its outcome stands behind the body, in the trailers, or
//! among the header fields if there is no body
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).

mod details;
mod refusal;

use http::{HeaderMap, HeaderName, header::CONTENT_TYPE};

pub(crate) use self::refusal::{code, respond};
use crate::http::{HeaderPolicy, outcome::Verdict, server_errors::ServerErrors};

pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub(crate) const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
pub(crate) const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
pub(crate) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(crate) const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// A status of gRPC (<https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const INVALID_ARGUMENT: Self = Self(3);
    pub(crate) const NOT_FOUND: Self = Self(5);
    pub(crate) const ALREADY_EXISTS: Self = Self(6);
    pub(crate) const PERMISSION_DENIED: Self = Self(7);
    pub(crate) const RESOURCE_EXHAUSTED: Self = Self(8);
    pub(crate) const FAILED_PRECONDITION: Self = Self(9);
    pub(crate) const ABORTED: Self = Self(10);
    pub(crate) const OUT_OF_RANGE: Self = Self(11);
    pub(crate) const UNIMPLEMENTED: Self = Self(12);
    pub(crate) const INTERNAL: Self = Self(13);
    pub(crate) const UNAVAILABLE: Self = Self(14);
    pub(crate) const UNAUTHENTICATED: Self = Self(16);

    /// Its name, for those that refusals have.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::INVALID_ARGUMENT => "INVALID_ARGUMENT",
            Self::RESOURCE_EXHAUSTED => "RESOURCE_EXHAUSTED",
            Self::FAILED_PRECONDITION => "FAILED_PRECONDITION",
            Self::ABORTED => "ABORTED",
            Self::UNIMPLEMENTED => "UNIMPLEMENTED",
            Self::INTERNAL => "INTERNAL",
            Self::UNAVAILABLE => "UNAVAILABLE",
            Self::UNAUTHENTICATED => "UNAUTHENTICATED",
            _ => "UNKNOWN",
        }
    }

    /// The status among these fields; `None` if none is there, or it is no number.
    pub(crate) fn of(fields: &HeaderMap) -> Option<Self> {
        let text = fields.get(GRPC_STATUS)?.to_str().ok()?;
        text.parse().ok().map(Self)
    }
}

/// Whether these fields bear a status other than `OK`.
pub(crate) fn has_failed(fields: &HeaderMap) -> bool {
    Code::of(fields).is_some_and(|code| code != Code::OK)
}

/// The statuses that [`verdict`] releases, in words.
pub(crate) const RELEASED: &str =
    "PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE and UNAUTHENTICATED";

/// The statuses that [`verdict`] takes for failures, in words.
pub(crate) const FAILED: &str = "CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL and DATA_LOSS";

/// Decides by the status, as the status that corresponds decides for HTTP.
///
/// If a handler's deadline or its caller's patience ended, it is unknown how far the handler came,
/// so that counts as a failure.
pub(crate) fn verdict(code: Code, errors: ServerErrors) -> Verdict {
    match code {
        Code::OK
        | Code::INVALID_ARGUMENT
        | Code::NOT_FOUND
        | Code::ALREADY_EXISTS
        | Code::FAILED_PRECONDITION
        | Code::ABORTED
        | Code::OUT_OF_RANGE => Verdict::Store,
        Code::PERMISSION_DENIED
        | Code::RESOURCE_EXHAUSTED
        | Code::UNIMPLEMENTED
        | Code::UNAVAILABLE
        | Code::UNAUTHENTICATED => Verdict::Release,
        _ => errors.into(),
    }
}

/// Whether a policy keeps the fields without which a response is none of gRPC.
pub(crate) fn is_kept_by(policy: &HeaderPolicy) -> bool {
    [
        CONTENT_TYPE,
        GRPC_STATUS,
        GRPC_MESSAGE,
        GRPC_DETAILS,
        GRPC_ENCODING,
    ]
    .iter()
    .all(|name| policy.keeps(name))
}

/// Tells whether a body holds exactly one message, as those of unary calls do: a byte that says
/// whether it is compressed, its length in four bytes, and the message.
pub(crate) fn is_one_message(body: &[u8]) -> bool {
    let message = body.split_first_chunk::<5>();
    message.is_some_and(|([_, length @ ..], message)| {
        usize::try_from(u32::from_be_bytes(*length)).is_ok_and(|length| length == message.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_116_a_status_means_what_the_table_says() {
        let failed = ServerErrors::Uncertain;
        for (is, codes) in [
            (Verdict::Store, &[0, 3, 5, 6, 9, 10, 11][..]),
            (Verdict::Release, &[7, 8, 12, 14, 16]),
            (Verdict::Uncertain, &[1, 2, 4, 13, 15, 17, 255]),
        ] {
            for code in codes {
                assert_eq!(verdict(Code(*code), failed), is, "{code}");
            }
        }
    }

    #[test]
    fn s_117_one_message_is_told_from_none_and_from_many() {
        let message = b"\0\0\0\0\x02ab";
        assert!(is_one_message(message));
        assert!(is_one_message(b"\x01\0\0\0\0"));
        for other in [&b""[..], &message[..6], &message.repeat(2), b"\0\0\0\0"] {
            assert!(!is_one_message(other), "{other:?}");
        }
    }
}

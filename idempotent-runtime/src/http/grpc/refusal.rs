//! A refusal as a response of gRPC.

use bytes::Bytes;
use http::{HeaderValue, Response, header::CONTENT_TYPE};

use super::{Code, GRPC_DETAILS, GRPC_MESSAGE, GRPC_STATUS, details};
use crate::http::problem::{Kind, Problem};

/// Makes the response without a body that says all of it among its header fields.
pub(crate) fn respond(problem: &Problem) -> Response<Bytes> {
    let code = match code(problem.kind()) {
        // Clients send a call again that is said to be unavailable.
        Code::UNAVAILABLE if !problem.is_retryable() => Code::INTERNAL,
        code => code,
    };
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(code.0)));
    // Percent-encoded text, and base64, can stand in a header field.
    if let Ok(message) = HeaderValue::try_from(percent_encoded(problem.detail())) {
        headers.insert(GRPC_MESSAGE, message);
    }
    if let Ok(details) = HeaderValue::try_from(base64(&details::status(code, problem))) {
        headers.insert(GRPC_DETAILS, details);
    }
    response
}

/// The status says what a client of gRPC is to do. After UNAVAILABLE it sends the call again, and
/// after ABORTED it does so later. After FAILED_PRECONDITION it does so only when something has
/// changed.
pub(crate) fn code(kind: Kind) -> Code {
    match kind {
        Kind::KeyMissing | Kind::KeyInvalid => Code::INVALID_ARGUMENT,
        Kind::KeyReused
        | Kind::InnerCallRefused
        | Kind::OutcomeUnknown
        | Kind::ResultUnavailable
        | Kind::ResultExpired => Code::FAILED_PRECONDITION,
        Kind::RequestInProgress => Code::ABORTED,
        Kind::ScopeUnresolved => Code::UNAUTHENTICATED,
        Kind::BodyTooLarge | Kind::TooManyKeys => Code::RESOURCE_EXHAUSTED,
        Kind::BodyUnreadable
        | Kind::BodyTimeout
        | Kind::StoreUnavailable
        | Kind::Overloaded
        | Kind::TooEarly
        | Kind::ResultOutOfReach => Code::UNAVAILABLE,
        Kind::NotSupported => Code::UNIMPLEMENTED,
        Kind::HandlerFailed | Kind::Misconfigured => Code::INTERNAL,
    }
}

/// Writes a message as the protocol asks for: bytes that are not printable ASCII, and the sign
/// itself, as `%` and two digits.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Writes bytes as the values of binary fields are sent: in base64 without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(bits);
        for digit in 0..=three.len() {
            let six = (bits >> (18 - 6 * digit)) & 0b11_1111;
            text.push(char::from(DIGITS[six as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::Error,
        store::{StoreError, StoreErrorKind},
    };

    #[test]
    fn mend_24_a_store_that_has_to_be_mended_is_not_told_as_unavailable() {
        for (kind, code) in [
            (StoreErrorKind::Unavailable, Code::UNAVAILABLE),
            (StoreErrorKind::Denied, Code::INTERNAL),
        ] {
            let error = Error::from(StoreError::new(kind, "claiming a key"));
            let response = respond(&Problem::from(&error));
            let told = &response.headers()[GRPC_STATUS];
            assert_eq!(*told, HeaderValue::from(u16::from(code.0)), "{kind:?}");
        }
    }

    #[test]
    fn s_116_a_message_may_hold_any_text() {
        assert_eq!(percent_encoded("100 % sure\n"), "100 %25 sure%0A");
        assert_eq!(percent_encoded("für"), "f%C3%BCr");
    }

    #[test]
    fn s_116_binary_fields_are_in_base64_without_padding() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"\xfb\xff\xfe\x00", "+//+AA"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }
}

//! Tells whether a client can read a stored body in the coding that it is stored in.

use http::{
    HeaderMap, HeaderName,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING},
};

use super::grpc;

/// Tells whether a client can read a body that is stored in this coding, by the codings that it
/// accepts. It is stored in one only if compression stands inside of the layer, by mistake, or if
/// gRPC compresses messages.
///
/// A client that refuses a body without a coding can be given one nevertheless: the compression for
/// it stands outside.
pub(super) fn can_be_read(stored: &HeaderMap, request: &HeaderMap) -> bool {
    let is_accepted = |(codings, accepts): (&HeaderName, &HeaderName)| {
        items(stored, codings)
            .filter(|coding| !coding.eq_ignore_ascii_case("identity"))
            .all(|coding| accepts_coding(request, accepts, coding))
    };
    [
        (&CONTENT_ENCODING, &ACCEPT_ENCODING),
        (&grpc::GRPC_ENCODING, &grpc::GRPC_ACCEPT_ENCODING),
    ]
    .into_iter()
    .all(is_accepted)
}

/// Tells whether a request accepts a coding: by its words about this one. Only if it has none, its
/// words about all others with `*` count (RFC 9110, section 12.5.3).
fn accepts_coding(request: &HeaderMap, accepts: &HeaderName, coding: &str) -> bool {
    let said_of = |coding: &str| {
        items(request, accepts).find_map(|item| {
            let mut words = item.split(';').map(str::trim);
            let is_meant = words.next()?.eq_ignore_ascii_case(coding);
            is_meant.then(|| !words.any(is_zero_weight))
        })
    };
    // A client that names none accepts any, except for gRPC.
    let unsaid = accepts == ACCEPT_ENCODING && !request.contains_key(accepts);
    said_of(coding).or_else(|| said_of("*")).unwrap_or(unsaid)
}

fn is_zero_weight(parameter: &str) -> bool {
    let weight = parameter.split_once('=');
    weight.is_some_and(|(name, weight)| {
        name.eq_ignore_ascii_case("q") && weight.bytes().all(|digit| matches!(digit, b'0' | b'.'))
    })
}

/// The items that a header field lists, over all its lines. A line that is no text is one unknown
/// item.
fn items<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    fields
        .get_all(name)
        .iter()
        .flat_map(|line| line.to_str().unwrap_or("\u{fffd}").split(','))
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

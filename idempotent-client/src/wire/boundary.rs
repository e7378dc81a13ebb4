//! The boundary of a form with parts: chosen by its content, so that one intent is the same bytes
//! however often it is asked for.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};

use idempotent_runtime::__client::{Hex, sha256, write_framed};

/// Puts another boundary in the place of the random one, if the body is one with parts.
///
/// Code that makes a form takes a new boundary each time. A server that compares bytes, and the
/// journal, would then take one intent that is asked for twice for two requests under one key.
pub(crate) fn settle(headers: &mut HeaderMap, body: Bytes) -> Bytes {
    let Some((settled, content_type)) = settled(headers, &body) else {
        return body;
    };
    headers.insert(CONTENT_TYPE, content_type);
    if headers.contains_key(CONTENT_LENGTH) {
        headers.insert(CONTENT_LENGTH, settled.len().into());
    }
    settled
}

fn settled(headers: &HeaderMap, body: &Bytes) -> Option<(Bytes, HeaderValue)> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let (before, boundary, after) = split(content_type)?;
    let pieces = pieces(body, boundary)?;
    let mut hashed = Vec::new();
    write_framed(&mut hashed, b"idempotent-client-boundary-1");
    for piece in [before.as_bytes(), after.as_bytes()].iter().chain(&pieces) {
        write_framed(&mut hashed, piece);
    }
    let other = format!("idempotent-{}", Hex(&sha256(&mut hashed)[..16]));
    let mut settled = BytesMut::with_capacity(body.len() + pieces.len() * other.len());
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            settled.put_slice(other.as_bytes());
        }
        settled.put_slice(piece);
    }
    let content_type = HeaderValue::try_from(format!("{before}{other}{after}")).ok()?;
    Some((settled.freeze(), content_type))
}

/// The text before the boundary in a content type, the boundary, and the text after it.
fn split(content_type: &str) -> Option<(&str, &str, &str)> {
    const NAME: &str = "boundary=";
    let lower = content_type.to_ascii_lowercase();
    if !lower.starts_with("multipart/") {
        return None;
    }
    let at = lower.match_indices(';').find_map(|(semicolon, _)| {
        let name = lower[semicolon + 1..].trim_start();
        name.starts_with(NAME)
            .then(|| lower.len() - name.len() + NAME.len())
    })?;
    let value = &content_type[at..];
    let (from, until) = match value.strip_prefix('"') {
        Some(quoted) => (1, 1 + quoted.find('"')?),
        None => (0, value.find([';', ' ', '\t']).unwrap_or(value.len())),
    };
    let boundary = &value[from..until];
    // A boundary with escapes in quotes is not taken apart.
    let is_plain = !boundary.is_empty() && !boundary.contains('\\');
    is_plain.then(|| (&content_type[..at + from], boundary, &value[until..]))
}

/// The pieces of a body around each boundary at the beginning of a line, after two hyphens; `None`
/// if the body does not end as one with parts.
fn pieces<'a>(body: &'a [u8], boundary: &str) -> Option<Vec<&'a [u8]>> {
    let delimiter = format!("--{boundary}");
    let delimiter = delimiter.as_bytes();
    let mut pieces = Vec::new();
    let mut begun = 0;
    let mut at = 0;
    while let Some(found) = find(&body[at..], delimiter) {
        let start = at + found;
        at = start + delimiter.len();
        if start == 0 || body[..start].ends_with(b"\r\n") {
            pieces.push(&body[begun..start + 2]);
            begun = at;
        }
    }
    let last = &body[begun..];
    pieces.push(last);
    (pieces.len() > 1 && last.starts_with(b"--")).then_some(pieces)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(content_type: &str, length: usize) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let content_type = content_type.parse().expect("a value");
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(CONTENT_LENGTH, length.into());
        headers
    }

    /// The type and the body that are sent.
    fn sent(content_type: &str, body: &str) -> (String, String) {
        let mut headers = headers(content_type, body.len());
        let settled = settle(&mut headers, Bytes::copy_from_slice(body.as_bytes()));
        assert_eq!(headers[CONTENT_LENGTH], settled.len().to_string());
        let content_type = headers[CONTENT_TYPE].to_str().expect("ASCII");
        let body = std::str::from_utf8(&settled).expect("text");
        (content_type.to_owned(), body.to_owned())
    }

    fn form(boundary: &str, parts: &[&str]) -> String {
        let parts = parts.iter().map(|part| {
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{part}\r\n")
        });
        format!("{}--{boundary}--\r\n", parts.collect::<String>())
    }

    #[test]
    fn cl32_one_content_has_one_boundary() {
        let (one_type, one) = sent(
            "multipart/form-data; boundary=abc",
            &form("abc", &["x", "y"]),
        );
        let other = sent(
            "multipart/form-data; boundary=defg",
            &form("defg", &["x", "y"]),
        );
        assert_eq!((&one_type, &one), (&other.0, &other.1));

        let boundary = one_type.strip_prefix("multipart/form-data; boundary=");
        let boundary = boundary.expect("the rest of the type stays");
        assert_eq!(one, form(boundary, &["x", "y"]), "the parts stay");
    }

    #[test]
    fn cl32_other_content_has_another_boundary() {
        let mut seen = std::collections::BTreeSet::new();
        for parts in [
            &["x", "y"][..],
            &["y", "x"],
            &["x\r\n", "y"],
            &["x", "\r\ny"],
            &["xy"],
            &["x", "y", ""],
        ] {
            let sent = sent("multipart/form-data; boundary=abc", &form("abc", parts));
            assert!(seen.insert(sent.0), "{parts:?}");
        }
    }

    #[test]
    fn cl32_a_boundary_within_a_line_is_content() {
        let parts = ["x--abc", "--ab", "abc"];
        let (content_type, body) = sent("multipart/mixed; boundary=abc", &form("abc", &parts));
        let (_, boundary) = content_type.split_once('=').expect("a boundary");
        assert_eq!(body, form(boundary, &parts));
    }

    #[test]
    fn cl32_a_content_type_is_taken_apart_as_it_is_written() {
        for (content_type, expected) in [
            (
                "multipart/form-data;boundary=abc",
                ("multipart/form-data;boundary=", ""),
            ),
            (
                "Multipart/Mixed; Boundary=\"abc\"",
                ("Multipart/Mixed; Boundary=\"", "\""),
            ),
            (
                "multipart/related; type=\"a/b\"; boundary=abc; start=c",
                ("multipart/related; type=\"a/b\"; boundary=", "; start=c"),
            ),
        ] {
            let (before, after) = expected;
            assert_eq!(split(content_type), Some((before, "abc", after)));
        }
    }

    #[test]
    fn cl32_what_is_no_form_stays_as_it_is() {
        for (content_type, body) in [
            ("text/plain; boundary=abc", form("abc", &["x"])),
            ("multipart/form-data", form("abc", &["x"])),
            ("multipart/form-data; boundary=", form("abc", &["x"])),
            ("multipart/form-data; boundary=other", form("abc", &["x"])),
            (
                "multipart/form-data; boundary=abc",
                "--abc\r\n\r\nx\r\n".to_owned(),
            ),
            (
                "multipart/form-data; boundary=\"a\\bc\"",
                form("a\\bc", &["x"]),
            ),
            ("multipart/form-data; boundary=abc", String::new()),
        ] {
            assert_eq!(sent(content_type, &body), (content_type.to_owned(), body));
        }
    }
}

use http_body::Body as _;
use http_body_util::BodyExt as _;
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::http::headers::tests::map;

fn plain(status: StatusCode, body: &'static [u8]) -> StoredResponse {
    StoredResponse::new(status, HeaderMap::new(), body, HeaderMap::new())
}

/// Puts the digest in place that the rest asks for.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = digest_of(&bytes[1 + DIGEST..]);
    bytes[1..=DIGEST].copy_from_slice(&digest);
    bytes
}

/// A record of the present format, whose contents are anything.
fn record(contents: &[u8]) -> Vec<u8> {
    sealed([&[FORMAT; 1 + DIGEST], contents].concat())
}

#[test]
fn the_format_stays_what_it_is() {
    let response = StoredResponse::new(
        StatusCode::CREATED,
        map(&[("link", b"<a>"), ("link", b"<b>"), ("x", b"\xff")]),
        &b"{}"[..],
        map(&[("grpc-status", b"0")]),
    );
    let bytes = response.encode();
    let contents = b"\x00\xc9\x03\x04link\x00\x03<a>\x04link\x00\x03<b>\x01x\x00\x01\xff\x01\x0bgrpc-status\x00\x010{}";
    let digest = [92, 64, 14, 35, 101, 179, 58, 225];
    assert_eq!(bytes, [&[1], &digest[..], contents].concat());
}

#[test]
fn s_36_a_replay_has_the_status_the_fields_and_the_body_and_a_mark() {
    let stored = StoredResponse::new(
        StatusCode::CREATED,
        map(&[("location", b"/orders/42")]),
        &b"order 42"[..],
        HeaderMap::new(),
    );
    let first = stored.clone().into_response();
    assert_eq!(first.headers(), &map(&[("location", b"/orders/42")]));
    let replay = stored.into_replay();
    assert_eq!(replay.status(), 201);
    let expected = map(&[
        ("location", b"/orders/42"),
        ("idempotent-replayed", b"true"),
    ]);
    assert_eq!(replay.headers(), &expected);
}

#[test]
fn what_stands_in_a_response_is_not_shown() {
    let stored = StoredResponse::new(
        StatusCode::OK,
        map(&[("set-cookie", b"secret")]),
        &b"secret"[..],
        map(&[("signature", b"secret")]),
    );
    let body = stored.clone().into_response().into_body();
    for shown in [format!("{stored:?}"), format!("{body:?}")] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn s_35_a_response_is_captured_as_the_policy_says() {
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = StatusCode::PAYMENT_REQUIRED;
    head.headers = map(&[("date", b"now"), ("etag", b"1"), ("content-length", b"7")]);
    let trailers = map(&[("set-cookie", b"a"), ("grpc-status", b"0")]);
    let captured = StoredResponse::capture(
        &head,
        &b"no funds"[..],
        Some(&trailers),
        &HeaderPolicy::new(),
    );
    assert_eq!(captured.status(), 402);
    assert_eq!(captured.headers(), &map(&[("etag", b"1")]));
    assert_eq!(captured.trailers(), &map(&[("grpc-status", b"0")]));
    assert_eq!(captured.body(), &b"no funds"[..]);
}

#[tokio::test]
async fn s_82_a_status_that_allows_no_body_gets_none_and_no_length() {
    for status in [100, 103, 204, 205, 304] {
        let status = StatusCode::from_u16(status).expect("a status");
        let stored = plain(status, b"there should be none");
        assert_eq!(StoredResponse::decode(&stored.encode()), Ok(stored.clone()));
        let replay = stored.into_replay();
        assert!(replay.body().is_end_stream());
        assert!(!replay.headers().contains_key("content-length"));
        let collected = replay.into_body().collect().await.expect("no errors");
        assert_eq!(collected.to_bytes(), Bytes::new());
    }
}

#[tokio::test]
async fn s_83_trailers_come_after_the_body_and_are_announced() {
    let trailers = map(&[("grpc-status", b"0"), ("grpc-message", b"fine")]);
    let stored = StoredResponse::new(
        StatusCode::OK,
        HeaderMap::new(),
        &b"data"[..],
        trailers.clone(),
    );
    let replay = stored.into_replay();
    assert_eq!(replay.headers()["trailer"], "grpc-status, grpc-message");
    assert_eq!(replay.body().size_hint().exact(), None);
    assert_eq!(replay.body().size_hint().lower(), 4);
    let mut body = replay.into_body();
    let data = body.frame().await.expect("data").expect("no errors");
    assert_eq!(data.into_data().ok(), Some(Bytes::from_static(b"data")));
    assert!(!body.is_end_stream());
    let end = body.frame().await.expect("trailers").expect("no errors");
    assert_eq!(end.into_trailers().ok(), Some(trailers));
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
}

#[test]
fn s_75_a_body_without_trailers_tells_its_length() {
    let replay = plain(StatusCode::OK, b"data").into_replay();
    assert_eq!(replay.body().size_hint().exact(), Some(4));
    assert!(!replay.headers().contains_key("trailer"));
}

#[test]
fn s_109_a_record_of_another_format_is_told_apart_from_a_corrupt_one() {
    let mut bytes = plain(StatusCode::OK, b"data").encode();
    bytes[0] = 2;
    let unknown = UnreadableResponse::UnknownFormat { format: 2 };
    assert_eq!(StoredResponse::decode(&bytes), Err(unknown));
    // An annotated function stores JSON.
    let unknown = UnreadableResponse::UnknownFormat { format: b'{' };
    assert_eq!(StoredResponse::decode(b"{\"id\":42}"), Err(unknown));
    assert_eq!(
        StoredResponse::decode(b""),
        Err(UnreadableResponse::Corrupt)
    );
}

#[test]
fn s_109_contents_that_no_response_has_are_corrupt_even_under_a_sound_digest() {
    let sound = b"\x00\xc8\x01\x01a\x00\x01b\x00data";
    assert!(StoredResponse::decode(&record(sound)).is_ok());
    for contents in [
        &b""[..],
        b"\x00",
        b"\x00\xc8",
        b"\x00\xc8\x00",
        b"\x00\x63\x00\x00",
        b"\x03\xe8\x00\x00",
        b"\xff\xff\x00\x00",
        b"\x00\xc8\x02\x01a\x00\x01b",
        b"\x00\xc8\x01\x01A\x00\x01b\x00",
        b"\x00\xc8\x01\x00\x00\x01b\x00",
        b"\x00\xc8\x01\x01 \x00\x01b\x00",
        b"\x00\xc8\x01\x01a\x02\x01b\x00",
        b"\x00\xc8\x01\x01a\x00\x01\n\x00",
        b"\x00\xc8\x01\x01a\x00\x05b\x00",
        b"\x00\xc8\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x00\xc8\xff\xff\xff\xff\x0f\x01a\x00\x01b\x00",
        b"\x00\xcc\x00\x00data",
    ] {
        let found = StoredResponse::decode(&record(contents));
        assert_eq!(found, Err(UnreadableResponse::Corrupt), "{contents:?}");
    }
}

#[test]
fn s_109_more_fields_than_a_map_holds_are_corrupt() {
    let mut contents = b"\x00\xc8".to_vec();
    write_number(&mut contents, 40_000);
    for number in 0..40_000 {
        write_framed(&mut contents, format!("x-{number}").as_bytes());
        contents.push(0);
        write_framed(&mut contents, b"");
    }
    contents.push(0);
    let found = StoredResponse::decode(&record(&contents));
    assert_eq!(found, Err(UnreadableResponse::Corrupt));
}

#[test]
fn a_shared_body_is_not_copied() {
    let bytes = Bytes::from(plain(StatusCode::OK, b"data").encode());
    let shared = StoredResponse::decode_shared(&bytes).expect("what was written");
    assert_eq!(shared.body().as_ptr(), bytes[bytes.len() - 4..].as_ptr());
    let copied = StoredResponse::decode(&bytes).expect("what was written");
    assert_eq!(copied, shared);
}

#[test]
fn s_119_debug_output_shows_no_values() {
    let stored = StoredResponse::new(
        StatusCode::OK,
        map(&[("x-secret", b"hidden")]),
        &b"hidden"[..],
        map(&[("x-end", b"hidden")]),
    );
    let shown = format!("{stored:?}");
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(
        shown.contains("x-secret") && shown.contains("6 bytes"),
        "{shown}"
    );
}

fn fields() -> impl Strategy<Value = HeaderMap> {
    let value = vec(prop_oneof![Just(b'\t'), b' '..=b'~', 0x80..=0xff_u8], 0..12);
    let field = ("[a-z][a-z0-9-]{0,5}", value, any::<bool>());
    vec(field, 0..8).prop_map(|fields| {
        let mut headers = HeaderMap::new();
        for (name, value, sensitive) in fields {
            let name: HeaderName = name.parse().expect("a name");
            let mut value = HeaderValue::from_bytes(&value).expect("a value");
            value.set_sensitive(sensitive);
            headers.append(name, value);
        }
        headers
    })
}

fn response() -> impl Strategy<Value = StoredResponse> {
    (100_u16..1000, fields(), vec(any::<u8>(), 0..200), fields()).prop_map(
        |(status, headers, body, trailers)| {
            let status = StatusCode::from_u16(status).expect("three digits");
            StoredResponse::new(status, headers, body, trailers)
        },
    )
}

/// Everything of a map, in its order, with the marks that `==` overlooks.
fn whole(headers: &HeaderMap) -> Vec<(&str, &[u8], bool)> {
    let fields = headers.iter();
    fields
        .map(|(name, value)| (name.as_str(), value.as_bytes(), value.is_sensitive()))
        .collect()
}

proptest! {
    #[test]
    fn s_91_what_was_written_is_read_byte_for_byte(stored in response()) {
        let read = StoredResponse::decode(&stored.encode());
        prop_assert_eq!(read.as_ref(), Ok(&stored));
        let read = read.expect("just looked at");
        prop_assert_eq!(whole(read.headers()), whole(stored.headers()));
        prop_assert_eq!(whole(read.trailers()), whole(stored.trailers()));
        prop_assert_eq!(read.encode(), stored.encode());
    }

    #[test]
    fn s_109_a_changed_byte_is_always_found(stored in response(), at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let mut bytes = stored.encode();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(StoredResponse::decode(&bytes).is_err());
    }

    #[test]
    fn s_109_a_record_that_was_cut_short_or_goes_on_is_always_found(stored in response(), at in any::<prop::sample::Index>(), more in vec(any::<u8>(), 1..9)) {
        let bytes = stored.encode();
        prop_assert!(StoredResponse::decode(&bytes[..at.index(bytes.len())]).is_err());
        prop_assert!(StoredResponse::decode(&[bytes, more].concat()).is_err());
    }

    #[test]
    fn s_109_any_contents_are_refused_or_are_a_response(contents in vec(any::<u8>(), 0..60), stored in response(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut changed = stored.encode();
        let at = 1 + DIGEST + at.index(changed.len() - 1 - DIGEST);
        changed[at] = byte;
        for bytes in [contents.clone(), record(&contents), sealed(changed)] {
            if let Ok(read) = StoredResponse::decode(&bytes) {
                prop_assert_eq!(StoredResponse::decode(&read.encode()), Ok(read.clone()));
                let replay = read.into_replay();
                prop_assert_eq!(&replay.headers()["idempotent-replayed"], "true");
            }
        }
    }
}

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{IDEMPOTENCY_KEY, IdempotencyKey, KeyReader, Syntax, vectors::VECTORS};

fn map(name: HeaderName, lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let value = HeaderValue::from_bytes(line).expect("a value that HTTP can carry");
        headers.append(name.clone(), value);
    }
    headers
}

fn read(reader: &KeyReader, headers: &HeaderMap) -> Result<String, &'static str> {
    match reader.read(headers) {
        Ok(Some(key)) => Ok(key.as_str().to_owned()),
        Ok(None) => Err("none"),
        Err(error) => Err(error.reason().as_str()),
    }
}

#[test]
fn s_01_to_s_22_every_vector_is_read_as_it_says_under_both_syntaxes() {
    for vector in VECTORS {
        let headers = map(IDEMPOTENCY_KEY, vector.lines);
        for (syntax, expected) in [
            (Syntax::Compatible, vector.compatible),
            (Syntax::Strict, vector.strict),
        ] {
            let found = read(&KeyReader::new().syntax(syntax), &headers);
            let expected = expected.map(str::to_owned);
            assert_eq!(found, expected, "{} {headers:?} {syntax:?}", vector.id);
        }
    }
}

#[test]
fn a_key_is_written_as_the_string_that_it_is_read_from() {
    let key = IdempotencyKey::new(r#"a"b\c"#).expect("a key");
    let value = key.to_header_value();
    assert_eq!(value.as_bytes(), br#""a\"b\\c""#);
    assert_eq!(
        IdempotencyKey::parse(value.as_bytes(), Syntax::Strict),
        Ok(key)
    );
}

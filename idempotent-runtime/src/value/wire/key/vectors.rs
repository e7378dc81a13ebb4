//! Field values and what becomes of them, by the ids of the conformance checklist. Plain data, so
//! that tests of other packages can include this file.

/// The lines of one field, and the key that is read from them, or the name of the reason why none
/// is.
pub(crate) struct Vector {
    pub(crate) id: &'static str,
    pub(crate) lines: &'static [&'static [u8]],
    pub(crate) compatible: Result<&'static str, &'static str>,
    pub(crate) strict: Result<&'static str, &'static str>,
}

const fn both(
    id: &'static str,
    lines: &'static [&'static [u8]],
    result: Result<&'static str, &'static str>,
) -> Vector {
    Vector {
        id,
        lines,
        compatible: result,
        strict: result,
    }
}

/// A value that is a key only where it may be taken as it stands.
const fn raw(id: &'static str, lines: &'static [&'static [u8]], key: &'static str) -> Vector {
    Vector {
        id,
        lines,
        compatible: Ok(key),
        strict: Err("not_a_string"),
    }
}

const UUID: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

pub(crate) const VECTORS: &[Vector] = &[
    both(
        "S-01",
        &[b"\"8e03978e-40d5-43e8-bc93-6894a57f9324\""],
        Ok(UUID),
    ),
    both(
        "S-02",
        &[b"\"clkyoesmbgybucifusbbtdsbohtyuuwz\""],
        Ok("clkyoesmbgybucifusbbtdsbohtyuuwz"),
    ),
    raw("S-03", &[b"8e03978e-40d5-43e8-bc93-6894a57f9324"], UUID),
    raw(
        "S-04",
        &[b"ae03978e-40d5-43e8-bc93-6894a57f9324"],
        "ae03978e-40d5-43e8-bc93-6894a57f9324",
    ),
    both("S-07", &[br#""a\"b""#], Ok("a\"b")),
    both("S-07", &[br#""a\\b""#], Ok("a\\b")),
    both("S-07", &[br#""\"""#], Ok("\"")),
    both("S-08", &[br#""a\nb""#], Err("bad_escape")),
    both("S-08", &[br#""foo \,""#], Err("bad_escape")),
    both("S-09", &[b"\"abc"], Err("unterminated")),
    both("S-09", &[b"abc\""], Err("not_a_string")),
    both("S-09", &[b"\"abc\\"], Err("unterminated")),
    both("S-09", &[b"\"abc\\\""], Err("unterminated")),
    both("S-09", &[b"\""], Err("unterminated")),
    both("S-09", &[b"'abc'"], Err("not_a_string")),
    both("S-10", &[b"\"abc\"x"], Err("trailing_data")),
    both("S-10", &[b"\"abc\" x"], Err("trailing_data")),
    both("S-10", &[b"(\"abc\")"], Err("not_a_string")),
    both("S-10", &[b"(abc)"], Err("not_a_string")),
    both("S-10", &[b":YQ==:"], Err("not_a_string")),
    both("S-10", &[b"%\"f%c3%bc\""], Err("not_a_string")),
    raw("S-10", &[b"42"], "42"),
    raw("S-10", &[b"4.2"], "4.2"),
    raw("S-10", &[b"?1"], "?1"),
    raw("S-10", &[b"@1659578233"], "@1659578233"),
    both("S-11", &[b"\"abc\";v=1;foo"], Ok("abc")),
    both(
        "S-11",
        &[b"\"abc\";   v=\"x;y\"; w=?0;x=:YQ==:;y=@1;z=%\"%c3%bc\";*=-1.5;a=t/:"],
        Ok("abc"),
    ),
    both("S-11", &[b"\"abc\";z=%\"%6f%c3%bf\""], Ok("abc")),
    both("S-11", &[b"\"abc\";V=1"], Err("trailing_data")),
    both("S-11", &[b"\"abc\";"], Err("trailing_data")),
    both("S-11", &[b"\"abc\" ;v=1"], Err("trailing_data")),
    both("S-11", &[b"\"abc\";v="], Err("trailing_data")),
    both("S-11", &[b"\"abc\";v =1"], Err("trailing_data")),
    both("S-12", &[b"\"a\"", b"\"b\""], Err("multiple_field_lines")),
    both("S-13", &[b"\"a\"", b"\"a\""], Err("multiple_field_lines")),
    both("S-13", &[b"\"a\", \"a\""], Err("trailing_data")),
    Vector {
        id: "S-13",
        lines: &[b"a, a"],
        compatible: Err("multiple_field_lines"),
        strict: Err("not_a_string"),
    },
    both("S-14", &[b"\"foo", b"bar\""], Err("multiple_field_lines")),
    both("S-15", &[b""], Err("empty")),
    both("S-15", &[b"  "], Err("empty")),
    both("S-15", &[b"\"\""], Err("empty")),
    both("S-15", &[b"\"   \""], Err("empty")),
    both("S-18", &[b"\"f\xc3\xbc\xc3\xbc\""], Err("non_ascii")),
    both("S-18", &[b"\"f\xfc\xfc\""], Err("non_ascii")),
    Vector {
        id: "S-18",
        lines: &[b"\xe2\x80\x9cabc\xe2\x80\x9d"],
        compatible: Err("non_ascii"),
        strict: Err("not_a_string"),
    },
    both("S-19", &[b"\"a\tb\""], Err("non_ascii")),
    both("S-20", &[b" \t \"abc\" \t"], Ok("abc")),
    both("S-22", &[br#""a:b/c,d%2e../\\n""#], Ok("a:b/c,d%2e../\\n")),
    raw("S-22", &[br"a:b/c%2e../\n"], r"a:b/c%2e../\n"),
];

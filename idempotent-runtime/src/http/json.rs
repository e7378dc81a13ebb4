//! One form for all spellings of a JSON text, so that a client that writes its members in another
//! order repeats the same request.

use std::ops::Range;

use crate::framing::write_framed;

/// How deep arrays and objects may lie in each other; a text that goes deeper is compared byte by
/// byte.
const DEEPEST: usize = 128;

/// The canonical form of a JSON text: white space, the order of members and the spelling of strings
/// and numbers do not matter, and everything else does. It is no JSON itself: each value is marked
/// with its type and framed by its length.
///
/// `None` if the text is no JSON, if it names a member of an object twice, whose meaning readers do
/// not agree on, or if it is nested too deeply.
///
/// Numbers are compared as decimals of any length, never as floats: `1.0` is `1` and `10e-1`, while
/// 2⁵³ and 2⁵³ + 1 differ.
pub(super) fn canonical(text: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader { text, at: 0 };
    let mut form = Vec::with_capacity(text.len());
    reader.value(&mut form, DEEPEST)?;
    reader.skip_space();
    (reader.at == text.len()).then_some(form)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.skip_space();
        match self.peek()? {
            b'{' => self.object(form, depth.checked_sub(1)?),
            b'[' => self.array(form, depth.checked_sub(1)?),
            b'"' => {
                let string = self.string()?;
                form.push(b's');
                write_framed(form, string.as_bytes());
                Some(())
            }
            b't' => self.word(b"true", form),
            b'f' => self.word(b"false", form),
            b'n' => self.word(b"null", form),
            _ => self.number(form),
        }
    }

    fn object(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        let mut members = Vec::new();
        self.at += 1;
        if !self.takes(b'}') {
            loop {
                self.skip_space();
                let name = self.string()?;
                self.expect(b':')?;
                let mut value = Vec::new();
                self.value(&mut value, depth)?;
                members.push((name, value));
                if self.takes(b'}') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        members.sort_unstable();
        if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        form.push(b'o');
        for (name, value) in members {
            form.push(b'm');
            write_framed(form, name.as_bytes());
            form.extend_from_slice(&value);
        }
        form.push(b'}');
        Some(())
    }

    fn array(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        form.push(b'a');
        self.at += 1;
        if !self.takes(b']') {
            loop {
                self.value(form, depth)?;
                if self.takes(b']') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        form.push(b']');
        Some(())
    }

    /// Finds the end of a string, and leaves its escapes to the JSON library.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(&self.text[start..self.at]).ok()
    }

    fn word(&mut self, word: &'static [u8], form: &mut Vec<u8>) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            form.push(word[0]);
        })
    }

    fn number(&mut self, form: &mut Vec<u8>) -> Option<()> {
        let negative = self.takes_now(b'-');
        let whole = self.digits()?;
        if whole.len() > 1 && self.text[whole.start] == b'0' {
            return None;
        }
        let fraction = if self.takes_now(b'.') {
            self.digits()?
        } else {
            0..0
        };
        let exponent = if self.takes_now(b'e') || self.takes_now(b'E') {
            let sign = if self.takes_now(b'-') {
                -1
            } else {
                self.takes_now(b'+');
                1
            };
            let digits = self.digits()?;
            let digits = std::str::from_utf8(&self.text[digits]).ok()?;
            // An exponent that does not fit belongs to no number that is used in practice.
            sign * digits.parse::<i32>().ok()? as i64
        } else {
            0
        };
        let digits = [&self.text[whole], &self.text[fraction.clone()]].concat();
        write_decimal(form, negative, &digits, exponent - fraction.len() as i64);
        Some(())
    }

    fn digits(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(start..self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it comes next, with white space before it.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.takes_now(byte)
    }

    fn takes_now(&mut self, byte: u8) -> bool {
        let comes = self.peek() == Some(byte);
        self.at += usize::from(comes);
        comes
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }
}

/// Writes a number as its digits without zeros at either end, and the power of ten behind them.
fn write_decimal(form: &mut Vec<u8>, negative: bool, digits: &[u8], exponent: i64) {
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    let significant = &digits[leading..];
    let trailing = significant
        .iter()
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    let significant = &significant[..significant.len() - trailing];
    form.push(b'd');
    if significant.is_empty() {
        write_framed(form, b"0");
        return;
    }
    let sign = if negative { "-" } else { "" };
    let power = exponent + trailing as i64;
    let mut number = sign.as_bytes().to_vec();
    number.extend_from_slice(significant);
    number.extend_from_slice(format!("e{power}").as_bytes());
    write_framed(form, &number);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(one: &str, other: &str) -> bool {
        let one = canonical(one.as_bytes()).expect("it is JSON");
        one == canonical(other.as_bytes()).expect("it is JSON")
    }

    #[test]
    fn spelling_does_not_matter() {
        for (one, other) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                " {\"b\" : [ true,null ],\r\n\t\"a\":1} ",
            ),
            (r#""\u00e9\/""#, "\"é/\""),
            ("1.0", "1"),
            ("10e-1", "1"),
            ("-0", "0"),
            ("0.0e7", "0"),
            ("1200", "1.2E+3"),
            ("-0.50", "-5e-1"),
        ] {
            assert!(equal(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn values_do() {
        for (one, other) in [
            (r#"{"a":null}"#, "{}"),
            ("[1,2]", "[2,1]"),
            ("[[1],2]", "[[1,2]]"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
            ("9007199254740992", "9007199254740993"),
            ("0.1", "0.10000000000000000001"),
            ("1", r#""1""#),
            ("1", "-1"),
            ("null", r#""null""#),
            ("true", "false"),
            (r#"["a","b"]"#, r#"["ab"]"#),
            ("1e400", "1e401"),
        ] {
            assert!(!equal(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn what_is_not_one_json_value_has_no_form() {
        let deep = "[".repeat(200_000);
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "nul",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "1 2",
            "{\"a\":1,\"a\":1}",
            "{\"a\":1,\"\\u0061\":2}",
            "{a:1}",
            "[1 2]",
            "1e99999999999",
            "\"\u{1}\"",
            &deep,
        ] {
            assert_eq!(canonical(text.as_bytes()), None, "{text:.20}");
        }
        assert_eq!(canonical(b"\"\xff\""), None);
    }

    proptest::proptest! {
        #[test]
        fn it_reads_what_the_json_library_reads(text in proptest::string::string_regex("[\\[\\]{}\",:0-9eE.+\\-tfn a\\\\]{0,24}").expect("a pattern")) {
            let reads = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            if canonical(text.as_bytes()).is_some() {
                // A number that overflows a float is a number here.
                let overflows = text.contains(['e', 'E']);
                proptest::prop_assert!(reads || overflows, "{text}");
            }
        }
    }
}

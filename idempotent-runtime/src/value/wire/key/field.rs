//! The grammar of the field's value: a structured-field string with parameters, which are checked
//! and ignored.

use super::{InvalidHeader, Reason, Syntax};

/// The string that a value holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// It stands in the value as it is.
    Borrowed(&'a str),
    /// It had escapes.
    Unescaped(String),
}

/// Printable ASCII, from the blank to the tilde: what a string may hold (RFC 9651, section 3.3.3).
pub(super) fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Parses the value of one field line.
pub(super) fn parse(value: &[u8], syntax: Syntax) -> Result<Parsed<'_>, InvalidHeader> {
    // White space around a value is no part of it (RFC 9110, section 5.5), but not all code that
    // makes header maps takes it off.
    let value = trim(value);
    match (value.first(), syntax) {
        (None, _) => Err(InvalidHeader::empty()),
        (Some(b'"'), _) => quoted(value),
        (Some(_), Syntax::Compatible) => raw(value),
        (Some(_), Syntax::Strict) => Err(InvalidHeader::new(
            Reason::NotAString,
            "expected a quoted string (RFC 9651 section 3.3.3), such as \"8e03978e-40d5-43e8-bc93-6894a57f9324\" with its quotation marks",
        )),
    }
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Takes the value as it stands, unless it looks like something else than one key.
fn raw(value: &[u8]) -> Result<Parsed<'_>, InvalidHeader> {
    if let Some(odd) = value.iter().position(|&byte| !is_printable(byte)) {
        return Err(InvalidHeader::not_printable(odd));
    }
    if matches!(value[0], b'\'' | b'(' | b':') || value.contains(&b'"') {
        return Err(InvalidHeader::new(
            Reason::NotAString,
            "expected a quoted string (RFC 9651 section 3.3.3) or a bare key; this is another kind of value, or lacks its opening quotation mark",
        ));
    }
    if value.contains(&b',') {
        return Err(InvalidHeader::new(
            Reason::MultipleFieldLines,
            "expected exactly one key, found a comma, by which several field lines are joined; a key that holds one must be quoted",
        ));
    }
    let text = std::str::from_utf8(value).expect("printable ASCII is UTF-8");
    Ok(Parsed::Borrowed(text))
}

/// Parses `"…"` and what follows it (RFC 9651, sections 4.2.3 and 4.2.5).
fn quoted(value: &[u8]) -> Result<Parsed<'_>, InvalidHeader> {
    let mut cursor = Cursor(value);
    let parsed = cursor.string()?;
    cursor.parameters().ok_or_else(|| {
        InvalidHeader::new(
            Reason::TrailingData,
            "expected exactly one quoted string (RFC 9651 section 3.3.3), found something after it",
        )
    })?;
    Ok(parsed)
}

/// The bytes that are left to parse.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn string(&mut self) -> Result<Parsed<'a>, InvalidHeader> {
        let unterminated = || {
            InvalidHeader::new(
                Reason::Unterminated,
                "the closing quotation mark is missing",
            )
        };
        let inside = &self.0[1..];
        let mut unescaped: Option<String> = None;
        let mut at = 0;
        loop {
            let byte = *inside.get(at).ok_or_else(unterminated)?;
            let character = match byte {
                b'"' => break,
                b'\\' => {
                    if unescaped.is_none() {
                        unescaped = Some(ascii(&inside[..at]).to_owned());
                    }
                    at += 1;
                    match *inside.get(at).ok_or_else(unterminated)? {
                        escaped @ (b'"' | b'\\') => escaped,
                        _ => {
                            return Err(InvalidHeader::new(
                                Reason::BadEscape,
                                "a backslash may stand only before a quotation mark or a backslash (RFC 9651 section 3.3.3)",
                            ));
                        }
                    }
                }
                byte if is_printable(byte) => byte,
                _ => return Err(InvalidHeader::not_printable(at)),
            };
            if let Some(text) = &mut unescaped {
                text.push(char::from(character));
            }
            at += 1;
        }
        self.0 = &inside[at + 1..];
        Ok(match unescaped {
            Some(text) => Parsed::Unescaped(text),
            None => Parsed::Borrowed(ascii(&inside[..at])),
        })
    }

    /// Parses parameters up to the end of the value (RFC 9651, section 4.2.3.2); `None` when they
    /// are malformed.
    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            while self.take(b' ') {}
            self.key()?;
            if self.take(b'=') {
                self.bare_item()?;
            }
        }
        self.0.is_empty().then_some(())
    }

    fn key(&mut self) -> Option<()> {
        let first = self.next()?;
        (first.is_ascii_lowercase() || first == b'*').then_some(())?;
        self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        });
        Some(())
    }

    fn bare_item(&mut self) -> Option<()> {
        match *self.0.first()? {
            b'"' => self.string().ok().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number().map(|_| ()),
            b'*' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
                Some(())
            }
            b':' => self.byte_sequence(),
            b'?' => {
                self.next();
                matches!(self.next()?, b'0' | b'1').then_some(())
            }
            b'@' => {
                self.next();
                matches!(self.number()?, Number::Integer).then_some(())
            }
            b'%' => self.display_string(),
            _ => None,
        }
    }

    /// An integer of up to 15 digits, or a decimal of up to 12 before and 1 to 3 after the point
    /// (RFC 9651, section 4.2.4).
    fn number(&mut self) -> Option<Number> {
        self.take(b'-');
        let whole = self.take_while(|byte| byte.is_ascii_digit()).len();
        (whole > 0).then_some(())?;
        if !self.take(b'.') {
            return (whole <= 15).then_some(Number::Integer);
        }
        let fraction = self.take_while(|byte| byte.is_ascii_digit()).len();
        (whole <= 12 && (1..=3).contains(&fraction)).then_some(Number::Decimal)
    }

    /// Base64 between colons, whose padding may be missing (RFC 9651, section 4.2.7).
    fn byte_sequence(&mut self) -> Option<()> {
        self.next();
        let digits = self
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
            .len();
        let padding = self.take_while(|byte| byte == b'=').len();
        let complete = match digits % 4 {
            0 => padding == 0,
            1 => false,
            2 => padding <= 2,
            _ => padding <= 1,
        };
        (complete && self.take(b':')).then_some(())
    }

    /// UTF-8 with percent-encoding between quotation marks (RFC 9651, section 4.2.10).
    fn display_string(&mut self) -> Option<()> {
        self.next();
        self.take(b'"').then_some(())?;
        let mut text = Vec::new();
        loop {
            match self.next()? {
                b'"' => return std::str::from_utf8(&text).ok().map(|_| ()),
                b'%' => text.push(self.lower_hex()? << 4 | self.lower_hex()?),
                byte if is_printable(byte) => text.push(byte),
                _ => return None,
            }
        }
    }

    fn lower_hex(&mut self) -> Option<u8> {
        match self.next()? {
            digit @ b'0'..=b'9' => Some(digit - b'0'),
            letter @ b'a'..=b'f' => Some(letter - b'a' + 10),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        if found {
            self.next();
        }
        found
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !belongs(byte));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }
}

enum Number {
    Integer,
    Decimal,
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("only printable ASCII came this far")
}

//! Bytes from Postgres, in either form in which a session may have them written out.

use sqlx::{
    Decode, Row as _, Type,
    error::BoxDynError,
    postgres::{PgRow, PgTypeInfo, PgValueFormat, PgValueRef, Postgres},
};

use crate::store::sql::Row;

/// The value of a `bytea`. As text it has one of the two forms of `bytea_output`, which a role or a
/// database may set, and the driver reads only `hex`.
struct Bytea(Vec<u8>);

#[derive(Debug, thiserror::Error)]
#[error("a backslash stands before no byte")]
struct Torn;

impl Type<Postgres> for Bytea {
    fn type_info() -> PgTypeInfo {
        <Vec<u8> as Type<Postgres>>::type_info()
    }

    fn compatible(other: &PgTypeInfo) -> bool {
        <Vec<u8> as Type<Postgres>>::compatible(other)
    }
}

impl<'r> Decode<'r, Postgres> for Bytea {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let is_text = matches!(value.format(), PgValueFormat::Text);
        // The form `escape` doubles a backslash, so it never begins so.
        if is_text && !value.as_bytes()?.starts_with(b"\\x") {
            let bytes = unescaped(value.as_bytes()?).ok_or(Torn)?;
            return Ok(Self(bytes));
        }
        <Vec<u8> as Decode<Postgres>>::decode(value).map(Self)
    }
}

impl Row for PgRow {
    fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, BoxDynError> {
        let value: Option<Bytea> = self.try_get(place)?;
        Ok(value.map(|Bytea(bytes)| bytes))
    }

    fn text(&self, place: usize) -> Result<Option<String>, BoxDynError> {
        Ok(self.try_get(place)?)
    }

    fn number(&self, place: usize) -> Result<Option<i64>, BoxDynError> {
        Ok(self.try_get(place)?)
    }
}

/// Reads the form `escape`: `\\` is a backslash, `\ooo` the byte of this octal number, and any
/// other byte itself.
fn unescaped(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = match (first, behind) {
            (b'\\', [b'\\', behind @ ..]) => (b'\\', behind),
            (b'\\', [a, b, c, behind @ ..]) => (octal([*a, *b, *c])?, behind),
            (b'\\', _) => return None,
            (byte, behind) => (*byte, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
    Some(bytes)
}

fn octal(digits: [u8; 3]) -> Option<u8> {
    let number = digits.iter().try_fold(0_u32, |number, digit| {
        let digit = char::from(*digit).to_digit(8)?;
        Some(8 * number + digit)
    })?;
    u8::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mend_29_bytes_that_are_escaped_are_read() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let escaped: String = all
            .iter()
            .map(|byte| match byte {
                b'\\' => "\\\\".to_owned(),
                0x20..=0x7e => char::from(*byte).to_string(),
                byte => format!("\\{byte:03o}"),
            })
            .collect();
        assert_eq!(unescaped(escaped.as_bytes()), Some(all));
        assert_eq!(unescaped(b""), Some(Vec::new()));
        for torn in [&b"a\\"[..], b"\\12", b"\\8aa", b"\\777"] {
            assert_eq!(unescaped(torn), None, "{torn:?}");
        }
    }
}

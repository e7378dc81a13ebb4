//! Versions of records as text.

use idempotent_runtime::record::Version;

/// A version as `show` prints it and `--at-version` takes it: 32 hexadecimal digits.
pub(crate) fn text(version: Version) -> String {
    format!("{:032x}", u128::from_be_bytes(version.to_bytes()))
}

/// Reads what [`text`] writes.
pub(crate) fn read(text: &str) -> Option<Version> {
    let is_one = text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let number = is_one.then(|| u128::from_str_radix(text, 16).ok())??;
    Some(Version::from_u128(number))
}

//! A record at the version that a person has seen.

use idempotent_runtime::{identity::RecordId, record::Version};

/// A record that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) id: RecordId,
    pub(crate) version: Version,
}

impl Chosen {
    pub(crate) fn new(id: RecordId, version: Version) -> Self {
        Self { id, version }
    }

    /// The value of its field in a form.
    pub(crate) fn field(&self) -> String {
        format!("{}.{}", self.id.to_hex(), text_of(self.version))
    }

    pub(crate) fn read(field: &str) -> Option<Self> {
        let (id, version) = field.split_once('.')?;
        Some(Self::new(id.parse().ok()?, version_of(version)?))
    }
}

/// A version as a form has it: 32 hexadecimal digits.
pub(crate) fn text_of(version: Version) -> String {
    format!("{:032x}", u128::from_be_bytes(version.to_bytes()))
}

pub(crate) fn version_of(text: &str) -> Option<Version> {
    let is_one = text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let number = is_one.then(|| u128::from_str_radix(text, 16).ok())??;
    Some(Version::from_u128(number))
}

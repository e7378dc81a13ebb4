//! The ids that a call gives to what it creates.

use std::fmt;

/// An id derived from a call's identity, in the form of a UUID (version 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChildId([u8; 16]);

impl ChildId {
    /// Takes bytes whose version and variant are set.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the UUID.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(feature = "uuid")]
impl From<ChildId> for uuid::Uuid {
    fn from(id: ChildId) -> Self {
        uuid::Uuid::from_bytes(id.0)
    }
}

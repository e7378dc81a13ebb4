//! placeholder
/// i
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId([u8; 32]);
impl RecordId {
    /// i
    pub const fn from_bytes(bytes: [u8; 32]) -> Self { Self(bytes) }
    /// i
    pub const fn as_bytes(&self) -> &[u8; 32] { &self.0 }
}

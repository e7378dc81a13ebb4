//! placeholder
/// f
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Fingerprint([u8; 32]);
impl Fingerprint {
    /// f
    pub const fn from_bytes(bytes: [u8; 32]) -> Self { Self(bytes) }
    /// f
    pub const fn as_bytes(&self) -> &[u8; 32] { &self.0 }
}
/// f
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ArgumentDigests(Vec<u8>);
impl ArgumentDigests {
    /// f
    pub fn to_bytes(&self) -> Vec<u8> { self.0.clone() }
    /// f
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, std::io::Error> { Ok(Self(bytes.to_vec())) }
}
/// f
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Fingerprinted { fingerprint: Fingerprint, digests: ArgumentDigests }
impl Fingerprinted {
    /// As it stands in a store.
    pub fn stored(fingerprint: Fingerprint, digests: ArgumentDigests) -> Self { Self { fingerprint, digests } }
    /// f
    pub fn fingerprint(&self) -> Fingerprint { self.fingerprint }
    /// Digests, computed when first asked for.
    pub fn digests(&self) -> ArgumentDigests { self.digests.clone() }
}

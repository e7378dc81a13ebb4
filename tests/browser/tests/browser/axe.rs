//! The file of axe is the one that was published.

use sha2::{Digest as _, Sha256};

#[test]
fn axe_is_the_file_that_was_published() {
    let digest = Sha256::digest(browser::AXE.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let published = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";
    assert_eq!(digest, published);
    assert!(include_str!("../../axe/README.md").contains(published));
}

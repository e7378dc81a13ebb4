//! Libraries that are loaded before the system's, so that a process is shown another world.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Builds one in `folder`, of a C source among these tests.
pub(crate) fn library(folder: &Path, source: &str) -> PathBuf {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    let library = folder.join("world.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &sources.join(source)])
        .status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "there is a C compiler"
    );
    library
}

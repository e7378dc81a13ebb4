//! The file of a journal, and whether it is still the one that was opened.

use std::{
    fs::Metadata,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use idempotent_runtime::{StoreError, StoreErrorKind};

/// Says that the file of an open journal was deleted, or that another one stands in its place. It
/// is the source of the [`StoreError`] of each call that would be written there, whose kind is
/// [`StoreErrorKind::Configuration`].
///
/// Calls that were open may be gone with the file, though the server carried them out. No program
/// can know which, so the journal takes nothing more. Find out what became of them, or put the file
/// back, and open the journal anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal's file was deleted or replaced while it was open: find out what became of the calls that stood there, or put it back, and open the journal anew"
)]
#[non_exhaustive]
pub struct JournalFileGone {
    /// The file.
    pub path: PathBuf,
}

/// The file that a journal writes. On a deleted file, SQLite goes on as if nothing had happened,
/// and each call that it takes is lost with the process.
#[derive(Debug)]
pub(super) struct OpenFile {
    name: PathBuf,
    opened: OnceLock<Opened>,
}

#[derive(Debug)]
struct Opened {
    path: PathBuf,
    identity: Identity,
}

impl OpenFile {
    pub(super) fn new(name: &Path) -> Self {
        Self {
            name: name.to_owned(),
            opened: OnceLock::new(),
        }
    }

    /// Remembers the file, once there is a connection to it. A database in memory has none.
    pub(super) fn remember(&self) {
        if self.opened.get().is_some() || self.name.as_os_str() == ":memory:" {
            return;
        }
        // The working directory may change, or what a link points to: the open file does not.
        let Ok(path) = self.name.canonicalize() else {
            return;
        };
        if let Some(identity) = identity(&path) {
            let _first = self.opened.set(Opened { path, identity });
        }
    }

    /// Fails if the remembered file is no more what stands at its place.
    pub(super) fn check(&self, doing: &'static str) -> Result<(), StoreError> {
        match self.opened.get() {
            Some(Opened {
                path,
                identity: then,
            }) if identity(path).as_ref() != Some(then) => {
                let gone = JournalFileGone { path: path.clone() };
                Err(StoreError::new(StoreErrorKind::Configuration, doing)
                    .at(path.display().to_string())
                    .with_source(gone))
            }
            _ => Ok(()),
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|file| of(&file))
}

/// The device and the number of the file there.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn of(file: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// Elsewhere a file that SQLite has open cannot be deleted, so it is enough that there is one.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn of(_: &Metadata) -> Identity {}

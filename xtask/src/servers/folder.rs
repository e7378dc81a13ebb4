//! The temporary folder that everything of the servers lies in.

use std::{
    env, fs,
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{guard::Guard, install};

/// Servers refuse to run as root.
const NOBODY: [&str; 3] = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"];

/// A new folder, and the guard that removes it when this goes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    is_root: bool,
    guard: Mutex<Guard>,
}

impl Folder {
    /// A folder that an earlier run could not remove is stepped over.
    pub(super) fn create() -> io::Result<Self> {
        let is_root = install::is_root();
        let mut parent = env::temp_dir().canonicalize()?;
        if is_root && !is_open(&parent) {
            parent = PathBuf::from("/tmp");
        }
        let name = format!("idempotent-servers-{}", process::id());
        let mut number = 0;
        let path = loop {
            let path = parent.join(format!("{name}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        let folder = Self {
            guard: Mutex::new(Guard::of(&path)?),
            is_root,
            path,
        };
        folder.give_away(&folder.path)?;
        Ok(folder)
    }

    #[cfg(test)]
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a folder that belongs to the user that the servers run as.
    pub(super) fn part(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir(&path)?;
        self.give_away(&path)?;
        Ok(path)
    }

    /// A program that runs as another user than root.
    pub(super) fn command(&self, program: &Path) -> Command {
        if self.is_root {
            let mut command = Command::new("setpriv");
            command.args(NOBODY).arg(program);
            command
        } else {
            Command::new(program)
        }
    }

    pub(super) fn guard(&self) -> MutexGuard<'_, Guard> {
        // It is left whole by a panic elsewhere, and still has to clean up.
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a file or a folder to the user that the servers run as.
    pub(super) fn give_away(&self, path: &Path) -> io::Result<()> {
        if !self.is_root {
            return Ok(());
        }
        let mut chown = Command::new("chown");
        let status = chown.arg("nobody:nogroup").arg(path).status()?;
        if status.success() {
            Ok(())
        } else {
            let path = path.display();
            Err(io::Error::other(format!("cannot give {path} to `nobody`")))
        }
    }
}

/// Whether every user may go there: root's own temporary folder may be closed to the servers.
fn is_open(path: &Path) -> bool {
    let may_enter = |folder: &Path| {
        let metadata = fs::metadata(folder);
        metadata.is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    };
    path.ancestors().all(may_enter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn a_folder_in_one_that_is_closed_is_closed() {
        let folder = Folder::create().expect("a folder");
        let (outer, inner) = (folder.path.join("outer"), folder.path.join("outer/inner"));
        fs::create_dir_all(&inner).expect("two more");
        for (mode, expected) in [(0o755, true), (0o700, false)] {
            fs::set_permissions(&outer, Permissions::from_mode(mode)).expect("it is ours");
            fs::set_permissions(&inner, Permissions::from_mode(0o755)).expect("it is ours");
            assert_eq!(is_open(&inner), is_open(&folder.path) && expected);
        }
    }

    #[test]
    fn a_folder_that_is_there_is_stepped_over_and_both_go() {
        let (one, other) = (Folder::create(), Folder::create());
        let (one, other) = (one.expect("a folder"), other.expect("another"));
        let paths = [one.path.clone(), other.path.clone()];
        assert_ne!(paths[0], paths[1]);
        assert!(paths.iter().all(|path| path.is_dir()));

        drop((one, other));

        assert!(!paths.iter().any(|path| path.exists()));
    }
}

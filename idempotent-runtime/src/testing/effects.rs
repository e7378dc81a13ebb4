//! The effects outside the store, written down where a crash cannot take them back.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde::{Deserialize, Serialize};

use crate::value::lock;

/// An append-only log of effects: "the body ran n times" means n entries here. Clones are the same
/// log.
///
/// In memory it serves one process; on disk several processes append to one file, each entry in one
/// synchronised write, so that an effect that was recorded outlives a SIGKILL. To test how your
/// service bears one, have the body record its effect, kill the process, call again, and count.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::testing::EffectLog;
///
/// let effects = EffectLog::new();
/// effects.record("order-1", 1, "charged 12.50")?;
/// assert_eq!(effects.count("order-1")?, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct EffectLog {
    place: Arc<LogPlace>,
}

#[derive(Debug)]
enum LogPlace {
    Memory(Mutex<Vec<Effect>>),
    Disk { path: PathBuf, file: File },
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Effect {
    /// The key of the call.
    pub key: String,
    /// The attempt that did it.
    pub attempt: u32,
    /// What was done.
    pub value: String,
    /// The process that did it.
    pub process: u32,
}

impl EffectLog {
    /// Makes an empty log in memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            place: Arc::new(LogPlace::Memory(Mutex::new(Vec::new()))),
        }
    }

    /// Opens the log in the file at `path`, or begins one.
    ///
    /// # Errors
    ///
    /// It fails if the file cannot be opened for appending.
    pub fn on_disk(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_path_buf();
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self {
            place: Arc::new(LogPlace::Disk { path, file }),
        })
    }

    /// Appends an entry; when this returns, a crash cannot take it back.
    ///
    /// # Errors
    ///
    /// It fails if the file cannot be written.
    pub fn record(
        &self,
        key: impl Into<String>,
        attempt: u32,
        value: impl Into<String>,
    ) -> io::Result<()> {
        let effect = Effect {
            key: key.into(),
            attempt,
            value: value.into(),
            process: std::process::id(),
        };
        match &*self.place {
            LogPlace::Memory(effects) => lock(effects).push(effect),
            LogPlace::Disk { file, .. } => {
                let mut line = serde_json::to_vec(&effect)?;
                line.push(b'\n');
                let mut file = file;
                // One write to a file opened for appending is not torn apart by other processes.
                file.write_all(&line)?;
                file.sync_data()?;
            }
        }
        Ok(())
    }

    /// Every entry, oldest first.
    ///
    /// # Errors
    ///
    /// It fails if the file cannot be read, or holds something else.
    pub fn entries(&self) -> io::Result<Vec<Effect>> {
        match &*self.place {
            LogPlace::Memory(effects) => Ok(lock(effects).clone()),
            LogPlace::Disk { path, .. } => {
                let text = std::fs::read_to_string(path)?;
                let whole = text.rfind('\n').map_or("", |end| &text[..end]);
                whole
                    .lines()
                    .map(|line| serde_json::from_str(line).map_err(io::Error::from))
                    .collect()
            }
        }
    }

    /// How many entries there are for `key`.
    ///
    /// # Errors
    ///
    /// As [`entries`](EffectLog::entries).
    pub fn count(&self, key: &str) -> io::Result<usize> {
        Ok(self
            .entries()?
            .iter()
            .filter(|effect| effect.key == key)
            .count())
    }
}

impl Default for EffectLog {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_on_disk_is_shared_and_outlives_its_writers() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("effects");
        let first = EffectLog::on_disk(&path).expect("opens");
        let second = EffectLog::on_disk(&path).expect("opens again");
        first.record("k", 1, "a \n b").expect("appends");
        second.record("k", 2, "c").expect("appends");
        drop((first, second));

        let entries = EffectLog::on_disk(&path)
            .expect("opens")
            .entries()
            .expect("reads");
        assert_eq!(
            entries
                .iter()
                .map(|effect| (effect.attempt, effect.value.as_str()))
                .collect::<Vec<_>>(),
            [(1, "a \n b"), (2, "c")]
        );
    }
}

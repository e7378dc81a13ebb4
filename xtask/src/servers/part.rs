//! One server's part of the folder, and what runs in it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    folder::Folder,
    guard::{Ending, Guard},
    ports,
};

/// More than a slow machine needs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Between a look for a free port and its use, another process may take it.
const ATTEMPTS: u32 = 5;

/// A server's folder, with its data and its log.
#[derive(Debug)]
pub(super) struct Part<'a> {
    folder: &'a Folder,
    path: PathBuf,
    ending: Ending,
}

impl<'a> Part<'a> {
    pub(super) fn create(folder: &'a Folder, name: &str, ending: Ending) -> io::Result<Self> {
        Ok(Self {
            folder,
            path: folder.part(name)?,
            ending,
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, text)?;
        self.folder.give_away(&path)?;
        Ok(path)
    }

    /// A program that runs in this folder, and writes nowhere else. It does not find what the user
    /// who runs us has at home: a client's own certificate, say.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = self.folder.command(program);
        command.current_dir(&self.path);
        command.envs(["HOME", "TMPDIR"].map(|variable| (variable, &self.path)));
        command
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, command: &mut Command) -> io::Result<()> {
        let id = self.spawn(command)?;
        let mut result = Ok(());
        self.until("it did not end", || {
            let Some(status) = self.guard(|guard| guard.ended(id))? else {
                return Ok(false);
            };
            if !status.success() {
                result = Err(self.failure(&format!("{status}")));
            }
            Ok(true)
        })?;
        result
    }

    /// Starts a server on a free port, which it returns when the server answers there.
    pub(super) fn serve(
        &self,
        command: impl Fn(u16) -> Command,
        answers: impl Fn(u16) -> bool,
    ) -> io::Result<u16> {
        for _ in 0..ATTEMPTS {
            let port = ports::free()?;
            let id = self.spawn(&mut command(port))?;
            let mut ended = false;
            self.until("it does not answer", || {
                let answers = answers(port);
                // Another process may have answered.
                ended = self.guard(|guard| guard.ended(id))?.is_some();
                Ok(answers || ended)
            })?;
            if !ended {
                return Ok(port);
            }
        }
        Err(self.failure("it ended as soon as it was started"))
    }

    /// Waits until something holds, but not for ever.
    pub(super) fn until(
        &self,
        otherwise: &str,
        mut holds: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<()> {
        let began = Instant::now();
        while !holds()? {
            if began.elapsed() > DEADLINE {
                return Err(self.failure(otherwise));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn spawn(&self, command: &mut Command) -> io::Result<u32> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.guard(|guard| guard.spawn(command, self.ending))
    }

    fn guard<T>(&self, with: impl FnOnce(&mut Guard) -> T) -> T {
        with(&mut self.folder.guard())
    }

    /// Says what happened, and what the log says about it.
    fn failure(&self, what: &str) -> io::Error {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        io::Error::other(format!("{what}; its log ends with\n{}", tail(&log, 40)))
    }
}

fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(count);
    lines[from..]
        .iter()
        .map(|line| format!("    {line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(part: &Part<'_>, script: &str) -> Command {
        let mut shell = part.command(Path::new("sh"));
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_server_that_finds_its_port_taken_gets_another() {
        let folder = Folder::create().expect("a folder");
        let part = Part::create(&folder, "server", Ending::Kill).expect("a part");
        let first_fails =
            "echo $0 >> ports; [ $(wc -l < ports) = 2 ] || exit 1; touch up; exec sleep 1000";

        let port = part.serve(
            |port| {
                let mut server = shell(&part, first_fails);
                server.arg(port.to_string());
                server
            },
            |_| part.path("up").exists(),
        );

        let ports = fs::read_to_string(part.path("ports")).expect("what it was told");
        let ports: Vec<u16> = ports.lines().flat_map(str::parse).collect();
        assert_ne!(ports[0], ports[1]);
        assert_eq!(port.expect("the second one"), ports[1]);
    }

    #[test]
    fn what_fails_is_told_with_its_log() {
        let folder = Folder::create().expect("a folder");
        let part = Part::create(&folder, "server", Ending::Kill).expect("a part");
        let error = part.run(&mut shell(&part, "echo no room >&2; exit 3"));
        let error = error.expect_err("it fails").to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.contains("    no room\n"), "{error}");
        let server = |_| shell(&part, "echo port taken; exit 1");
        let error = part.serve(server, |_| false).expect_err("it ends");
        assert!(error.to_string().contains("    port taken\n"), "{error}");
    }

    #[test]
    fn a_failure_shows_the_end_of_the_log() {
        assert_eq!(tail("one\ntwo\nthree", 2), "    two\n    three\n");
        assert_eq!(tail("", 2), "");
    }
}

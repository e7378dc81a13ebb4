//! The folder of a server, and its clean-up.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use tempfile::TempDir;

/// Runs a server, and ends it by the signal that it is told. When no process is left to tell it, it
/// also removes what the server leaves.
const GUARD: &str = r#"
trap '' HUP INT TERM
exec 3<&0
"$@" 3<&- & server=$!
{
    if read -r signal; then
        kill -s "$signal" $server
    elif kill -s QUIT $server; then
        left=50
        while kill -0 $server && [ $((left -= 1)) -gt 0 ]; do sleep 0.1; done
        kill -s KILL $server
        umount -l "$0/disk"
        left=50
        until rm -rf -- "$0" || [ $((left -= 1)) -lt 0 ]; do sleep 0.1; done
    fi
} <&3 2>/dev/null &
wait $server
"#;

/// The variable with the place of the servers' programs, beside the usual path.
const PROGRAMS: &str = "IDEMPOTENT_TEST_PROGRAMS";

/// A folder that belongs to the user that the servers run as: they refuse to be root.
pub(super) struct Folder {
    folder: TempDir,
    has_disk: bool,
    is_root: bool,
}

impl Folder {
    pub(super) fn new() -> Self {
        let is_root = is_root();
        // Root's own temporary folder may be closed to others.
        let mut builder = tempfile::Builder::new();
        builder.prefix("idempotent-spare-");
        let made = if is_root {
            builder.tempdir_in("/tmp")
        } else {
            builder.tempdir()
        };
        let folder = Self {
            folder: made.expect("a folder"),
            has_disk: false,
            is_root,
        };
        folder.give_away(folder.folder.path());
        folder
    }

    pub(super) fn with_disk(mut self, size: u32) -> Self {
        let disk = self.folder.path().join("disk");
        fs::create_dir(&disk).expect("a folder");
        let mounted = self
            .as_root("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}m,mode=0777"),
                "disk",
            ])
            .arg(&disk)
            .output();
        assert_succeeded("mount", &mounted.expect("`mount` runs"));
        self.has_disk = true;
        self.give_away(&disk);
        self
    }

    pub(super) fn data(&self) -> PathBuf {
        if self.has_disk {
            self.folder.path().join("disk")
        } else {
            self.folder.path().to_owned()
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.folder.path().exists()
    }

    pub(super) fn disk(&self) -> Disk {
        Disk(self.data().join("filling"))
    }

    fn give_away(&self, path: &Path) {
        if self.is_root {
            let given = Command::new("chown")
                .arg("nobody:nogroup")
                .arg(path)
                .output();
            assert_succeeded("chown", &given.expect("`chown` runs"));
        }
    }

    fn as_root(&self, program: &str) -> Command {
        if self.is_root {
            return Command::new(program);
        }
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", program]);
        sudo
    }

    /// A text in which `{}` is the folder.
    pub(super) fn named(&self, text: &str) -> String {
        text.replace("{}", &self.data().display().to_string())
    }

    /// A program that does not run as root.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        self.set_up(&mut command, words);
        command
    }

    /// The same, under a guard.
    pub(super) fn guard(
        &self,
        words: &[&str],
        settings: &[String],
        environment: &[(&'static str, String)],
    ) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARD]).arg(self.folder.path());
        self.set_up(&mut shell, words);
        let log = self.folder.path().join("log");
        let log = File::options().create(true).append(true).open(log);
        let log = log.expect("a log");
        shell
            .args(settings)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        // It is out of reach of the terminal's Ctrl-C.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        shell.spawn().expect("a shell")
    }

    fn set_up(&self, command: &mut Command, words: &[&str]) {
        if self.is_root {
            let nobody = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"];
            command.arg("setpriv").args(nobody);
        }
        command.args(words.iter().map(|word| self.named(word)));
        command.current_dir(self.data()).env("PATH", path());
        // Two servers that prepare their data in the same one take away each other's files.
        command.env("TMPDIR", self.folder.path());
    }

    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.has_disk {
            let disk = self.folder.path().join("disk");
            let _ = self.as_root("umount").arg("-l").arg(disk).output();
        }
    }
}

/// A disk that a test fills.
pub(in crate::servers) struct Disk(PathBuf);

impl Disk {
    /// Leaves no room, not for a single page.
    pub(in crate::servers) fn fill(&self) {
        let mut file = File::create(&self.0).expect("a file on the disk");
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
    }

    pub(in crate::servers) fn free(&self) {
        fs::remove_file(&self.0).expect("the room is given back");
    }
}

/// If the other servers are missing, the programs of these servers are not wanted, either.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(crate::servers::url(PROGRAMS));
    path
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

pub(super) fn assert_succeeded(program: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{program}` failed: {said}");
}

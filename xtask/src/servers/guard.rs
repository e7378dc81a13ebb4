//! Ends processes and removes a folder, however this process ends.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// The script that the guard runs, with the folder and the group of the processes. It reads
/// commands until the process that writes them is gone: at the end, after a panic, after Ctrl-C and
/// after `kill -9` alike. It runs the last command, and then ends the group.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
quit() {
    kill -s QUIT "$1" && left=50
    while kill -0 "$1" && [ $((left -= 1)) -gt 0 ]; do sleep 0.1; done
}
while read -r line; do ends=$line; done
exec 2>/dev/null
eval "$ends"
kill -s KILL -- "-$1"
left=50
until rm -rf -- "$0" || [ $((left -= 1)) -lt 0 ]; do sleep 0.1; done
"#;

/// How a process is told to end at once: none of its data is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Kill,
    /// It ends its children and gives shared memory back, for which it needs some time and its
    /// folder.
    Quit,
}

/// A shell that outlives this process for as long as it takes to clean up.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    /// Leads the group that every process joins before it becomes what it shall be: none can be
    /// missed.
    leader: Child,
    processes: Vec<(Child, Ending)>,
}

impl Guard {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let leader = waiting(&mut Command::new("cat"))?;
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", SCRIPT]).arg(folder);
        Ok(Self {
            shell: waiting(shell.arg(leader.id().to_string()))?,
            leader,
            processes: Vec::new(),
        })
    }

    /// Starts a process out of reach of the terminal's Ctrl-C, which only the guard ends.
    pub(super) fn spawn(&mut self, command: &mut Command, ending: Ending) -> io::Result<u32> {
        // The number of a process fits.
        let group = self.leader.id().cast_signed();
        let process = command.process_group(group).spawn()?;
        let id = process.id();
        self.processes.push((process, ending));
        self.order()?;
        Ok(id)
    }

    /// How a process ended, if it did. Its number may then be another's, so it is forgotten.
    pub(super) fn ended(&mut self, id: u32) -> io::Result<Option<ExitStatus>> {
        let found = self
            .processes
            .iter()
            .position(|(process, _)| process.id() == id);
        let Some(found) = found else {
            return Err(io::Error::other(format!("process {id} ended before")));
        };
        let status = self.processes[found].0.try_wait()?;
        if status.is_some() {
            self.processes.swap_remove(found);
            self.order()?;
        }
        Ok(status)
    }

    fn order(&mut self) -> io::Result<()> {
        let processes = self.processes.iter();
        let line = order(processes.map(|(process, ending)| (process.id(), *ending)));
        match &mut self.shell.stdin {
            Some(shell) => shell.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shell.stdin = None;
        // The shell waits for those that take some time, and a process that ended is there until it
        // is waited for.
        self.processes
            .sort_by_key(|(_, ending)| *ending != Ending::Quit);
        // No caller is left to be told that one of them was gone before.
        for (process, _) in &mut self.processes {
            let _ = process.wait();
        }
        let _ = self.leader.wait();
        let _ = self.shell.wait();
    }
}

/// Starts a process that does nothing until this one is gone.
fn waiting(command: &mut Command) -> io::Result<Child> {
    command
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// The line that ends those that take some time. It is short enough to be written as a whole or not
/// at all.
fn order(processes: impl Iterator<Item = (u32, Ending)>) -> String {
    let quit: String = processes
        .filter(|(_, ending)| *ending == Ending::Quit)
        .map(|(id, _)| format!("quit {id}; "))
        .collect();
    quit + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        env, fs,
        io::{BufRead, BufReader, Read},
        thread,
    };

    /// The environment variable that has a process hold a guard of this folder.
    const HELD: &str = "IDEMPOTENT_TEST_GUARDED";

    #[test]
    fn the_last_order_names_those_that_take_some_time() {
        let processes = [(12, Ending::Kill), (13, Ending::Quit), (14, Ending::Quit)];
        assert_eq!(order(processes.into_iter()), "quit 13; quit 14; \n");
        assert_eq!(order([].into_iter()), "\n");
    }

    #[test]
    fn when_it_is_dropped_its_processes_and_its_folder_are_gone() {
        let folder = env::temp_dir().join(format!("idempotent-guard-{}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        let mut guard = Guard::of(&folder).expect("a shell");
        let mut spawn = |ending| {
            let id = guard.spawn(Command::new("sleep").arg("1000"), ending);
            let id = id.expect("a process");
            assert_eq!(guard.ended(id).expect("known"), None);
            id
        };
        let ids = [Ending::Kill, Ending::Quit].map(&mut spawn);

        drop(guard);

        assert!(!folder.exists());
        for id in ids {
            let alive = Command::new("kill").args(["-0", &id.to_string()]).output();
            assert!(!alive.expect("`kill` runs").status.success());
        }
    }

    /// No test by itself: the entrance of the process that is ended below.
    #[test]
    fn holds_a_guard() {
        let Ok(folder) = env::var(HELD) else { return };
        let mut guard = Guard::of(Path::new(&folder)).expect("a shell");
        for ending in [Ending::Kill, Ending::Quit] {
            let sleep = guard.spawn(Command::new("sleep").arg("1000"), ending);
            sleep.expect("a process");
        }
        println!("\n@ready");
        loop {
            thread::park();
        }
    }

    #[test]
    fn when_its_process_is_ended_by_a_signal_its_processes_and_its_folder_are_gone() {
        for signal in ["INT", "KILL"] {
            let name = format!("idempotent-guard-{signal}-{}", std::process::id());
            let folder = env::temp_dir().join(name);
            fs::create_dir(&folder).expect("a new folder");
            // Tests that run in the background may have been made to ignore what a terminal sends.
            let mut holder = Command::new("env")
                .arg("--default-signal=INT")
                .arg(env::current_exe().expect("it has a file"))
                .args(["--exact", "servers::guard::tests::holds_a_guard"])
                .arg("--nocapture")
                .env(HELD, &folder)
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()
                .expect("it starts");
            let mut said = BufReader::new(holder.stdout.take().expect("it is piped"));
            let lines = said.by_ref().lines();
            let mut lines = lines.map(|line| line.expect("it lives"));
            assert!(lines.any(|line| line == "@ready"));

            // As a terminal does, to the whole group.
            let group = format!("-{}", holder.id());
            let mut kill = Command::new("kill");
            let kill = kill.args(["-s", signal, "--", &group]).status();
            assert!(kill.expect("`kill` runs").success());

            assert!(!holder.wait().expect("it is ours").success());
            // The pipe is open as long as one of the processes that it started lives.
            let mut rest = Vec::new();
            said.read_to_end(&mut rest).expect("its end");
            while folder.exists() {
                thread::yield_now();
            }
        }
    }
}

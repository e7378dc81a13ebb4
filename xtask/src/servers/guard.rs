//! Ends processes and removes a folder, however this process ends.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
};

/// What the guard runs. It reads commands until whoever writes them is gone, which happens at the end, after a panic,
/// after Ctrl-C and after `kill -9` alike, and runs the last one. What still runs may write while the folder is
/// removed, hence the repetition.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
while read -r line; do ends=$line; done
eval "$ends" 2>/dev/null
tries=0
until rm -rf -- "$0" 2>/dev/null || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
"#;

/// How a process is told to end at once: none of its data is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Kill,
    /// For one that has children to end and shared memory to give back.
    Quit,
}

/// A shell that outlives this process for as long as it takes to clean up.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    /// Taken when the end has come.
    orders: Option<ChildStdin>,
    processes: Vec<(Child, Ending)>,
}

impl Guard {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT])
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            orders: shell.stdin.take(),
            shell,
            processes: Vec::new(),
        })
    }

    /// Starts a process out of reach of the terminal's Ctrl-C, which only the guard ends.
    pub(super) fn spawn(&mut self, command: &mut Command, ending: Ending) -> io::Result<u32> {
        let process = command.process_group(0).spawn()?;
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

    /// A line is short enough to be written as a whole or not at all.
    fn order(&mut self) -> io::Result<()> {
        let line = order(
            self.processes
                .iter()
                .map(|(process, ending)| (process.id(), *ending)),
        );
        match &mut self.orders {
            Some(orders) => orders.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.orders = None;
        // Nobody is left to be told that one of them was gone before.
        for (process, _) in &mut self.processes {
            let _ = process.wait();
        }
        let _ = self.shell.wait();
    }
}

/// The line that ends processes, each with the group that it leads.
fn order(processes: impl Iterator<Item = (u32, Ending)>) -> String {
    let mut line = String::new();
    for (id, ending) in processes {
        let signal = match ending {
            Ending::Kill => "KILL",
            Ending::Quit => "QUIT",
        };
        line += &format!("kill -s {signal} -- -{id}; ");
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs};

    #[test]
    fn the_last_order_ends_all_that_runs() {
        let processes = [(12, Ending::Kill), (13, Ending::Quit)];
        assert_eq!(
            order(processes.into_iter()),
            "kill -s KILL -- -12; kill -s QUIT -- -13; \n"
        );
        assert_eq!(order([].into_iter()), "\n");
    }

    #[test]
    fn when_it_is_dropped_its_processes_and_its_folder_are_gone() {
        let folder = env::temp_dir().join(format!("idempotent-guard-{}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        let mut guard = Guard::of(&folder).expect("a shell");
        let id = guard
            .spawn(Command::new("sleep").arg("1000"), Ending::Kill)
            .expect("a process");
        assert_eq!(guard.ended(id).expect("known"), None);

        drop(guard);

        assert!(!folder.exists());
        let alive = Command::new("kill").args(["-0", &id.to_string()]).output();
        assert!(!alive.expect("`kill` runs").status.success());
    }
}

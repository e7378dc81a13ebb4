//! Starts, stops, wakes and kills a child.

use std::{env, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::child::{ROLE, Role};

/// A child process. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    id: u32,
}

/// How long a child may take to say something.
const PATIENCE: Duration = Duration::from_secs(60);

impl Process {
    pub(super) fn start(role: &Role) -> Self {
        Self::set_up(role, |_| ())
    }

    /// Starts a child that finds its server at this URL, which the variable holds.
    pub(super) fn behind(role: &Role, name: &str, url: &str) -> Self {
        Self::set_up(role, |command| {
            command.env(name, url);
        })
    }

    /// Starts a child whose wall clock is off by so many seconds, as this library shows it.
    #[cfg(target_os = "linux")]
    pub(super) fn with_clock(role: &Role, library: &Path, off_by: i64) -> Self {
        Self::set_up(role, |command| {
            command.env("LD_PRELOAD", library);
            command.env("CLOCK_OFF_BY", off_by.to_string());
        })
    }

    fn set_up(role: &Role, further: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env::current_exe().expect("this test has a file"));
        further(&mut command);
        let mut child = command
            .args(["--exact", "processes::child::child", "--nocapture"])
            .env(ROLE, serde_json::to_string(role).expect("a role is JSON"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the child starts");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = child.stdout.take().expect("it is piped");
        let id = child.id().expect("it was not waited for yet");
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
            id,
        }
    }

    /// Starts a child, and waits until it says that it stopped where it should.
    pub(super) async fn stopped(role: &Role) -> Self {
        let mut process = Self::start(role);
        assert_eq!(process.hear::<String>().await, "stopped", "{role:?}");
        process
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The next thing that it says.
    pub(super) async fn hear<T: DeserializeOwned>(&mut self) -> T {
        self.hear_within(PATIENCE).await
    }

    pub(super) async fn hear_within<T: DeserializeOwned>(&mut self, patience: Duration) -> T {
        loop {
            let line = timeout(patience, self.lines.next_line())
                .await
                .expect("the child says something in time")
                .expect("the child can be heard")
                .expect("the child lives");
            if let Some(said) = line.strip_prefix('@') {
                return serde_json::from_str(said).expect("what the child says is known");
            }
        }
    }

    pub(super) async fn go_on(&mut self) {
        self.stdin
            .write_all(b"go on\n")
            .await
            .expect("the child listens");
    }

    /// SIGKILL; when this returns, the process is gone.
    pub(super) async fn kill(mut self) {
        self.child.kill().await.expect("the child is killed");
    }

    /// Waits until it has ended by itself.
    pub(super) async fn gone(mut self) {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends in time").expect("it is waited for");
    }

    /// SIGSTOP; when this returns, the process stands still.
    pub(super) fn freeze(&self) {
        kill_process(self.pid(), Signal::STOP).expect("the child is stopped");
        waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("the child stands still");
    }

    /// SIGCONT.
    pub(super) fn wake(&self) {
        kill_process(self.pid(), Signal::CONT).expect("the child is woken");
    }

    fn pid(&self) -> Pid {
        i32::try_from(self.id)
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id")
    }
}

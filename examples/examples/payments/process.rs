//! Other processes of this program: started, listened to, killed, and never left behind.

use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use serde::Serialize;
use tokio::{sync::mpsc, time::timeout};

use crate::Failure;

/// A process that this one started. Dropped, it is killed; when this process dies, it ends by
/// itself.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::UnboundedReceiver<String>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

/// How long a line may take: long enough for a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

impl Process {
    /// Starts this program in another role, and waits until it listens.
    pub(crate) async fn start(role: &str, settings: &impl Serialize) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([role, &serde_json::to_string(settings)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (said, lines) = mpsc::unbounded_channel();
        let mut process = Self {
            child,
            stdin,
            lines,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        if let Some(stdout) = stdout {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if said.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        process.address = process.line().await?.parse()?;
        Ok(process)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it writes to its standard output.
    pub(crate) async fn line(&mut self) -> Result<String, Failure> {
        match timeout(PATIENCE, self.lines.recv()).await {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err("a process that was started has ended".into()),
            Err(_) => Err("a process that was started says nothing".into()),
        }
    }

    /// Waits until it has said this, line by line.
    pub(crate) async fn says(&mut self, what: &str) -> Result<(), Failure> {
        while self.line().await? != what {}
        Ok(())
    }

    /// Tells it to do something, and waits until it says that it does.
    pub(crate) async fn tell(&mut self, what: &str) -> Result<(), Failure> {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "{what}")?;
        }
        self.says(what).await
    }

    /// Kills it with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends this process when the process that started it is gone, for whatever reason.
pub(crate) fn end_with_parent() {
    listen_to_parent(|_| {});
}

/// The same, and gives what the parent says, line by line, to `heard`.
pub(crate) fn listen_to_parent(mut heard: impl FnMut(&str) + Send + 'static) {
    std::thread::spawn(move || {
        // It is dropped also when `heard` panics, as it does when no process reads what it prints.
        let _end = End;
        for line in std::io::stdin().lines().map_while(Result::ok) {
            heard(&line);
        }
    });
}

/// Ends this process when it is dropped.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        std::process::exit(0);
    }
}

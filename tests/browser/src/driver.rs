//! The program that drives the browser.

use std::{env, ffi::OsString, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    task::JoinHandle,
};

/// The program of a variable, or else the one in the path.
pub(crate) fn program(variable: &str, name: &str) -> OsString {
    let given = env::var_os(variable).filter(|value| !value.is_empty());
    given.unwrap_or_else(|| name.into())
}

/// A chromedriver that runs for one browser. It is killed when this is dropped.
pub(crate) struct Driver {
    child: Child,
    pub(crate) address: String,
    /// A full pipe would stop the driver, so its output is read to the end.
    rest: JoinHandle<()>,
}

impl Driver {
    /// Starts one. It takes a port that is free for IPv4 and then for IPv6, and ends where another
    /// program was quicker: then the next one tries.
    pub(crate) async fn start() -> Self {
        let mut why = String::new();
        for _ in 0..5 {
            match Self::try_start().await {
                Ok(driver) => return driver,
                Err(output) => why = output,
            }
        }
        panic!("the driver ends before it names a port: {why}")
    }

    /// Fails with the output of one that ended.
    async fn try_start() -> Result<Self, String> {
        let program = program("IDEMPOTENT_TEST_CHROMEDRIVER", "chromedriver");
        let mut command = Command::new(&program);
        let command = command.arg("--port=0").stdin(Stdio::null());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.kill_on_drop(true).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let output = child.stdout.take().expect("its output");
        let mut errors = child.stderr.take().expect("its errors");
        let mut lines = BufReader::new(output).lines();
        let mut met = String::new();
        let port = loop {
            let line = lines.next_line().await.expect("its output is text");
            let Some(line) = line else {
                let read = errors.read_to_string(&mut met).await;
                read.expect("its errors are text");
                return Err(met);
            };
            let port = line.split_once("started successfully on port ");
            if let Some((_, port)) = port {
                break port.trim_end_matches('.').to_owned();
            }
            met.push_str(&line);
        };
        let rest = async move {
            let read = async { while let Ok(Some(_)) = lines.next_line().await {} };
            let mut sink = tokio::io::sink();
            let _it_has_ended = tokio::join!(read, tokio::io::copy(&mut errors, &mut sink));
        };
        Ok(Self {
            child,
            address: format!("http://127.0.0.1:{port}"),
            rest: tokio::spawn(rest),
        })
    }

    pub(crate) async fn end(mut self) {
        self.child.kill().await.expect("the driver ends");
        self.rest.abort();
    }
}

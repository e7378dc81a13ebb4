//! The program that drives the browser.

use std::{env, ffi::OsString, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
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
    pub(crate) async fn start() -> Self {
        let program = program("IDEMPOTENT_TEST_CHROMEDRIVER", "chromedriver");
        let mut command = Command::new(&program);
        let command = command.arg("--port=0").stdin(Stdio::null());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let started = command.kill_on_drop(true).spawn();
        let mut child = started.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let output = child.stdout.take().expect("its output");
        let mut lines = BufReader::new(output).lines();
        let port = loop {
            let line = lines.next_line().await.expect("its output is text");
            let line = line.expect("it names its port before it ends");
            let port = line.split_once("started successfully on port ");
            if let Some((_, port)) = port {
                break port.trim_end_matches('.').to_owned();
            }
        };
        let rest = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            child,
            address: format!("http://127.0.0.1:{port}"),
            rest,
        }
    }

    pub(crate) async fn end(mut self) {
        self.child.kill().await.expect("the driver ends");
        self.rest.abort();
    }
}

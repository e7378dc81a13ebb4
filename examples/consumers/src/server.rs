//! The broker: the one of the environment, or one that this program starts.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{Failure, broker::Broker};

/// A broker that runs for as long as this lives.
pub(crate) struct Server {
    pub(crate) url: String,
    started: Option<Child>,
}

impl Server {
    /// Finds or starts one. Returns none where it is not installed, and has said so.
    pub(crate) fn find<B: Broker>() -> Result<Option<Self>, Failure> {
        if let Ok(url) = env::var(B::VARIABLE) {
            return Ok(Some(Self { url, started: None }));
        }
        if !is_installed(B::PROGRAM) {
            eprintln!(
                "There is no `{0}` in the path. Install it (`apt-get install {0}`), or set {1} to the address of \
                 a broker.",
                B::PROGRAM,
                B::VARIABLE
            );
            return Ok(None);
        }
        Self::start(B::NAME).map(Some)
    }

    /// The servers of the tests are private, on free ports, and gone afterwards.
    fn start(name: &str) -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let variable = format!("IDEMPOTENT_TEST_{}_URL", name.to_uppercase());
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut started = Command::new(cargo)
            .args(["xtask", "servers", name])
            .current_dir(root)
            .env_remove(&variable)
            .stdout(Stdio::piped())
            .spawn()?;
        let said = started.stdout.take().ok_or("it says nothing")?;
        let mut server = Self {
            url: String::new(),
            started: Some(started),
        };
        let export = format!("export {variable}='");
        for line in BufReader::new(said).lines() {
            let line = line?;
            if let Some(url) = line.strip_prefix(&export) {
                server.url = url.trim_end_matches('\'').to_owned();
            } else if line.starts_with("# ready") {
                return Ok(server);
            }
        }
        Err(format!("{name} does not start").into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(started) = &mut self.started {
            let _ = started.kill();
            let _ = started.wait();
        }
    }
}

pub(crate) fn is_installed(program: &str) -> bool {
    find(program).is_some()
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

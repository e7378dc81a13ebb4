#![doc = include_str!("../README.md")]

mod args;
mod commands;
mod failure;
mod open;
mod print;
mod record;
mod secret;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, parser::ValueSource};
use idempotent_runtime::Idempotency;

use self::{
    args::{Cli, Command, Embedded},
    failure::Failure,
    open::{Opened, Settings},
    print::{Screen, aside},
    secret::{Location, Secrets},
};

/// Carries out the command of this process's arguments over a handle of the program's own: with
/// its codec, its redaction and its types. The program then needs no `--store`.
///
/// It prints, may ask, and returns the exit code: 0 done, 1 failed, 3 nothing found, 4 refused or
/// moved. Wrong usage ends the process with 2.
///
/// # Cancel safety
///
/// A change is one write: dropped at any await, it is made or not.
///
/// # Examples
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use idempotent_runtime::{Error, Idempotency};
///
/// #[tokio::main]
/// async fn main() -> Result<ExitCode, Error> {
///     let idem = Idempotency::sqlite("payments.db").await?;
///     Ok(idempotent_cli::run(idem).await)
/// }
/// ```
pub async fn run(idem: Idempotency) -> ExitCode {
    let Embedded { output, command } = clap::Parser::parse();
    let screen = Screen::new(output.json, Secrets::default());
    let done = match commands::without_store(&command) {
        Some(done) => done,
        None => commands::run(&command, &Opened::given(idem), &screen).await,
    };
    ended(done, &Secrets::default())
}

/// Carries out the command of this process's arguments over the store that they name.
#[doc(hidden)]
pub async fn run_by_url() -> ExitCode {
    let matches = Cli::command().get_matches();
    let is_argument = matches.value_source("store") == Some(ValueSource::CommandLine);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Some(done) = commands::without_store(&cli.command) {
        return ended(done, &Secrets::default());
    }
    let location = match &cli.store.store {
        Some(said) => Location::read(said, is_argument),
        None => Err(Failure::Usage(
            "say where the store is: `--store URL`, `--store @file`, or IDEMPOTENT_STORE"
                .to_owned(),
        )),
    };
    match location {
        Ok(location) => ended(run_at(&location, &cli).await, &location.secrets()),
        Err(failure) => ended(Err(failure), &Secrets::default()),
    }
}

async fn run_at(location: &Location, cli: &Cli) -> Result<(), Failure> {
    let screen = Screen::new(cli.output.json, location.secrets());
    let may_create = matches!(cli.command, Command::Migrate(_));
    let settings = Settings::read(&cli.store)?;
    let opened = Opened::at(location.url(), settings, may_create).await?;
    commands::run(&cli.command, &opened, &screen).await
}

fn ended(done: Result<(), Failure>, secrets: &Secrets) -> ExitCode {
    let Err(failure) = done else {
        return ExitCode::SUCCESS;
    };
    let text = failure.to_string();
    if !text.is_empty() {
        aside(&format!("idempotent: {}", secrets.hide(&text)));
    }
    failure.code()
}

//! The commands.

mod act;
mod doctor;
mod list;
mod look;
mod outbox;
mod purge;
mod schema;
mod sequence;
mod settle;

use clap::CommandFactory as _;

use crate::{
    args::{Cli, Command},
    failure::Failure,
    open::Opened,
    print::Screen,
};

/// Carries a command out.
pub(crate) async fn run(
    command: &Command,
    opened: &Opened,
    screen: &Screen,
) -> Result<(), Failure> {
    let idem = &opened.idem;
    if reads_records(command) {
        opened.check_schema().await?;
    }
    match command {
        Command::List(args) => list::list(idem, args, screen).await,
        Command::Show(record) => look::show(idem, record, screen).await,
        Command::Explain(record) => look::explain(idem, record, screen).await,
        Command::Steps(record) => look::steps(idem, record, screen).await,
        Command::Settle(args) => settle::settle(idem, args, screen).await,
        Command::Undo(args) => settle::undo(idem, args, screen).await,
        Command::Resume(args) => act::resume(idem, args, screen).await,
        Command::Invalidate(args) => act::invalidate(idem, args, screen).await,
        Command::Sequence(command) => sequence::run(idem, command, screen).await,
        Command::Outbox(command) => outbox::run(opened, command, screen).await,
        Command::Doctor => doctor::doctor(opened, screen).await,
        Command::Purge => purge::purge(opened, screen).await,
        Command::Migrate => schema::migrate(opened, screen).await,
        Command::Ddl(args) => schema::ddl(opened, args, screen),
        Command::Completions { .. } | Command::Man => unreachable!("they need no store"),
    }
}

/// Whether a command is of no use over tables of another version.
fn reads_records(command: &Command) -> bool {
    !matches!(
        command,
        Command::Doctor | Command::Migrate | Command::Ddl(_) | Command::Outbox(_)
    )
}

/// Carries a command out that needs no store; `None` if it needs one.
pub(crate) fn without_store(command: &Command) -> Option<Result<(), Failure>> {
    let mut cli = Cli::command();
    let mut out = std::io::stdout().lock();
    match command {
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut cli, "idempotent", &mut out);
            Some(Ok(()))
        }
        Command::Man => {
            let page = clap_mangen::Man::new(cli).render(&mut out);
            Some(page.map_err(Failure::from))
        }
        _ => None,
    }
}

//! The commands.

mod act;
mod audit;
mod doctor;
mod list;
mod look;
mod outbox;
mod purge;
mod said;
mod schema;
mod sequence;
mod settle;

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::{
    args::{Cli, Command, SequenceCommand},
    failure::Failure,
    open::{Opened, Place},
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
    let is_given = matches!(opened.place, Place::Given);
    if changes_records(command)
        && matches!(opened.place, Place::Redis(_))
        && opened.audit_retention.is_none()
    {
        return Err(Failure::Usage(
            "Redis forgets by itself: say `--audit-retention` as the application does, and `0s` if it does not".to_owned(),
        ));
    }
    match command {
        Command::List(args) => list::list(idem, args, screen).await,
        Command::Show(record) => look::show(idem, record, screen).await,
        Command::Explain(record) => look::explain(idem, record, screen).await,
        Command::Steps(record) => look::steps(idem, record, screen).await,
        Command::Settle(args) => settle::settle(idem, args, is_given, screen).await,
        Command::Undo(args) => settle::undo(idem, args, is_given, screen).await,
        Command::Resume(args) => act::resume(idem, args, screen).await,
        Command::Invalidate(args) => act::invalidate(idem, args, screen).await,
        Command::Sequence(command) => sequence::run(idem, command, is_given, screen).await,
        Command::Outbox(command) => outbox::run(opened, command, screen).await,
        Command::Audit(command) => audit::run(opened, command, screen).await,
        Command::Doctor => doctor::doctor(opened, screen).await,
        Command::Purge => purge::purge(opened, screen).await,
        Command::Migrate(args) => schema::migrate(opened, args, screen).await,
        Command::Ddl(args) => schema::ddl(opened, args, screen),
        Command::Completions { .. } | Command::Man { .. } => unreachable!("they need no store"),
    }
}

/// Whether a command is of no use over tables of another version.
fn reads_records(command: &Command) -> bool {
    !matches!(
        command,
        Command::Doctor | Command::Migrate(_) | Command::Ddl(_) | Command::Outbox(_)
    )
}

/// Whether a command writes a record.
fn changes_records(command: &Command) -> bool {
    match command {
        Command::Settle(_) | Command::Resume(_) | Command::Undo(_) | Command::Invalidate(_) => true,
        Command::Sequence(command) => !matches!(command, SequenceCommand::Show(_)),
        _ => false,
    }
}

/// Carries a command out that needs no store; `None` if it needs one.
pub(crate) fn without_store(command: &Command) -> Option<Result<(), Failure>> {
    let mut cli = Cli::command();
    let mut text = Vec::new();
    let made = match command {
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut cli, "idempotent", &mut text);
            Ok(())
        }
        Command::Man { to: None } => clap_mangen::Man::new(cli).render(&mut text),
        Command::Man { to: Some(folder) } => clap_mangen::generate_to(cli, folder),
        _ => return None,
    };
    let written = made.and_then(|()| std::io::stdout().lock().write_all(&text));
    Some(written.map_err(Failure::from))
}

//! `migrate` and `ddl`: the tables of the store.

use idempotent_runtime::outbox::{Outbox, OutboxDatabase};

use crate::{
    args::TablesArgs,
    failure::Failure,
    open::{Opened, Place},
    print::{Screen, progress},
};

pub(crate) async fn migrate(
    opened: &Opened,
    args: &TablesArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let progress = progress().with_message("making tables and indexes");
    let migrated = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(Failure::Failed(
            "stopped: each step of the schema is made whole or not at all, and `migrate` goes on there".to_owned(),
        )),
        migrated = make(opened, args.outbox) => migrated,
    };
    progress.finish_and_clear();
    migrated?;
    match screen.json {
        true => screen.object(&serde_json::json!({ "migrated": true }))?,
        false => screen.line("The tables of the store are up to date.")?,
    }
    Ok(())
}

async fn make(opened: &Opened, outbox: bool) -> Result<(), Failure> {
    let prefix = opened.prefix.as_deref();
    match &opened.place {
        Place::Sqlite(store, pool) => {
            store.migrate().await?;
            make_outbox(Outbox::sqlite(pool.clone()), prefix, outbox).await
        }
        Place::Postgres(store, pool) => {
            store.migrate().await?;
            make_outbox(Outbox::postgres(pool.clone()), prefix, outbox).await
        }
        Place::MySql(store, pool) => {
            store.migrate().await?;
            make_outbox(Outbox::mysql(pool.clone()), prefix, outbox).await
        }
        Place::Redis(_) => Err(no_tables(
            "Redis has no tables: nothing is to be made there",
        )),
        Place::Given => Err(no_tables("the program makes the tables of its store")),
    }
}

async fn make_outbox<DB: OutboxDatabase>(
    outbox: Outbox<DB>,
    prefix: Option<&str>,
    is_wanted: bool,
) -> Result<(), Failure> {
    if is_wanted {
        named(outbox, prefix)?.migrate().await?;
    }
    Ok(())
}

/// The outbox whose tables have these names.
pub(super) fn named<DB: OutboxDatabase>(
    outbox: Outbox<DB>,
    prefix: Option<&str>,
) -> Result<Outbox<DB>, Failure> {
    Ok(match prefix {
        Some(prefix) => outbox.prefix(prefix)?,
        None => outbox,
    })
}

pub(crate) fn ddl(opened: &Opened, args: &TablesArgs, screen: &Screen) -> Result<(), Failure> {
    let prefix = opened.prefix.as_deref();
    let (mut text, outbox) = match &opened.place {
        Place::Sqlite(store, pool) => (
            store.ddl(),
            named(Outbox::sqlite(pool.clone()), prefix)?.ddl(),
        ),
        Place::Postgres(store, pool) => (
            store.ddl(),
            named(Outbox::postgres(pool.clone()), prefix)?.ddl(),
        ),
        Place::MySql(store, pool) => (
            store.ddl(),
            named(Outbox::mysql(pool.clone()), prefix)?.ddl(),
        ),
        Place::Redis(_) => return Err(no_tables("Redis has no tables")),
        Place::Given => return Err(no_tables("the program knows the tables of its store")),
    };
    if args.outbox {
        text = format!("{text}\n{outbox}");
    }
    screen.line(text.trim_end())?;
    Ok(())
}

fn no_tables(text: &str) -> Failure {
    Failure::Usage(text.to_owned())
}

//! `migrate` and `ddl`: the tables of the store.

use idempotent_runtime::outbox::Outbox;

use crate::{
    args::DdlArgs,
    failure::Failure,
    open::{Opened, Place},
    print::{Screen, progress},
};

pub(crate) async fn migrate(opened: &Opened, screen: &Screen) -> Result<(), Failure> {
    let progress = progress().with_message("making tables and indexes");
    let migrated = tokio::select! {
        migrated = make(&opened.place) => migrated,
        _ = tokio::signal::ctrl_c() => Err(Failure::Failed(
            "stopped: each step of the schema is made whole or not at all, and `migrate` goes on there".to_owned(),
        )),
    };
    progress.finish_and_clear();
    migrated?;
    match screen.json {
        true => screen.object(&serde_json::json!({ "migrated": true }))?,
        false => screen.line("The tables of the store are up to date.")?,
    }
    Ok(())
}

async fn make(place: &Place) -> Result<(), Failure> {
    match place {
        Place::Sqlite(store, _) => store.migrate().await?,
        Place::Postgres(store, _) => store.migrate().await?,
        Place::MySql(store, _) => store.migrate().await?,
        Place::Redis(_) => {
            return Err(no_tables(
                "Redis has no tables: nothing is to be made there",
            ));
        }
        Place::Given => return Err(no_tables("the program makes the tables of its store")),
    }
    Ok(())
}

pub(crate) fn ddl(opened: &Opened, args: &DdlArgs, screen: &Screen) -> Result<(), Failure> {
    let prefix = opened.prefix.as_deref();
    let (mut text, outbox) = match &opened.place {
        Place::Sqlite(store, pool) => (store.ddl(), of(&Outbox::sqlite(pool.clone()), prefix)?),
        Place::Postgres(store, pool) => (store.ddl(), of(&Outbox::postgres(pool.clone()), prefix)?),
        Place::MySql(store, pool) => (store.ddl(), of(&Outbox::mysql(pool.clone()), prefix)?),
        Place::Redis(_) => return Err(no_tables("Redis has no tables")),
        Place::Given => return Err(no_tables("the program knows the tables of its store")),
    };
    if args.outbox {
        text = format!("{text}\n{outbox}");
    }
    screen.line(text.trim_end())?;
    Ok(())
}

fn of<DB: idempotent_runtime::outbox::OutboxDatabase>(
    outbox: &Outbox<DB>,
    prefix: Option<&str>,
) -> Result<String, Failure> {
    let outbox = outbox.clone();
    Ok(match prefix {
        Some(prefix) => outbox.prefix(prefix)?.ddl(),
        None => outbox.ddl(),
    })
}

fn no_tables(text: &str) -> Failure {
    Failure::Usage(text.to_owned())
}

//! `list`: records, by filters.

use std::collections::HashSet;

use idempotent_runtime::{
    Idempotency, Time,
    operate::{RecordCursor, RecordRow, Records, State},
};

use crate::{
    args::{ListArgs, StateArg},
    failure::Failure,
    print::{Screen, Table, ago, aside, escaped, object_of_row, progress, state_of},
};

/// The rows of one list.
#[derive(Default)]
struct Listed {
    rows: Vec<RecordRow>,
    damaged: u64,
    now: Option<Time>,
    /// The place where the list goes on.
    next: Option<RecordCursor>,
}

pub(crate) async fn list(
    idem: &Idempotency,
    args: &ListArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let listed = collect(idem, args).await?;
    match screen.json {
        true => {
            let mut rows = listed.rows.iter();
            rows.try_for_each(|row| screen.object(&object_of_row(row)))?;
        }
        false if listed.rows.is_empty() => {}
        false => draw(&listed.rows, listed.now, screen)?,
    }
    if listed.damaged > 0 {
        aside(&format!(
            "{} records cannot be read: other bytes stand there",
            listed.damaged
        ));
    }
    match listed.next {
        Some(next) => aside(&format!("There may be more: --after {next}")),
        None if listed.rows.is_empty() => {
            return Err(Failure::NotFound("no record is like that".to_owned()));
        }
        None => {}
    }
    Ok(())
}

/// Lists until so many rows are there, or nothing is left.
async fn collect(idem: &Idempotency, args: &ListArgs) -> Result<Listed, Failure> {
    let mut records = filtered(idem, args);
    if let Some(after) = &args.after {
        let after = after.parse();
        records = records.after(after.map_err(|error| Failure::Usage(format!("{error}")))?);
    }
    let (mut listed, mut met, mut looked) = (Listed::default(), HashSet::new(), 0);
    let progress = progress();
    loop {
        let left = args.limit.saturating_sub(listed.rows.len() as u32);
        let page = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => {
                progress.finish_and_clear();
                return Err(Failure::Failed(format!("stopped after {looked} records")));
            }
            page = records.page(left) => page?,
        };
        looked += page.looked;
        progress.set_message(format!("{looked} records were looked at"));
        listed.damaged += page.damaged;
        listed.now = listed.now.or(Some(page.now));
        let new = page.rows.into_iter().filter(|it| met.insert(it.id));
        listed.rows.extend(new);
        listed.next = page.next;
        match page.next {
            Some(next) if listed.rows.len() < args.limit as usize => records = records.after(next),
            _ => break,
        }
    }
    progress.finish_and_clear();
    Ok(listed)
}

fn filtered<'a>(idem: &'a Idempotency, args: &ListArgs) -> Records<'a> {
    let mut records = idem.records();
    if args.attention {
        records = records.attention();
    }
    if args.abandoned {
        records = records.abandoned();
    }
    if let Some(operation) = &args.operation {
        records = records.operation(operation);
    }
    if let Some(scope) = &args.scope {
        records = records.scope(scope.as_str());
    }
    if let Some(key) = &args.key {
        records = records.key(key.as_str());
    }
    if let Some(state) = args.state {
        records = records.state(state.into());
    }
    if let Some(age) = &args.older_than {
        records = records.older_than(age.as_str());
    }
    records
}

fn draw(rows: &[RecordRow], now: Option<Time>, screen: &Screen) -> Result<(), Failure> {
    let mut table = Table::new(&["ID", "STATE", "SINCE", "OPERATION", "KEY", "HOLDER"]);
    for row in rows {
        let since = row.finished.unwrap_or(row.created);
        let key = match (&row.scope, &row.key) {
            (Some(scope), Some(key)) => format!("{scope} / {key}"),
            (scope, key) => scope.as_ref().or(key.as_ref()).cloned().unwrap_or_default(),
        };
        let state = match row.is_stream {
            true => format!("{} stream", state_of(row.state)),
            false => state_of(row.state).to_owned(),
        };
        let since = now.map_or_else(|| since.to_string(), |now| ago(since, now));
        table.row([
            row.id.to_hex()[..12].to_owned(),
            state,
            since,
            escaped(&row.operation),
            key,
            escaped(&row.holder),
        ]);
    }
    screen.table(&table)?;
    Ok(())
}

impl From<StateArg> for State {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Running => Self::Running,
            StateArg::Done => Self::Done,
            StateArg::Released => Self::Released,
            StateArg::Uncertain => Self::Uncertain,
            StateArg::Parked => Self::Parked,
            StateArg::Undoing => Self::Undoing,
        }
    }
}

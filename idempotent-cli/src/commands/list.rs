//! `list`: records, by filters.

use std::collections::HashSet;

use idempotent_runtime::{
    Idempotency, Time,
    operate::{RecordRow, Records, State},
};

use crate::{
    args::{ListArgs, StateArg},
    failure::Failure,
    print::{Screen, Table, ago, aside, escaped, object_of_row, progress, state_of},
};

/// Lists until so many rows are there, or nothing is left.
pub(crate) async fn list(
    idem: &Idempotency,
    args: &ListArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let mut records = filtered(idem, args);
    if let Some(after) = &args.after {
        let after = after.parse();
        records = records.after(after.map_err(|error| Failure::Usage(format!("{error}")))?);
    }
    let (mut rows, mut damaged, mut now) = (Vec::<RecordRow>::new(), 0, None);
    let (mut met, mut looked) = (HashSet::new(), 0);
    let progress = progress();
    let next = loop {
        let left = args.limit.saturating_sub(rows.len() as u32);
        let page = tokio::select! {
            page = records.page(left) => page?,
            _ = tokio::signal::ctrl_c() => {
                progress.finish_and_clear();
                return Err(Failure::Failed(format!("stopped after {looked} records")));
            }
        };
        looked += page.looked;
        progress.set_message(format!("{looked} records were looked at"));
        damaged += page.damaged;
        now = now.or(Some(page.now));
        rows.extend(page.rows.into_iter().filter(|it| met.insert(it.id)));
        match page.next {
            Some(next) if rows.len() < args.limit as usize => records = records.after(next),
            next => break next,
        }
    };
    progress.finish_and_clear();
    match screen.json {
        true => rows
            .iter()
            .try_for_each(|row| screen.object(&object_of_row(row)))?,
        false if rows.is_empty() => {}
        false => draw(&rows, now, screen)?,
    }
    if damaged > 0 {
        aside(&format!(
            "{damaged} records cannot be read: other bytes stand there"
        ));
    }
    match next {
        Some(next) => aside(&format!("There may be more: --after {next}")),
        None if rows.is_empty() => {
            return Err(Failure::NotFound("no record is like that".to_owned()));
        }
        None => {}
    }
    Ok(())
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

//! `doctor`: looks a store over, and says for each finding what to do.

mod mysql;
mod postgres;
mod redis;
mod sql;
mod sqlite;

use std::time::Duration;

use idempotent_runtime::{Idempotency, StoreError, StoreErrorKind, operate::State};
use serde_json::json;

use crate::{
    failure::Failure,
    open::{Opened, Place},
    print::{Screen, Table, escaped},
};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grade {
    Fine,
    /// It is worth a look.
    Hint,
    /// Calls may fail, or a promise may not hold.
    Serious,
}

impl Grade {
    fn name(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Hint => "hint",
            Self::Serious => "serious",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Finding {
    grade: Grade,
    subject: &'static str,
    found: String,
    /// Empty where nothing is to be done.
    advice: String,
}

/// All findings of one run.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn fine(&mut self, subject: &'static str, found: impl Into<String>) {
        self.add(Grade::Fine, subject, found, "");
    }

    pub(super) fn add(
        &mut self,
        grade: Grade,
        subject: &'static str,
        found: impl Into<String>,
        advice: &str,
    ) {
        self.0.push(Finding {
            grade,
            subject,
            found: found.into(),
            advice: advice.to_owned(),
        });
    }

    /// It could not be looked at. A right that is missing is a finding, and no end.
    pub(super) fn unseen(&mut self, subject: &'static str, error: &dyn std::fmt::Display) {
        let found = format!("it could not be looked at: {error}");
        let advice = "grant this user the right to read it, or look at it yourself";
        self.add(Grade::Hint, subject, found, advice);
    }

    /// `Fine` if it is so, else this grade and advice.
    pub(super) fn check(
        &mut self,
        is_fine: bool,
        (subject, found): (&'static str, String),
        (grade, advice): (Grade, &str),
    ) {
        match is_fine {
            true => self.fine(subject, found),
            false => self.add(grade, subject, found, advice),
        }
    }
}

pub(crate) async fn doctor(opened: &Opened, screen: &Screen) -> Result<(), Failure> {
    let mut findings = Findings::default();
    // Without tables that can be read, every other look says the same.
    if schema(opened.check_schema().await, &mut findings) {
        clock(&opened.idem, &mut findings).await;
        attention(&opened.idem, &mut findings).await;
        examine(opened, &mut findings).await;
        audit(opened, &mut findings).await;
    }
    let shown = show(&findings, screen);
    match findings.0.iter().any(|it| it.grade == Grade::Serious) {
        true => Err(Failure::Failed("something serious was found".to_owned())),
        false => shown,
    }
}

async fn examine(opened: &Opened, findings: &mut Findings) {
    let prefix = opened.prefix.as_deref().unwrap_or("idempotent_");
    match &opened.place {
        Place::Sqlite(_, pool) => sqlite::examine(pool, prefix, findings).await,
        Place::Postgres(_, pool) => postgres::examine(pool, prefix, findings).await,
        Place::MySql(_, pool) => mysql::examine(pool, prefix, findings).await,
        Place::Redis(nodes) => redis::examine(nodes, findings).await,
        Place::Given => findings.add(
            Grade::Hint,
            "settings",
            "a program's own handle shows no more",
            "run `idempotent doctor` with the URL of the store",
        ),
    }
}

/// The trail of the records, where there is one.
async fn audit(opened: &Opened, findings: &mut Findings) {
    match super::audit::looked(opened).await {
        None => {}
        Some(Err(error)) => findings.add(
            Grade::Serious,
            "audit",
            error.to_string(),
            "calls of programs that ask for the audit are refused until it stands",
        ),
        Some(Ok(None)) => findings.fine("audit", "it stands, and no caller owns its tables"),
        Some(Ok(Some(user))) => findings.add(
            Grade::Hint,
            "audit",
            format!("the application can change this trail, as {user}"),
            "keep anchors elsewhere, and on a server let the application be a user who owns no table",
        ),
    }
}

fn show(findings: &Findings, screen: &Screen) -> Result<(), Failure> {
    if screen.json {
        let object = |it: &Finding| {
            json!({
                "grade": it.grade.name(),
                "subject": it.subject,
                "found": it.found,
                "advice": it.advice,
            })
        };
        let mut objects = findings.0.iter().map(object);
        objects.try_for_each(|object| screen.object(&object))?;
        return Ok(());
    }
    let mut table = Table::new(&["GRADE", "SUBJECT", "FOUND", "ADVICE"]);
    for it in &findings.0 {
        table.row([
            it.grade.name().to_owned(),
            it.subject.to_owned(),
            escaped(&it.found),
            it.advice.clone(),
        ]);
    }
    screen.table(&table)?;
    Ok(())
}

/// Whether this build can use the tables.
fn schema(checked: Result<(), StoreError>, findings: &mut Findings) -> bool {
    let Err(error) = checked else {
        findings.fine("schema", "this build can use the tables");
        return true;
    };
    let advice = match error.kind() {
        StoreErrorKind::Schema => {
            "run `idempotent migrate` with the rights of the tables' owner, or take the newer build"
        }
        _ => "look at the URL, the server and the rights of this user",
    };
    let found = Failure::from(error).to_string();
    findings.add(Grade::Serious, "schema", found, advice);
    false
}

/// How far clocks may be apart before people are misled.
const CLOCK: Duration = Duration::from_secs(5);

async fn clock(idem: &Idempotency, findings: &mut Findings) {
    match idem.health().await.store {
        Err(error) => findings.add(
            Grade::Serious,
            "store",
            Failure::from(error).to_string(),
            "look at the URL, the server and the rights of this user",
        ),
        Ok(pulse) => {
            let apart = Duration::from_micros(pulse.clock_ahead_micros.unsigned_abs());
            let apart = apart.saturating_sub(pulse.round_trip / 2);
            findings.fine("store", "it answers");
            findings.check(
                apart <= CLOCK,
                ("clock", format!("it differs by {} s from that of this machine", apart.as_secs())),
                (Grade::Hint, "let both machines use one time server: no call is harmed, but people are misled"),
            );
        }
    }
}

async fn attention(idem: &Idempotency, findings: &mut Findings) {
    for (state, subject) in [
        (State::Uncertain, "uncertain"),
        (State::Parked, "parked"),
        (State::Undoing, "undoing"),
    ] {
        match idem.records().attention().state(state).count().await {
            Err(error) => findings.unseen(subject, &Failure::from(error)),
            Ok(count) => {
                let more = if count.is_capped { ", or more" } else { "" };
                findings.check(
                    count.records == 0,
                    (subject, format!("{} records{more}", count.records)),
                    (Grade::Hint, "list them: `idempotent list --attention`"),
                );
            }
        }
    }
}

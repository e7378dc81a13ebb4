//! Acts of people on a trail: each is an event, and so an entry.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use idempotent_runtime::{__audit::setters, Time, identity::RecordId};
use serde_json::{Value as Json, json};

use crate::{
    approval::Proposal,
    audit::Audit,
    error::AuditError,
    event::{Event, NewEvent},
};

/// An act of a person on a trail, which is an entry. Nothing happens until it is awaited.
///
/// # Errors
///
/// [`AuditError::InvalidAct`] without a reason, or with a name of more than 256 bytes or a reason of
/// more than 4,096, before anything is written. [`AuditError::Store`] if the database does not
/// answer, or refuses the event.
///
/// # Cancel safety
///
/// Dropped, it is written or not.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct TrailAct<'a> {
    pub(crate) audit: &'a Audit,
    pub(crate) event: &'static str,
    pub(crate) subject: Subject,
    pub(crate) by: Option<String>,
    pub(crate) because: String,
}

/// The subject of an act.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// Entries that are held.
    Held(Json),
    /// The end of a record.
    End(Proposal, RecordId),
}

impl Subject {
    /// The detail of an act, with its reason.
    fn because(&self, because: &str) -> String {
        match self {
            Self::Held(hold) => json!({ HELD: hold, BECAUSE: because }).to_string(),
            Self::End(proposal, record) => format!("{proposal} {} {because}", record.to_hex()),
        }
    }
}

const HELD: &str = "hold";
const BECAUSE: &str = "because";

impl<'a> TrailAct<'a> {
    pub(crate) fn new(audit: &'a Audit, event: &'static str, subject: Subject) -> Self {
        Self {
            audit,
            event,
            subject,
            by: None,
            because: String::new(),
        }
    }

    setters! {
        /// Names the person who acts, in at most 256 bytes. The entry has it as *claimed*, beside
        /// the user of the database.
        by(it, person: impl Into<String>) {
            let person = person.into();
            it.by = (!person.is_empty()).then_some(person);
        }

        /// Sets the reason, of at most 4,096 bytes. Every act needs one.
        because(it, reason: impl Into<String>) { it.because = reason.into() }
    }

    async fn run(self) -> Result<(), AuditError> {
        let Self {
            audit,
            event,
            subject,
            by,
            because,
        } = self;
        if because.trim().is_empty() {
            return Err(AuditError::InvalidAct("it needs a reason: say why"));
        }
        if because.len() > 4_096 || by.as_ref().is_some_and(|by| by.len() > 256) {
            return Err(AuditError::InvalidAct(
                "a name has at most 256 bytes, and a reason at most 4,096",
            ));
        }
        let detail = subject.because(&because);
        let event = NewEvent {
            person: by.as_deref(),
            ..NewEvent::new(event, &detail)
        };
        audit.trail.write(&audit.names, &event).await
    }
}

impl<'a> IntoFuture for TrailAct<'a> {
    type Output = Result<(), AuditError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// The person, the reason and the time of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signed {
    /// The user of the database, which is *proven*. SQLite has none.
    pub db_user: Option<String>,
    /// The person, as *claimed*.
    pub by: Option<String>,
    /// The reason.
    pub because: String,
    /// When it was written, by the server's clock.
    pub at: Time,
}

impl Signed {
    pub(crate) fn new(event: &Event, because: String) -> Self {
        Self {
            db_user: event.db_user.clone(),
            by: event.person.clone(),
            because,
            at: Time::from_micros(event.written),
        }
    }

    /// Reads an act that holds entries, and its subject.
    pub(crate) fn holds(event: &Event) -> Option<(Self, Json)> {
        let detail: Json = serde_json::from_str(&event.detail).ok()?;
        let because = detail.get(BECAUSE)?.as_str()?.to_owned();
        Some((Self::new(event, because), detail.get(HELD)?.clone()))
    }
}

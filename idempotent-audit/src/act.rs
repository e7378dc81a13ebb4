//! Acts of people on a trail: each is an event, and so an entry.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use idempotent_runtime::__audit::setters;

use crate::{
    audit::Audit,
    error::AuditError,
    event::NewEvent,
    hold::{self, Hold},
};

/// An act of a person on a trail, which is an entry. Nothing happens until it is awaited.
///
/// # Errors
///
/// [`AuditError::InvalidAct`] without a reason, or with a name of more than 256 bytes or a reason
/// of more than 4,096, before anything is written. [`AuditError::Store`] if the database does not
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
    Held(Hold),
    /// The number of a hold that ends.
    Released(i64),
    /// The end of a record, as the guard has refused it, and the record.
    End(String),
}

impl Subject {
    /// The detail of an act, with its reason.
    fn because(&self, because: &str) -> String {
        match self {
            Self::Held(hold) => hold::detail(&hold.to_json(), because),
            Self::Released(number) => hold::detail(&(*number).into(), because),
            Self::End(proposal) => format!("{proposal} {because}"),
        }
    }
}

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
        if matches!(&subject, Subject::Held(hold) if hold.is_empty()) {
            return Err(AuditError::InvalidAct(
                "a time ends after it begins: say the earlier one first",
            ));
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

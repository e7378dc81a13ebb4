//! The people who may use the page.

use std::sync::Arc;

use async_trait::async_trait;
use http::request::Parts;

use crate::trail::Verification;

/// Decides for each request which person sends it.
///
/// The page has no login of its own: the application that serves it has one, or a proxy in front of
/// it. A closure is one, too: `|request: &Parts| -> Option<Person>`.
#[async_trait]
pub trait Access: Send + Sync + 'static {
    /// Returns the person of a request, or `None` if nobody may see anything.
    ///
    /// # Cancel safety
    ///
    /// It is dropped when the browser leaves.
    async fn person(&self, request: &Parts) -> Option<Person>;
}

#[async_trait]
impl<F> Access for F
where
    F: Fn(&Parts) -> Option<Person> + Send + Sync + 'static,
{
    async fn person(&self, request: &Parts) -> Option<Person> {
        self(request)
    }
}

/// An act for which a person needs a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Act {
    /// Reads the outcome of a record.
    Reveal,
    /// Says how a call ended.
    Settle,
    /// Has a parked call tried again.
    Resume,
    /// Has the steps of a call undone.
    Undo,
    /// Gives up the outcome of a finished call.
    Invalidate,
    /// Says how a step of a call ended.
    SettleStep,
    /// Says how the number ended at which a stream stops, or uses it up.
    SettleNumber,
    /// Approves the end of a record that another person proposed.
    Approve,
    /// Has a parked key of an outbox go on.
    OutboxResume,
    /// Sends a message again that was set aside.
    OutboxResend,
    /// Sets a message aside, or deletes one that was.
    OutboxDiscard,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Reveal,
        Self::Settle,
        Self::Resume,
        Self::Undo,
        Self::Invalidate,
        Self::SettleStep,
        Self::SettleNumber,
        Self::Approve,
        Self::OutboxResume,
        Self::OutboxResend,
        Self::OutboxDiscard,
    ];
}

/// A person who may read the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    name: Arc<str>,
    acts: Vec<Act>,
    /// The last verification of the audit, which every page shows.
    verification: Option<Verification>,
}

impl Person {
    /// Makes a person with this name, who may read everything but outcomes. Blanks around the name
    /// are left out.
    ///
    /// A person has one name, whatever they typed at the login: two spellings are two people, and
    /// may approve for each other. A request of a person without a name, or with one of more than
    /// 256 bytes, is refused.
    #[must_use]
    pub fn reader(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into().trim().into(),
            acts: Vec::new(),
            verification: None,
        }
    }

    /// Lets the person do these, too.
    #[must_use]
    pub fn with(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.acts.extend(acts);
        self
    }

    /// Whether the name can be kept with an act.
    pub(crate) fn has_name(&self) -> bool {
        !self.name.is_empty() && self.name.len() <= 256
    }

    /// The person of a request that is answered beside this verification.
    pub(crate) fn sees(mut self, verification: Option<Verification>) -> Self {
        self.verification = verification;
        self
    }

    pub(crate) fn verification(&self) -> Option<&Verification> {
        self.verification.as_ref()
    }

    /// Returns whether the person may do this.
    #[must_use]
    pub fn may(&self, act: Act) -> bool {
        self.acts.contains(&act)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

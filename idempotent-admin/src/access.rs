//! The people who may use the page.

use std::sync::Arc;

use async_trait::async_trait;
use http::request::Parts;

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

/// A person who may read the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    name: Arc<str>,
}

impl Person {
    /// Makes a person with this name, who may read everything but outcomes.
    #[must_use]
    pub fn reader(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into() }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

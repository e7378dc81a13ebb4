//! The page: its settings.

use std::{fmt, sync::Arc};

use http::HeaderMap;
use idempotent_runtime::{Idempotency, operate::OperationChange};

use crate::{
    access::Access,
    chart::CallChart,
    origin,
    outbox::AnyOutbox,
    overview::Cache,
    token::{Secret, Subject},
    trail::{AnyTrail, Verification},
};

/// A page for operators, over a handle.
///
/// # Examples
///
/// ```
/// use axum::Router;
/// use http::request::Parts;
/// use idempotent_admin::{Act, Page, Person};
/// use idempotent_runtime::Idempotency;
///
/// let idem = Idempotency::memory();
/// // The proxy in front has asked for a password, and names the person.
/// let access = |request: &Parts| {
///     let name = request.headers.get("x-forwarded-user")?.to_str().ok()?;
///     Some(Person::reader(name).with([Act::Settle]))
/// };
/// let page = Page::new(idem, access).origin("https://ops.example.com");
/// let app: Router = Router::new().nest("/admin", page.router());
/// ```
#[must_use = "it is served by its `router`"]
pub struct Page {
    pub(crate) idem: Idempotency,
    pub(crate) secret: Secret,
    origins: Vec<String>,
    pub(crate) access: Arc<dyn Access>,
    pub(crate) outbox: Option<Arc<dyn AnyOutbox>>,
    pub(crate) trail: Option<Arc<dyn AnyTrail>>,
    pub(crate) verification: Option<Arc<dyn Fn() -> Verification + Send + Sync>>,
    pub(crate) chart: Option<CallChart>,
    pub(crate) changes: Vec<OperationChange>,
    pub(crate) cache: Cache,
    pub(crate) has_secret: bool,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}

impl Page {
    /// Makes a page over this handle, for the people whom `access` knows.
    pub fn new(idem: Idempotency, access: impl Access) -> Self {
        Self {
            idem,
            secret: Secret::random(),
            origins: Vec::new(),
            has_secret: false,
            access: Arc::new(access),
            outbox: None,
            trail: None,
            verification: None,
            chart: None,
            changes: Vec::new(),
            cache: Cache::default(),
        }
    }

    /// Shows this outbox, too: its topics, its parked keys, and the messages that were set aside.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
    )]
    pub fn outbox<DB>(mut self, outbox: &idempotent_runtime::outbox::Outbox<DB>) -> Self
    where
        DB: idempotent_runtime::outbox::OutboxDatabase,
    {
        self.outbox = Some(Arc::new(outbox.clone()));
        self
    }

    /// Shows the entries of each record on this trail.
    ///
    /// If the trail asks for [`four_eyes`](idempotent_audit::AuditBuilder::four_eyes), an act that
    /// the database refuses becomes a proposal, and another person approves it here. Then the act
    /// is done once more.
    #[cfg(feature = "audit")]
    #[cfg_attr(docsrs, doc(cfg(feature = "audit")))]
    pub fn audit(mut self, audit: &idempotent_audit::Audit) -> Self {
        self.trail = Some(Arc::new(audit.clone()));
        self
    }

    /// Shows the last verification of this task on top of every page.
    #[cfg(feature = "audit")]
    #[cfg_attr(docsrs, doc(cfg(feature = "audit")))]
    pub fn verified(mut self, verifying: &idempotent_audit::VerifyTask) -> Self {
        let verifications = verifying.verifications();
        self.verification = Some(Arc::new(move || crate::trail::last(&verifications)));
        self
    }

    /// Shows the calls of this process in the last hour. Leave it out where the page runs in a
    /// process of its own: no call runs there.
    pub fn chart(mut self, chart: &CallChart) -> Self {
        self.chart = Some(chart.clone());
        self
    }

    /// Fails for a form that another site sends.
    pub(crate) fn is_asked_by_itself(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        match origin::is_own(headers, &self.origins) {
            true => Ok(()),
            false => Err("This request comes from another site."),
        }
    }

    /// Fails for a form that is not that of this page, of this person and of this subject, in words
    /// for the person.
    pub(crate) fn trusts(
        &self,
        headers: &HeaderMap,
        subject: Subject<'_>,
        token: &str,
    ) -> Result<(), &'static str> {
        self.is_asked_by_itself(headers)?;
        match self.secret.made(subject, token) {
            true => Ok(()),
            false => Err("This form is too old, or another person's. Open it once more."),
        }
    }

    /// Shows what this deploy changed of the operations, as
    /// [`keep_operations`](Idempotency::keep_operations) told it at the start.
    pub fn changed(mut self, changes: Vec<OperationChange>) -> Self {
        self.changes = changes;
        self
    }

    /// Sets the secret of the forms, which all processes that serve the page share. Without one, a
    /// form that one process made is refused by another one, and by the same one after its restart.
    pub fn secret(mut self, secret: &[u8; 32]) -> Self {
        self.secret = Secret::new(secret);
        self.has_secret = true;
        self
    }

    /// Names an origin under which browsers see the page, such as `https://ops.example.com`. Forms
    /// of browsers that send no `Sec-Fetch-Site` are refused unless they come from one of these.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }
}

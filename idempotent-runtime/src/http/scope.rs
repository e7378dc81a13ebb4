//! Who calls: the space in which a key is unique.

use std::{fmt, sync::Arc};

use http::{StatusCode, request::Parts};

use crate::{
    http::problem::{Kind, Problem},
    key::{KeyPart, KeyWriter},
};

/// Tells callers apart, so that no caller meets the key or the response of another one.
///
/// The layer asks it after the layers outside it have run, so an authentication layer outside can leave what it found out in
/// the request's extensions. Name the principal there and never its credentials: a token that was rotated is another token,
/// and a retry with it is still the same caller's. Who acts for several organisations is a caller in each: take both.
///
/// Two layers over one handle that have the same callers get clones of one scope; others get [a name](super::Builder::name) each.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::http::Scope;
///
/// #[derive(Clone)]
/// struct User { id: u64, organisation: u64 }
///
/// let scope = Scope::of(|request| {
///     let user = request.extensions.get::<User>()?;
///     Some((user.organisation, user.id))
/// });
/// ```
#[derive(Clone)]
pub struct Scope {
    callers: Callers,
    refusal: StatusCode,
}

#[derive(Clone)]
enum Callers {
    Shared,
    Told(Arc<dyn Tell>),
}

trait Tell: Send + Sync {
    fn caller(&self, request: &Parts) -> Option<Caller>;
}

impl<F: Fn(&Parts) -> Option<Caller> + Send + Sync> Tell for F {
    fn caller(&self, request: &Parts) -> Option<Caller> {
        self(request)
    }
}

/// Who calls.
pub(crate) struct Caller(Box<dyn KeyPart + Send + Sync>);

impl KeyPart for Caller {
    fn write(&self, key: &mut KeyWriter) {
        self.0.write(key);
    }
}

impl Scope {
    /// Asks `caller` who calls. Where it answers `None`, the request is refused with 400 and the handler does not run: those
    /// who are nobody do not share a space. The first time a warning says so, because a layer that stands outside of the
    /// authentication lets nobody in.
    pub fn of<K>(caller: impl Fn(&Parts) -> Option<K> + Send + Sync + 'static) -> Self
    where
        K: KeyPart + Send + Sync + 'static,
    {
        Self::new(Callers::Told(Arc::new(move |request: &Parts| {
            caller(request).map(|caller| Caller(Box::new(caller)))
        })))
    }

    /// Says that all callers share one space of keys. Whoever learns or guesses a key then gets the response that another
    /// caller was given: right where there is one caller, or where responses are nobody's secret.
    #[must_use]
    pub fn shared_by_all_callers() -> Self {
        Self::new(Callers::Shared)
    }

    /// Sets the status that refuses a request of nobody: 401 belongs to a service that also says, in `WWW-Authenticate`, how to
    /// authenticate.
    #[must_use]
    pub fn refuse_with(mut self, status: StatusCode) -> Self {
        self.refusal = status;
        self
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.callers, Callers::Shared)
    }

    /// Tells whether two callers who are not one may have one name, each in one of these scopes. What a closure does cannot be seen, so
    /// only clones of one scope are known to name the same callers; and who has a name meets nobody without.
    pub(crate) fn may_confuse(&self, other: &Self) -> bool {
        match (&self.callers, &other.callers) {
            (Callers::Told(tell), Callers::Told(other)) => !Arc::ptr_eq(tell, other),
            (Callers::Shared, _) | (_, Callers::Shared) => false,
        }
    }

    pub(crate) fn refusal(&self) -> StatusCode {
        self.refusal
    }

    fn new(callers: Callers) -> Self {
        Self {
            callers,
            refusal: StatusCode::BAD_REQUEST,
        }
    }

    /// Who sends this request: nobody in particular where all callers share one space; a refusal where that is not known.
    pub(crate) fn caller(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        match &self.callers {
            Callers::Shared => Ok(None),
            Callers::Told(tell) => tell
                .caller(request)
                .map(Some)
                .ok_or_else(|| Problem::new(Kind::ScopeUnresolved).with_status(self.refusal)),
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.callers {
            Callers::Shared => "Scope(shared by all callers)",
            Callers::Told(_) => "Scope(…)",
        })
    }
}

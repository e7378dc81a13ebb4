//! Tells callers apart: the space in which a key is unique.

use std::{fmt, sync::Arc};

use http::request::Parts;

use crate::key::{Key, KeyPart, KeyWriter};

/// How a layer tells callers apart: said by [`LayerBuilder::scope`](super::LayerBuilder::scope) or
/// by
/// [`LayerBuilder::shared_by_all_callers`](super::LayerBuilder::shared_by_all_callers).
#[derive(Clone)]
pub struct Scope(Option<Kind>);

/// One kind of caller, and how a request names its caller.
#[derive(Clone)]
struct Kind {
    name: Arc<str>,
    caller: Arc<CallerOf>,
}

type CallerOf = dyn Fn(&Parts) -> Option<Box<dyn KeyPart + Send + Sync>> + Send + Sync;

/// A caller: its kind, and its name among those of that kind.
pub(crate) struct Caller<N> {
    kind: Arc<str>,
    name: N,
}

/// The caller of a request.
pub(crate) type Requester = Caller<Box<dyn KeyPart + Send + Sync>>;

impl<N: KeyPart> KeyPart for Caller<N> {
    fn write(&self, key: &mut KeyWriter) {
        (&*self.kind, &self.name).write(key);
    }
}

/// A request does not say who sends it.
pub(crate) struct Unknown;

impl Scope {
    pub(crate) fn of_kind<K>(
        kind: &str,
        caller: impl Fn(&Parts) -> Option<K> + Send + Sync + 'static,
    ) -> Self
    where
        K: KeyPart + Send + Sync + 'static,
    {
        Self(Some(Kind {
            name: kind.into(),
            caller: Arc::new(move |request| caller(request).map(|caller| Box::new(caller) as _)),
        }))
    }

    pub(crate) fn shared() -> Self {
        Self(None)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_none()
    }

    /// Whether callers have a kind that says something, where they have one.
    pub(crate) fn is_sound(&self) -> bool {
        let kind = self.0.as_ref();
        kind.is_none_or(|kind| !kind.name.trim().is_empty())
    }

    /// The caller of a request, and none where all of them share one space.
    pub(crate) fn caller(&self, request: &Parts) -> Result<Option<Requester>, Unknown> {
        let Some(kind) = &self.0 else {
            return Ok(None);
        };
        let name = (kind.caller)(request).ok_or(Unknown)?;
        // An empty name is refused here, because its kind would make a key of it.
        Key::from_part(&name).map_err(|_| Unknown)?;
        let kind = Arc::clone(&kind.name);
        Ok(Some(Caller { kind, name }))
    }

    /// The caller of this name. The name alone is one if callers have no kind.
    pub(crate) fn named<'a, N: KeyPart + ?Sized>(&self, name: &'a N) -> Caller<&'a N> {
        let kind = self.0.as_ref().map(|kind| Arc::clone(&kind.name));
        let kind = kind.unwrap_or_default();
        Caller { kind, name }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Scope(shared by all callers)"),
            Some(kind) => f.debug_tuple("Scope").field(&kind.name).finish(),
        }
    }
}

//! The declarations of an annotated function about itself.

use std::{
    any::type_name,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    outcome::{Outline, Stored},
    policy::{InFlight, OnCancel, OnCrash, OnExpired, OnMissingKey, OnOutage},
    record::OutcomeKind,
};

/// An annotated function: what the attribute says, in a static of its own.
#[derive(Debug)]
pub struct Site {
    pub(crate) name: &'static str,
    shared_name: OnceLock<Arc<str>>,
    known_to: AtomicU64,
    reads: OnceLock<Reads>,
    returns_several_types: AtomicBool,
    key: Option<&'static str>,
    scope: Option<&'static str>,
    pub(crate) also_accept: Option<&'static str>,
    pub(crate) policy: Policy,
    on_cancel: OnCancel,
    place: (&'static str, u32),
}

/// How a function that returns this type reads stored outcomes back.
#[derive(Clone, Copy, Debug)]
struct Reads {
    returned: &'static str,
    value: Reader,
    error: Reader,
}

/// Reads something stored, and gives what it looks like; `None` where it cannot be read.
pub(crate) type Reader = fn(&Stored) -> Option<Outline>;

/// The policies of a call: what it says itself, over what its handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) ttl: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) on_missing_key: Option<OnMissingKey>,
    pub(crate) on_outage: Option<OnOutage>,
    pub(crate) on_expired: OnExpired,
    pub(crate) max_takeovers: Option<u32>,
    pub(crate) version: u32,
}

impl Policy {
    pub(crate) const UNSAID: Self = Self {
        ttl: None,
        lease: None,
        in_flight: None,
        on_crash: None,
        on_missing_key: None,
        on_outage: None,
        on_expired: OnExpired::Run,
        max_takeovers: None,
        version: 0,
    };

    /// That of a call which never runs without a record: none would recognise it later.
    pub(crate) const NEVER_UNPROTECTED: Self = Self {
        on_missing_key: Some(OnMissingKey::Refuse),
        on_outage: Some(OnOutage::Closed),
        ..Self::UNSAID
    };
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $($field:ident).+ = $value:expr;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub const fn $name(mut self, $name: $type) -> Self {
            self.$($field).+ = $value;
            self
        })*
    };
}

impl Site {
    /// Declares a function.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            shared_name: OnceLock::new(),
            known_to: AtomicU64::new(0),
            reads: OnceLock::new(),
            returns_several_types: AtomicBool::new(false),
            key: None,
            scope: None,
            also_accept: None,
            policy: Policy::UNSAID,
            on_cancel: OnCancel::Stop,
            place: ("", 0),
        }
    }

    /// Sets where it stands.
    #[must_use]
    pub const fn at(mut self, file: &'static str, line: u32) -> Self {
        self.place = (file, line);
        self
    }

    setters! {
        /// The source text of the key.
        key: &'static str => key = Some(key);
        /// The source text of the scope.
        scope: &'static str => scope = Some(scope);
        /// How long an outcome answers duplicates.
        ttl: Duration => policy.ttl = Some(ttl);
        /// How long a holder may be silent.
        lease: Duration => policy.lease = Some(lease);
        /// How a duplicate acts meanwhile.
        in_flight: InFlight => policy.in_flight = Some(in_flight);
        /// How a record whose holder vanished is treated.
        on_crash: OnCrash => policy.on_crash = Some(on_crash);
        /// How a call without a key is treated.
        on_missing_key: OnMissingKey => policy.on_missing_key = Some(on_missing_key);
        /// How a call without a store is treated.
        on_outage: OnOutage => policy.on_outage = Some(on_outage);
        /// Whether the body runs on when the caller is dropped.
        on_cancel: OnCancel => on_cancel = on_cancel;
        /// The schema version of the outcome.
        version: u32 => policy.version = version;
        /// The operation's name before it was renamed.
        also_accept_name: &'static str => also_accept = Some(also_accept_name);
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        self.shared_name.get_or_init(|| self.name.into())
    }

    /// Notes how a function that returns `R` reads its outcomes back. A generic one has one static
    /// for all that it returns.
    pub(crate) fn reads<R>(&self, value: Reader, error: Reader) {
        let returned = type_name::<R>();
        let known = self.reads.get_or_init(|| Reads {
            returned,
            value,
            error,
        });
        if known.returned != returned {
            self.returns_several_types.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the function could read an outcome back as what it was said to be; yes where that is
    /// not known.
    pub(crate) fn can_read(&self, stored: &Stored, said: Outline) -> bool {
        let Some(reads) = self.reads.get() else {
            return true;
        };
        if self.returns_several_types.load(Ordering::Relaxed) {
            return true;
        }
        let read = match stored.kind() {
            OutcomeKind::Value => (reads.value)(stored),
            OutcomeKind::Error => (reads.error)(stored),
            OutcomeKind::NotReplayable | OutcomeKind::Stream => return true,
        };
        read.is_some_and(|read| read.fits(said))
    }

    /// Warns of an old name that no function can have had, when it is first met: the calls under
    /// the right name would run again.
    pub(crate) fn warn_of_an_impossible_old_name(&self) {
        if let Some((old, flaw)) = self
            .also_accept
            .and_then(|old| Some((old, flaw_of_a_derived_name(old)?)))
        {
            tracing::warn!(
                operation = self.name,
                also_accept = old,
                "`also_accept` finds no record: {flaw}; a name that was not given reads `my-package::my_crate::module::function`"
            );
        }
    }

    pub(crate) fn is_known_to(&self, handle: u64) -> bool {
        self.known_to.load(Ordering::Relaxed) == handle
    }

    pub(crate) fn becomes_known_to(&self, handle: u64) {
        self.known_to.store(handle, Ordering::Relaxed);
    }
}

/// Why the attribute has never derived this name of an operation. Without `::`, a name was given,
/// and may be anything.
fn flaw_of_a_derived_name(name: &str) -> Option<&'static str> {
    let (package, rest) = name.split_once("::")?;
    let is_path = |part: &str| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        !part.is_empty() && part.chars().all(is_word)
    };
    match () {
        () if package.is_empty() => Some("the name of the package is missing"),
        () if !rest.contains("::") => Some("one of package, crate and function is missing"),
        () if !rest.split("::").all(is_path) => {
            Some("a crate, a module and a function have no hyphen, and `_` stands in its place")
        }
        () => None,
    }
}

/// An annotated function: a line of the inventory of what is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// Its stable name.
    pub name: &'static str,
    /// The source text of its key; `None` where the arguments are the key.
    pub key: Option<&'static str>,
    /// The source text of its scope.
    pub scope: Option<&'static str>,
    /// How long its outcomes answer duplicates; `None` where the handle or an expression says it.
    pub ttl: Option<Duration>,
    /// How long a holder may be silent; `None` where the handle or an expression says it.
    pub lease: Option<Duration>,
    /// How a duplicate acts meanwhile; `None` where the handle says it.
    pub in_flight: Option<InFlight>,
    /// How a record whose holder vanished is treated; `None` where the handle says it.
    pub on_crash: Option<OnCrash>,
    /// How a call without a key is treated; `None` where the handle says it.
    pub on_missing_key: Option<OnMissingKey>,
    /// How a call without a store is treated; `None` where the handle says it.
    pub on_outage: Option<OnOutage>,
    /// Whether the body runs on when the caller is dropped.
    pub on_cancel: OnCancel,
    /// The schema version of its outcomes.
    pub version: u32,
    /// Its name before it was renamed: records of that name answer, too.
    pub also_accept: Option<&'static str>,
    /// The file of its attribute, as the compiler was given it.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// Whether this handle has had a call of it.
    pub is_seen: bool,
}

impl Operation {
    pub(crate) fn of(site: &Site, is_seen: bool) -> Self {
        Self {
            name: site.name,
            key: site.key,
            scope: site.scope,
            ttl: site.policy.ttl,
            lease: site.policy.lease,
            in_flight: site.policy.in_flight,
            on_crash: site.policy.on_crash,
            on_missing_key: site.policy.on_missing_key,
            on_outage: site.policy.on_outage,
            on_cancel: site.on_cancel,
            version: site.policy.version,
            also_accept: site.also_accept,
            file: site.place.0,
            line: site.place.1,
            is_seen,
        }
    }

    /// All that is said of it, by the names of the attribute, except where it stands.
    pub(crate) fn said(&self) -> impl Iterator<Item = (&'static str, String)> {
        fn text(choice: Option<impl fmt::Debug>) -> Option<String> {
            choice.map(|choice| format!("{choice:?}"))
        }
        let on_cancel = (self.on_cancel != OnCancel::Stop).then_some(self.on_cancel);
        let version = (self.version != 0).then_some(self.version);
        let said = [
            ("key", self.key.map(str::to_owned)),
            ("scope", self.scope.map(str::to_owned)),
            ("ttl", text(self.ttl)),
            ("lease", text(self.lease)),
            ("in_flight", text(self.in_flight)),
            ("on_crash", text(self.on_crash)),
            ("on_missing_key", text(self.on_missing_key)),
            ("on_outage", text(self.on_outage)),
            ("on_cancel", text(on_cancel)),
            ("version", text(version)),
            ("also_accept", self.also_accept.map(str::to_owned)),
        ];
        let said = said.into_iter();
        said.filter_map(|(name, value)| Some((name, value?)))
    }
}

/// One line: the name, and what the attribute says of it. It does not say where it stands.
///
/// ```text
/// payments.charge: key = order.id, scope = tenant, ttl = 86400s
/// ```
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.said().map(|(name, value)| format!("{name} = {value}"));
        let said: Vec<_> = said.collect();
        match said.is_empty() {
            true => f.write_str(self.name),
            false => write!(f, "{}: {}", self.name, said.join(", ")),
        }
    }
}

/// What the linker knows of a function.
#[cfg(feature = "inventory")]
#[derive(Debug)]
pub struct Linked(pub &'static Site);

#[cfg(feature = "inventory")]
inventory::collect!(Linked);

/// The annotated functions of the program, called or not; none without the feature `inventory`.
pub(crate) fn linked() -> impl Iterator<Item = &'static Site> {
    #[cfg(feature = "inventory")]
    let all = inventory::iter::<Linked>().map(|linked| linked.0);
    #[cfg(not(feature = "inventory"))]
    let all = std::iter::empty();
    all
}

/// Has the linker know a function: the attribute writes it behind the static.
#[doc(hidden)]
#[cfg(feature = "inventory")]
#[macro_export]
macro_rules! __link {
    ($site:ident) => {
        $crate::__private::inventory::submit! { $crate::__private::Linked(&$site) }
    };
}

#[doc(hidden)]
#[cfg(not(feature = "inventory"))]
#[macro_export]
macro_rules! __link {
    ($site:ident) => {};
}

#[cfg(test)]
mod tests {
    use super::flaw_of_a_derived_name;

    #[test]
    fn first_hour_04_names_that_were_never_derived_have_a_flaw() {
        for possible in [
            "payments.charge",
            "pay-ments",
            "my-package::my_crate::charge",
            "my-package::my_crate::cards::charge",
        ] {
            assert_eq!(flaw_of_a_derived_name(possible), None, "{possible}");
        }
        for impossible in [
            "my_crate::charge",
            "::my_crate::charge",
            "my-package::my-crate::charge",
            "my-package::my_crate::",
            "my-package::my_crate::Cards::<u8>::charge",
        ] {
            let flaw = flaw_of_a_derived_name(impossible);
            assert!(flaw.is_some(), "{impossible}");
        }
    }
}

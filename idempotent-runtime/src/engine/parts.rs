//! The parts that a handle is made of, and its settings.

use std::{sync::Arc, time::Duration};

use tracing::Span;

use crate::{
    clock::{SystemTimer, Timer},
    codec::Coder,
    fingerprint::FingerprintKey,
    observe::Observers,
    policy::{InFlight, OnCrash, OnMissingKey, OnOutage, Verdict},
    store::Store,
    value::opaque,
};

/// The parts of a handle.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) defaults: Defaults,
    pub(crate) coder: Coder,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) observers: Observers,
    pub(crate) fingerprint_key: Option<FingerprintKey>,
    pub(crate) holder_name: Arc<str>,
    pub(crate) build_id: Option<Arc<str>>,
    pub(crate) traces: Option<Traces>,
    pub(crate) redact_keys: bool,
    pub(crate) enabled: bool,
}

/// The settings of calls that do not say otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) ttl: Duration,
    pub(crate) audit_retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) in_flight: InFlight,
    pub(crate) on_error: Verdict,
    pub(crate) on_crash: OnCrash,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) on_outage: OnOutage,
    pub(crate) max_takeovers: u32,
    pub(crate) max_run_time: Duration,
    pub(crate) step_grace: Duration,
    pub(crate) undo_timeout: Duration,
    pub(crate) transaction_warning: Duration,
    pub(crate) max_outcome: usize,
}

impl Default for Defaults {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            ttl: DAY,
            audit_retention: Duration::ZERO,
            lease: Duration::from_secs(30),
            in_flight: InFlight::Wait(Duration::from_secs(10)),
            on_error: Verdict::Replay,
            on_crash: OnCrash::Rerun,
            on_missing_key: OnMissingKey::Refuse,
            on_outage: OnOutage::Closed,
            max_takeovers: 5,
            max_run_time: DAY,
            step_grace: Duration::from_secs(30),
            undo_timeout: Duration::from_secs(60),
            transaction_warning: Duration::from_secs(5),
            max_outcome: 16 * 1024 * 1024,
        }
    }
}

impl Parts {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            defaults: Defaults::default(),
            coder: Coder::default(),
            timer: Arc::new(SystemTimer),
            observers: Observers::default(),
            fingerprint_key: None,
            holder_name: format!("pid {}", std::process::id()).into(),
            build_id: None,
            traces: None,
            redact_keys: false,
            enabled: true,
        }
    }
}

impl Parts {
    /// Tells which build this is, and by which key it makes fingerprints.
    pub(crate) fn about(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let build = self.build_id.as_ref();
        let build = build.map_or(String::new(), |build| format!(", build {build}"));
        let key = self.fingerprint_key.as_ref().map(FingerprintKey::label);
        let key = key.map_or(String::new(), |key| format!(", fingerprint key {key}"));
        format!("idempotent-runtime {version}{build}{key}")
    }
}

opaque!(
    Parts,
    |it| store = it.store,
    defaults = it.defaults,
    holder_name = it.holder_name,
    enabled = it.enabled
);

/// How calls and messages belong to traces of the application's.
#[derive(Clone)]
pub(crate) struct Traces {
    /// Tells the `traceparent` of the work at hand.
    current: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// Links a span to the one that this `traceparent` names.
    link: fn(&Span, &str),
}

impl Traces {
    pub(crate) fn new(
        current: impl Fn() -> Option<String> + Send + Sync + 'static,
        link: fn(&Span, &str),
    ) -> Self {
        let current = Arc::new(current);
        Self { current, link }
    }

    /// Takes a function of the application's, which knows of no spans to link.
    pub(crate) fn named(current: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self::new(current, |_, _| ())
    }

    pub(crate) fn current(&self) -> Option<String> {
        (self.current)()
    }

    pub(crate) fn link(&self, span: &Span, trace_parent: &str) {
        (self.link)(span, trace_parent);
    }
}

opaque!(Traces);

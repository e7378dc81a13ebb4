//! Links between the spans of calls, by OpenTelemetry.
//!
//! It is of `opentelemetry` 0.33 and `tracing-opentelemetry` 0.34: the program must use the same.
//! The feature alone changes nothing. [`Builder::opentelemetry`] and
//! [`Outbox::opentelemetry`](crate::outbox::Outbox::opentelemetry) switch it on:
//!
//! | the span of | links to the span that |
//! |---|---|
//! | a replay | ran the call |
//! | a takeover | claimed the call before |
//! | a relay's `idempotent.publish` | sent each of the messages |
//! | a call of a consumer, with [`trace_parent`](crate::consumer::Delivery::trace_parent) | sent the message |
//!
//! The links of a replay and of a takeover come once the record was found, so after the sampler has
//! decided about the span. A batch of a relay has as many links as the SDK keeps, 128 unless it is
//! set otherwise.
//!
//! A link needs a span on both sides: those of calls are at INFO, with the target `idempotent`. A
//! span that the sampler dropped is named all the same, and its link leads nowhere.

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

#[cfg(feature = "_sql")]
use crate::outbox::{Outbox, OutboxDatabase};
use crate::{engine::parts::Traces, handle::Builder};

impl Builder {
    /// Stores the current span with each claim, as a W3C `traceparent`, and links the span of a
    /// replay and of a takeover to it. It takes the place of [`trace_parent`](Self::trace_parent).
    ///
    /// # Examples
    ///
    /// ```
    /// use idempotent_runtime::{Idempotency, MemoryStore};
    ///
    /// # fn main() -> Result<(), idempotent_runtime::Error> {
    /// # let store = MemoryStore::new();
    /// let idem = Idempotency::builder(store).opentelemetry().build()?;
    /// # let _ = idem;
    /// # Ok(()) }
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
    pub fn opentelemetry(self) -> Self {
        self.traced(traces())
    }
}

#[cfg(feature = "_sql")]
impl<DB: OutboxDatabase> Outbox<DB> {
    /// Stores the current span with each message, as a W3C `traceparent`, and links the span of a
    /// relay's batch to it. It takes the place of [`trace_parent`](Self::trace_parent).
    #[must_use]
    #[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
    pub fn opentelemetry(self) -> Self {
        self.traced(traces())
    }
}

fn traces() -> Traces {
    let current = || trace_parent(&Span::current().context());
    Traces::new(current, |span, stored| {
        if let Some(stored) = span_context(stored) {
            span.add_link(stored);
        }
    })
}

/// Returns the W3C `traceparent` of the span in a context; `None` if there is none.
///
/// It is version 00 of [W3C Trace Context](https://www.w3.org/TR/trace-context/).
#[must_use]
pub fn trace_parent(context: &Context) -> Option<String> {
    let span = context.span();
    let span = span.span_context();
    span.is_valid().then(|| {
        let flags = span.trace_flags() & TraceFlags::SAMPLED;
        format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id())
    })
}

/// Reads the span that a W3C `traceparent` names; `None` if it names none. Of a version above 00,
/// it reads the parts of version 00.
#[must_use]
pub fn span_context(trace_parent: &str) -> Option<SpanContext> {
    let mut parts = trace_parent.split('-');
    let mut part = |length| parts.next().filter(|part| is_hex(part, length));
    let version = part(2).filter(|version| *version != "ff")?;
    let (trace, span, flags) = (part(32)?, part(16)?, part(2)?);
    if version == "00" && parts.next().is_some() {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        flags & TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
}

fn is_hex(part: &str, length: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    part.len() == length && part.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_parent_is_read_as_it_is_written() {
        for written in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
        ] {
            let context = span_context(written).expect("it names a span");
            let context = Context::new().with_remote_span_context(context);
            assert_eq!(trace_parent(&context).as_deref(), Some(written));
        }
    }

    #[test]
    fn what_names_no_span_is_none() {
        assert_eq!(trace_parent(&Context::new()), None);
        for written in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
            "00-\u{e9}-b7ad6b7169203331-01",
        ] {
            assert!(span_context(written).is_none(), "{written}");
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
        assert!(span_context(later).is_some());
    }
}

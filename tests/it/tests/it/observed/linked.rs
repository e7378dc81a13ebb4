//! Spans that link to the one that stored what they found, by OpenTelemetry.

use idempotent_runtime::{
    CallReport, Error, Idempotency, MemoryStore,
    outbox::{Envelope, Outbox},
};
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SpanData};
use tracing::{Instrument as _, subscriber::DefaultGuard};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::{cancellation::polled, outbox::broker::Broker};

/// The spans of one test, as they are exported.
struct Spans {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
    _guard: DefaultGuard,
}

impl Spans {
    fn new(sampler: Sampler) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .with_sampler(sampler)
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        Self {
            exporter,
            provider,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The spans of this name, in the order in which they ended.
    fn named(&self, name: &str) -> Vec<SpanData> {
        self.provider.force_flush().expect("they are exported");
        let mut spans = self.exporter.get_finished_spans().expect("spans");
        spans.retain(|span| span.name == name);
        spans
    }
}

fn links(span: &SpanData) -> Vec<SpanId> {
    span.links
        .iter()
        .map(|link| link.span_context.span_id())
        .collect()
}

fn own(span: &SpanData) -> SpanId {
    span.span_context.span_id()
}

async fn pay(idem: &Idempotency) -> u32 {
    let call = idem.call("pay").key("k");
    let paid = call.run(async |_| Ok::<_, Error>(1)).await;
    paid.expect("it is paid")
}

#[tokio::test]
async fn a_replay_links_to_the_span_that_ran_the_call() {
    let spans = Spans::new(Sampler::AlwaysOn);
    let builder = Idempotency::builder(MemoryStore::new()).opentelemetry();
    let idem = builder.build().expect("a handle");
    for trace in ["first", "second", "third"] {
        pay(&idem)
            .instrument(tracing::info_span!("request", trace))
            .await;
    }
    let calls = spans.named("idempotent");
    let [first, replays @ ..] = &calls[..] else {
        panic!("{calls:?}")
    };
    assert_eq!(links(first), []);
    assert_eq!(replays.len(), 2);
    for replay in replays {
        assert_eq!(links(replay), [own(first)]);
        assert_ne!(
            replay.span_context.trace_id(),
            first.span_context.trace_id(),
            "it is a trace of its own"
        );
    }
}

#[tokio::test]
async fn a_takeover_links_to_the_span_that_claimed_before() {
    let spans = Spans::new(Sampler::AlwaysOn);
    let builder = Idempotency::builder(MemoryStore::new()).opentelemetry();
    let idem = builder.build().expect("a handle");
    let call = idem.call("pay").key("k");
    let held = call.run(async |_| std::future::pending::<Result<u32, Error>>().await);
    let mut held = Box::pin(held);
    assert!(polled(&mut held, 1).await.is_none());
    // Dropped, its lease is ended, and the next call takes over.
    drop(held);
    assert_eq!(pay(&idem).await, 1);
    let calls = spans.named("idempotent");
    let (first, last) = (&calls[0], calls.last().expect("spans"));
    assert_eq!(links(last), [own(first)]);
}

#[tokio::test]
async fn a_relay_and_a_consumer_link_to_the_span_that_sent_the_message() {
    let spans = Spans::new(Sampler::AlwaysOn);
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!(
        "sqlite:{}?mode=rwc",
        folder.path().join("outbox.db").display()
    );
    let pool = sqlx::SqlitePool::connect(&url).await.expect("a pool");
    let outbox = Outbox::sqlite(pool.clone()).opentelemetry();
    outbox.migrate().await.expect("tables");
    let sending = async {
        let mut transaction = pool.begin().await.expect("a transaction");
        let message = crate::outbox::placed(7).key("a");
        outbox
            .send(&mut *transaction, message)
            .await
            .expect("it is sent");
        transaction.commit().await.expect("it is committed");
    };
    sending.instrument(tracing::info_span!("request")).await;
    let broker = Broker::willing();
    let relay = outbox
        .relay(broker.clone())
        .start()
        .await
        .expect("it starts");
    while broker.by_key().is_empty() {
        tokio::task::yield_now().await;
    }
    relay.stop().await;
    let sent = own(&spans.named("request")[0]);
    assert_eq!(links(&spans.named("idempotent.publish")[0]), [sent]);

    let envelopes: Vec<Envelope> = broker.arrived();
    let trace_parent = envelopes[0].traceparent.as_deref().expect("it is there");
    let idem = Idempotency::builder(MemoryStore::new()).opentelemetry();
    let consumer = idem
        .build()
        .expect("a handle")
        .consumer("billing")
        .ttl("7d");
    let consumer = consumer.broker_retention("3d").build().expect("a consumer");
    let message = consumer.message(&envelopes[0].id).without_payload();
    let message = message.trace_parent(trace_parent);
    let _acknowledged = message.run(async |_| Ok::<_, Error>(())).await;
    assert_eq!(links(&spans.named("idempotent")[0]), [sent]);
}

#[tokio::test]
async fn spans_that_are_dropped_by_the_sampler_hurt_no_call() {
    let spans = Spans::new(Sampler::AlwaysOff);
    let builder = Idempotency::builder(MemoryStore::new()).opentelemetry();
    let idem = builder.build().expect("a handle");
    for _ in 0..3 {
        assert_eq!(pay(&idem).await, 1);
    }
    assert_eq!(spans.named("idempotent").len(), 0);
    let call = idem
        .call("pay")
        .key("k")
        .run_detailed(async |_| Ok::<_, Error>(1));
    let (_, how) = call.await;
    let CallReport::Replayed { trace_parent, .. } = how else {
        panic!("{how:?}")
    };
    let trace_parent = trace_parent.expect("the span has a name all the same");
    assert!(trace_parent.ends_with("-00"), "{trace_parent}");
}

#[tokio::test]
async fn without_the_setting_nothing_is_linked_or_stored() {
    let spans = Spans::new(Sampler::AlwaysOn);
    let idem = Idempotency::memory();
    for _ in 0..2 {
        assert_eq!(pay(&idem).await, 1);
    }
    for call in spans.named("idempotent") {
        assert_eq!(links(&call), []);
    }
    let call = idem
        .call("pay")
        .key("k")
        .run_detailed(async |_| Ok::<_, Error>(1));
    let (_, how) = call.await;
    let unnamed = matches!(
        &how,
        CallReport::Replayed {
            trace_parent: None,
            ..
        }
    );
    assert!(unnamed, "{how:?}");
}

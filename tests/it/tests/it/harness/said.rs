//! The events and spans of `tracing`.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex, Once, PoisonError},
    thread,
};

use tokio::runtime::Runtime;
use tracing_subscriber::{
    Layer, filter,
    fmt::{self, format::FmtSpan},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

tokio::task_local! {
    static LISTENER: Said;
}

/// Runs `future`, and gives every event and every new span of it, on this task, as lines of text.
pub(crate) async fn said_during<F: Future>(future: F) -> (F::Output, String) {
    listen();
    let said = Said::default();
    let output = LISTENER.scope(said.clone(), future).await;
    (output, said.text())
}

/// A runtime whose threads are heard as those of heartbeats are.
pub(crate) fn runtime_in_the_background() -> Runtime {
    listen();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(2).thread_name(HEARD).enable_all();
    builder.build().expect("a runtime")
}

const HEARD: &str = "heard-in-tests";

/// Gives every event of heartbeat threads as lines of text, since a test listened for the first
/// time.
pub(crate) fn said_in_the_background() -> String {
    background().text()
}

fn background() -> &'static Said {
    static BACKGROUND: LazyLock<Said> = LazyLock::new(Said::default);
    &BACKGROUND
}

fn is_in_the_background() -> bool {
    let thread = thread::current();
    matches!(thread.name(), Some("idempotent-heartbeats" | HEARD))
}

/// One subscriber for the whole process: `tracing` remembers the interests of subscribers, and may
/// miss an event while subscribers of several tests come and go.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let lines = fmt::layer()
            .with_span_events(FmtSpan::NEW)
            .without_time()
            .with_writer(|| {
                let here = LISTENER.try_with(Clone::clone);
                here.unwrap_or_else(|_| background().clone())
            })
            .with_filter(filter::dynamic_filter_fn(|_, _| {
                LISTENER.try_with(|_| ()).is_ok() || is_in_the_background()
            }));
        tracing_subscriber::registry().with(lines).init();
    });
}

#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

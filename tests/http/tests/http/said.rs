//! The messages of the layer to its operators.

use std::{
    io,
    sync::{Mutex, Once, PoisonError},
};

use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt::format::FmtSpan,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Everything that was said in this process: handlers run in tasks of their own, so tests are told
/// apart by the names of their layers.
static SAID: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Awaits `future`, and gives the warnings that name this operation.
pub(crate) async fn warnings_of<F: Future>(operation: &str, future: F) -> (F::Output, String) {
    let (output, said) = said_during(future).await;
    let warned = said.lines().filter(|line| {
        let is_warning = line.contains(" WARN ") || line.contains("ERROR ");
        is_warning && line.contains(operation)
    });
    (output, warned.collect())
}

/// Awaits `future`, and gives every line that was said until then in this process: each event of
/// this library, whatever its level, and each span with its fields.
pub(crate) async fn said_during<F: Future>(future: F) -> (F::Output, String) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_span_events(FmtSpan::FULL)
            .with_writer(|| Said);
        let all_of_ours = Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target("idempotent", LevelFilter::TRACE);
        tracing_subscriber::registry()
            .with(all_of_ours)
            .with(lines)
            .init();
    });
    let output = future.await;
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    (output, String::from_utf8_lossy(&said).into_owned())
}

struct Said;

impl io::Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

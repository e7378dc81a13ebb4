//! What the layer warns its operators of.

use std::{
    io,
    sync::{Mutex, Once, PoisonError},
};

use tracing_subscriber::{filter::LevelFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// Everything that was warned of in this process: handlers run in tasks of their own, so tests are told apart by the names of their
/// layers.
static WARNED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Awaits `future`, and gives the lines that name this operation.
pub(crate) async fn warnings_of<F: Future>(operation: &str, future: F) -> (F::Output, String) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(|| Warned);
        let warnings = tracing_subscriber::registry().with(LevelFilter::WARN);
        warnings.with(lines).init();
    });
    let output = future.await;
    let warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    let warned = String::from_utf8_lossy(&warned);
    let named = warned.lines().filter(|line| line.contains(operation));
    (output, named.collect())
}

struct Warned;

impl io::Write for Warned {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
        warned.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

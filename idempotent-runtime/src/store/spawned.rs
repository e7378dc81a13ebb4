//! Work in a task of its own, on a connection that others wait for.

use std::{
    future::{Future, pending},
    io,
    panic::resume_unwind,
    sync::OnceLock,
    thread,
};

use tokio::{
    runtime::{Builder, Handle, RuntimeFlavor},
    task::JoinHandle,
};
use tracing::{Instrument, instrument::WithSubscriber};

use crate::store::{StoreError, StoreErrorKind};

/// Does `work` in a task of its own. A call may be polled no more for a while, as in a stream that
/// buffers, or behind a `select!`. If the call itself held the connection, the connection would
/// wait for it, and all other calls for the connection. So would they for a task of a runtime of
/// one thread that is blocked, or rests between two `block_on`: a thread of ours drives that work.
///
/// # Cancel safety
///
/// If the call is dropped before the work is done, the work is dropped as soon as it gives way.
pub async fn spawned<T: Send + 'static>(
    doing: &'static str,
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let work = work.in_current_span();
    let driver = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => driver(),
        _ => None,
    };
    let mut task = Task(match driver {
        Some(driver) => driver.spawn(work.with_current_subscriber()),
        None => tokio::spawn(work),
    });
    match (&mut task.0).await {
        Ok(answer) => answer,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down.
            Err(stopped) => {
                Err(StoreError::new(StoreErrorKind::Unavailable, doing).with_source(stopped))
            }
        },
    }
}

/// Does `work` in a task that goes on if the caller goes away, driven by the same threads.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn detached(work: impl Future<Output = ()> + Send + 'static) {
    let driver = match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => driver(),
        _ => None,
    };
    match driver {
        Some(driver) => drop(driver.spawn(work.with_current_subscriber())),
        None => drop(tokio::spawn(work)),
    }
}

/// The runtime of the thread of ours. It lives as long as the process; `None` if it cannot start.
fn driver() -> Option<&'static Handle> {
    static DRIVER: OnceLock<Option<Handle>> = OnceLock::new();
    DRIVER.get_or_init(|| drive().ok()).as_ref()
}

fn drive() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let driver = runtime.handle().clone();
    let thread = thread::Builder::new().name("idempotent-sqlite".into());
    thread.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(driver)
}

struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

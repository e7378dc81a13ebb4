//! Hears of records that moved, from whichever process moved them.

use std::{
    fmt::Display,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinHandle;

use crate::{
    identity::RecordId,
    store::waiters::{Waiters, look::Pace},
};

/// How long nobody has to wait for anything before the connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// How long to wait before the server is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The same where notifications get lost: behind a proxy that does not pass them on.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// How long our own notification may take.
const ECHO: Duration = Duration::from_secs(5);

/// What we tell ourselves: no id.
pub(crate) const HELLO: &str = "hello";

/// Where a server tells that records moved.
pub(crate) trait Channel: Send + 'static {
    type Error: Display + Send;

    /// What to do where notifications get lost.
    const WHEN_LOST: &str;

    /// Begins to listen on a new connection, and then says [`HELLO`] there.
    fn open(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Hears the next message; `None` where the connection was closed. Dropped, it has lost nothing.
    fn next(&mut self) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;

    /// Listens no longer.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// One connection that listens while somebody waits, in a task of its own.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    hears: Arc<AtomicBool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listening {
    /// Begins to listen, unless it does already, on the runtime of the caller.
    pub(crate) fn begin<C: Channel>(&self, waiters: &Arc<Waiters>, channel: impl FnOnce() -> C) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished also means that the runtime it ran on has shut down.
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.hears.store(false, Ordering::Release);
        let (mut channel, waiters) = (channel(), Arc::downgrade(waiters));
        let hears = Arc::clone(&self.hears);
        *task = Some(tokio::spawn(async move {
            listen(&mut channel, &waiters, &hears).await;
            hears.store(false, Ordering::Release);
            channel.close().await;
        }));
    }

    /// How often a waiter has to look by itself at this moment.
    pub(crate) fn pace(&self) -> Pace {
        if self.hears.load(Ordering::Acquire) {
            Pace::TOLD
        } else {
            Pace::ALONE
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}

async fn listen<C: Channel>(channel: &mut C, waiters: &Weak<Waiters>, hears: &AtomicBool) {
    // Whoever began this may not have registered yet.
    loop {
        let pause = match hear(channel, waiters, hears).await {
            Ok(Heard::Enough) => PAUSE,
            Ok(Heard::Nothing) => {
                tracing::warn!(
                    "notifications get lost, so waiters look by themselves; {}",
                    C::WHEN_LOST
                );
                LONG_PAUSE
            }
            Err(error) => {
                tracing::debug!(%error, "notifications cannot be heard, waiters look by themselves");
                PAUSE
            }
        };
        hears.store(false, Ordering::Release);
        tokio::time::sleep(pause).await;
        if !anybody(waiters) {
            return;
        }
    }
}

/// Why a connection stopped listening.
enum Heard {
    /// Nobody has waited for a while, or the server closed the connection.
    Enough,
    /// Our own notification did not come back.
    Nothing,
}

async fn hear<C: Channel>(
    channel: &mut C,
    waiters: &Weak<Waiters>,
    hears: &AtomicBool,
) -> Result<Heard, C::Error> {
    channel.open().await?;
    let mut limit = ECHO;
    loop {
        match tokio::time::timeout(limit, channel.next()).await {
            Ok(Ok(Some(told))) => {
                // What moved before this connection listened was told to nobody: whoever looks asks for the pace before its
                // look, so that it relies on being told of what moves after that look.
                hears.store(true, Ordering::Release);
                limit = IDLE;
                if let (Some(id), Some(waiters)) = (read_id(&told), waiters.upgrade()) {
                    waiters.wake(&id);
                }
            }
            Ok(ended) => {
                wake_all(waiters);
                return ended.map(|_| Heard::Enough);
            }
            Err(_) if !hears.load(Ordering::Acquire) => return Ok(Heard::Nothing),
            Err(_) if anybody(waiters) => {}
            Err(_) => return Ok(Heard::Enough),
        }
    }
}

fn anybody(waiters: &Weak<Waiters>) -> bool {
    waiters.upgrade().is_some_and(|waiters| waiters.are_there())
}

fn wake_all(waiters: &Weak<Waiters>) {
    if let Some(waiters) = waiters.upgrade() {
        waiters.wake_all();
    }
}

/// Reads an id from its 64 hexadecimal digits.
pub(crate) fn read_id(text: &str) -> Option<RecordId> {
    let mut id = [0; 32];
    if text.len() != 2 * id.len() || !text.is_ascii() {
        return None;
    }
    for (place, byte) in id.iter_mut().enumerate() {
        let digits = text.get(2 * place..2 * place + 2)?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(RecordId::from_bytes(id))
}

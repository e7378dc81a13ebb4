//! Hears of records that moved, from whichever process moved them.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
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

/// The same where notifications get lost: behind a proxy that pools transactions.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// How long our own notification may take.
const ECHO: Duration = Duration::from_secs(5);

/// What we tell ourselves: no id.
const HELLO: &str = "hello";

/// One connection that listens while somebody waits, in a task of its own.
#[derive(Debug, Default)]
pub(super) struct Listening {
    hears: Arc<AtomicBool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listening {
    /// Begins to listen, unless it does already, on the runtime of the caller. Whoever waits then looks at the record once
    /// more before it relies on being told.
    pub(super) fn begin(
        &self,
        place: PgConnectOptions,
        channel: &Arc<str>,
        waiters: &Arc<Waiters>,
    ) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished also means that the runtime it ran on has shut down.
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.hears.store(false, Ordering::Release);
        let (channel, waiters) = (Arc::clone(channel), Arc::downgrade(waiters));
        let hears = Arc::clone(&self.hears);
        *task = Some(tokio::spawn(async move {
            listen(place, &channel, &waiters, &hears).await;
            hears.store(false, Ordering::Release);
        }));
    }

    /// How often a waiter has to look by itself at this moment.
    pub(super) fn pace(&self) -> Pace {
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

async fn listen(
    place: PgConnectOptions,
    channel: &str,
    waiters: &Weak<Waiters>,
    hears: &AtomicBool,
) {
    // One to listen, one to say hello.
    let pool = PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy_with(place);
    while anybody(waiters) {
        let pause = match hear(&pool, channel, waiters, hears).await {
            Ok(Heard::Enough) => PAUSE,
            Ok(Heard::Nothing) => {
                tracing::warn!(
                    "notifications get lost, so waiters look by themselves; say `transaction_pooling(true)` where a proxy pools transactions"
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
    }
    pool.close().await;
}

/// Why a connection stopped listening.
enum Heard {
    /// Nobody has waited for a while, or the server closed the connection.
    Enough,
    /// Our own notification did not come back.
    Nothing,
}

async fn hear(
    pool: &PgPool,
    channel: &str,
    waiters: &Weak<Waiters>,
    hears: &AtomicBool,
) -> sqlx::Result<Heard> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen(channel).await?;
    sqlx::query("SELECT pg_notify($1, $2)")
        .persistent(false)
        .bind(channel)
        .bind(HELLO)
        .execute(pool)
        .await?;
    let mut limit = ECHO;
    loop {
        match tokio::time::timeout(limit, listener.try_recv()).await {
            Ok(Ok(Some(told))) => {
                if !hears.swap(true, Ordering::AcqRel) {
                    limit = IDLE;
                    // What moved before this connection listened was told to nobody.
                    wake_all(waiters);
                }
                if let (Some(id), Some(waiters)) = (read(told.payload()), waiters.upgrade()) {
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

fn read(payload: &str) -> Option<RecordId> {
    let mut id = [0; 32];
    if payload.len() != 2 * id.len() || !payload.is_ascii() {
        return None;
    }
    for (place, byte) in id.iter_mut().enumerate() {
        let digits = payload.get(2 * place..2 * place + 2)?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(RecordId::from_bytes(id))
}

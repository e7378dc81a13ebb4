//! Notifications of records that moved, from all processes that move them.

mod listener;

use std::{
    fmt::Display,
    sync::{
        Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(crate) use self::listener::Listener;
use crate::{identity::RecordId, store::waiters::Waiters};

/// How long nothing is heard before the connection is tried out, or closed if no call waits for
/// anything.
const IDLE: Duration = Duration::from_secs(30);

/// How long to wait before the server is tried again; twice as long after each failure that follows
/// on another.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause, and the one where notifications get lost: behind a proxy that does not pass
/// them on.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// How long our own notification may take.
const ECHO: Duration = Duration::from_secs(5);

/// The message that we send ourselves: no id.
pub(crate) const HELLO: &str = "hello";

/// A channel on which a server tells that records moved.
pub(crate) trait Channel: Send + 'static {
    type Error: Display + Send;

    /// Says once that notifications get lost, and what to do.
    const WHEN_LOST: &str;

    /// The place of the server, without a password.
    fn place(&self) -> String;

    /// Begins to listen on a new connection, in bounded time.
    fn open(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Says [`HELLO`] there by another way, in bounded time.
    fn hello(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Hears the next message; `None` where the connection was closed. Dropped, it has lost
    /// nothing.
    fn next(&mut self) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;

    /// Listens no longer, in bounded time.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// The receivers of notifications.
pub(crate) trait Audience: Send + Sync {
    /// Takes a message, which may be [`HELLO`].
    fn told(&self, message: &str);

    /// Looks at everything: messages may have got lost.
    fn look(&self);

    /// Whether any waiter still wants to be told.
    fn is_there(&self) -> bool;
}

impl Audience for Weak<Waiters> {
    fn told(&self, message: &str) {
        if let (Some(id), Some(waiters)) = (read_id(message), self.upgrade()) {
            waiters.wake(&id);
        }
    }

    fn look(&self) {
        if let Some(waiters) = self.upgrade() {
            waiters.wake_all();
        }
    }

    fn is_there(&self) -> bool {
        self.upgrade().is_some_and(|waiters| waiters.are_there())
    }
}

/// Listens until no waiter wants to be told any more.
pub(crate) async fn listen<C: Channel>(
    channel: &mut C,
    audience: &impl Audience,
    is_live: &AtomicBool,
) {
    let (mut pause, mut has_warned) = (PAUSE, false);
    // The call that began this may not have registered yet.
    loop {
        let ended = hear(channel, audience, is_live).await;
        if is_live.swap(false, Ordering::AcqRel) {
            // Waiters that relied on being told look now.
            audience.look();
            pause = PAUSE;
        }
        let rest = match ended {
            Ok(Heard::Enough) => PAUSE,
            Ok(Heard::Nothing) => {
                if !std::mem::replace(&mut has_warned, true) {
                    tracing::warn!("{}", C::WHEN_LOST);
                }
                LONG_PAUSE
            }
            Err(error) => {
                let place = channel.place();
                tracing::warn!(%error, place, "notifications cannot be heard, so waiters and relays look by themselves");
                let rest = pause;
                pause = (pause * 2).min(LONG_PAUSE);
                rest
            }
        };
        tokio::time::sleep(rest).await;
        if !audience.is_there() {
            return;
        }
    }
}

/// Why a connection stopped listening.
enum Heard {
    /// No call has waited for a while, or the connection is closed or dead.
    Enough,
    /// Not even the first of our own notifications came back.
    Nothing,
}

async fn hear<C: Channel>(
    channel: &mut C,
    audience: &impl Audience,
    is_live: &AtomicBool,
) -> Result<Heard, C::Error> {
    channel.open().await?;
    channel.hello().await?;
    let mut limit = ECHO;
    loop {
        match tokio::time::timeout(limit, channel.next()).await {
            Ok(Ok(Some(message))) => {
                // No waiter was told of moves before this connection listened. So a waiter asks for
                // the interval before its look: it relies on being told only of moves after that
                // look.
                is_live.store(true, Ordering::Release);
                limit = IDLE;
                audience.told(&message);
            }
            Ok(ended) => return ended.map(|_| Heard::Enough),
            Err(_) if !is_live.load(Ordering::Acquire) => return Ok(Heard::Nothing),
            Err(_) if limit == ECHO || !audience.is_there() => return Ok(Heard::Enough),
            // Nothing moved, or the connection is dead without a sign.
            Err(_) => {
                channel.hello().await?;
                limit = ECHO;
            }
        }
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

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::{future::pending, io, sync::Arc};

    use tokio::{
        sync::mpsc::{UnboundedSender, unbounded_channel},
        time::Instant,
    };

    use super::*;
    use crate::store::waiters::look::PollInterval;

    /// Says what it is asked, and does as the test says.
    struct Scripted {
        asked: UnboundedSender<(&'static str, Instant)>,
        opens: bool,
        /// How many of our own notifications come back.
        echoes: u32,
        /// A notification is on its way.
        told: bool,
    }

    impl Scripted {
        /// A channel that opens, and gets so many of its own notifications back.
        fn that_echoes(times: u32, asked: UnboundedSender<(&'static str, Instant)>) -> Self {
            Self {
                asked,
                opens: true,
                echoes: times,
                told: false,
            }
        }

        fn ask(&self, what: &'static str) {
            // At the end of a test, no receiver is left.
            let _ = self.asked.send((what, Instant::now()));
        }
    }

    impl Channel for Scripted {
        type Error = io::Error;

        const WHEN_LOST: &str = "";

        fn place(&self) -> String {
            "here".to_owned()
        }

        async fn open(&mut self) -> io::Result<()> {
            self.ask("open");
            let closed = || io::ErrorKind::ConnectionRefused.into();
            self.opens.then_some(()).ok_or_else(closed)
        }

        async fn hello(&mut self) -> io::Result<()> {
            self.ask("hello");
            self.told = self.echoes > 0;
            self.echoes = self.echoes.saturating_sub(1);
            Ok(())
        }

        async fn next(&mut self) -> io::Result<Option<String>> {
            if !std::mem::take(&mut self.told) {
                pending::<()>().await;
            }
            Ok(Some(HELLO.into()))
        }

        async fn close(self) {
            self.ask("close");
        }
    }

    const ONE: RecordId = RecordId::from_bytes([1; 32]);

    /// The first requests to a channel while a call waits, and how many seconds lie in between.
    async fn asked<const N: usize>(opens: bool, echoes: u32) -> [(&'static str, u64); N] {
        let waiters = Arc::new(Waiters::new());
        let first = waiters.register(&ONE);
        let again = Arc::clone(&waiters);
        let waiting = tokio::spawn(async move {
            first.await;
            loop {
                again.register(&ONE).await;
            }
        });
        let (asked, mut asking) = unbounded_channel();
        let listener = Listener::default();
        listener.begin(&waiters, || Scripted {
            asked,
            opens,
            echoes,
            told: false,
        });
        let mut last = Instant::now();
        let mut all = [("", 0); N];
        for one in &mut all {
            let (what, at) = asking.recv().await.expect("it is asked more");
            *one = (what, at.duration_since(last).as_secs());
            last = at;
        }
        waiting.abort();
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_fell_silent_is_tried_out_and_opened_anew() {
        let silent = [
            ("open", 0),
            ("hello", 0),
            ("hello", 30),
            ("hello", 30),
            ("open", 6),
            ("hello", 0),
        ];
        assert_eq!(asked(true, 2).await, silent);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_looks_when_a_connection_fell_silent() {
        let waiters = Arc::new(Waiters::new());
        let waiter = waiters.register(&ONE);
        let _other = waiters.register(&RecordId::from_bytes([2; 32]));
        let (asked, _asking) = unbounded_channel();
        let listener = Listener::default();
        listener.begin(&waiters, || Scripted::that_echoes(1, asked));
        waiter.await;
        assert_eq!(listener.poll_interval().first, PollInterval::POLLING.first);
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_open_is_tried_less_and_less_often() {
        let pauses = asked::<9>(false, 0).await;
        assert_eq!(
            pauses.map(|(_, pause)| pause),
            [0, 1, 2, 4, 8, 16, 32, 60, 60]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_hears_nothing_at_all_says_so_rarely() {
        let lost = [("open", 0), ("hello", 0), ("open", 65), ("hello", 0)];
        assert_eq!(asked(true, 0).await, lost);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_closed_when_nobody_has_waited_for_a_while() {
        let waiters = Arc::new(Waiters::new());
        let (asked, mut asking) = unbounded_channel();
        let listener = Listener::default();
        listener.begin(&waiters, || Scripted::that_echoes(9, asked));
        for expected in ["open", "hello", "close"] {
            let (what, _) = asking.recv().await.expect("it is asked more");
            assert_eq!(what, expected);
        }
    }
}

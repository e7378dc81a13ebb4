//! Events: what an observer learns of the calls of a client.

mod ended;
mod watched;

use std::{fmt, sync::Arc, time::Duration};

use http::{Method, StatusCode};

pub use self::ended::{CallEnd, CallEnded};
pub(crate) use self::watched::Watched;
use crate::policy::decide::Observed;
use idempotent_runtime::__client::tell;

/// Learns how calls go. Every method does nothing unless it is written.
///
/// A method runs inside the call that it is about, so it must be quick and must not block. If it
/// panics, the panic is logged, and the call goes on.
///
/// # Examples
///
/// ```
/// use idempotent_client::observe::{CallEnd, CallEnded, ClientObserver};
///
/// struct Unknown;
///
/// impl ClientObserver for Unknown {
///     fn ended(&self, event: &CallEnded<'_>) {
///         if event.end == CallEnd::Unknown {
///             eprintln!("find out what {} has done", event.server);
///         }
///     }
/// }
/// ```
pub trait ClientObserver: Send + Sync + 'static {
    /// An attempt ended.
    fn attempt(&self, event: &AttemptEvent<'_>) {
        let _ = event;
    }

    /// A call ended. Each call of the middleware has one end.
    fn ended(&self, event: &CallEnded<'_>) {
        let _ = event;
    }

    /// A [sampler](crate::IdempotencyKeys::sample) has read the journal. `None` means that no
    /// reading is new enough to be shown.
    fn open_calls(&self, reading: Option<&OpenCalls>) {
        let _ = reading;
    }
}

/// The end of one attempt.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AttemptEvent<'a> {
    /// The origin that the call is for, such as `https://api.example.com`.
    pub server: &'a str,
    /// The method.
    pub method: &'a Method,
    /// Its number within the call; the first one is 1.
    pub number: u32,
    /// How it ended.
    pub result: AttemptResult,
    /// How long it took, with all middlewares inside.
    pub elapsed: Duration,
    /// The pause after which the call is sent again; `None` if it is not. A call whose key grows
    /// too old in the pause is not sent again, either.
    pub resend_in: Option<Duration>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptResult {
    /// The server answered with this status.
    Answered(StatusCode),
    /// No connection came about: the server saw nothing.
    NotSent,
    /// The connection was cut, or the time was over, and the server may have seen everything.
    Lost,
    /// It failed for another reason, such as a certificate or a middleware inside.
    Failed,
}

impl AttemptResult {
    /// The names of all results, in the order of the table of metrics.
    pub const NAMES: [&'static str; 8] = [
        "1xx", "2xx", "3xx", "4xx", "5xx", "not_sent", "lost", "failed",
    ];

    /// Its name, as metrics spell it: an answer is named by the class of its status. A status that
    /// is of no class is `failed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self.place()]
    }

    /// The place of its name among all.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::Answered(status) => match usize::from(status.as_u16() / 100) {
                class @ 1..=5 => class - 1,
                _ => 7,
            },
            Self::NotSent => 5,
            Self::Lost => 6,
            Self::Failed => 7,
        }
    }
}

impl From<&Observed> for AttemptResult {
    fn from(observed: &Observed) -> Self {
        match observed {
            Observed::Answer(answer) => Self::Answered(answer.status),
            Observed::NotSent => Self::NotSent,
            Observed::Lost => Self::Lost,
            Observed::Hopeless | Observed::Failed => Self::Failed,
        }
    }
}

/// The calls of a journal that have no ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCalls {
    /// How many there are.
    pub calls: u64,
    /// Whether there may be more of them.
    pub is_capped: bool,
    /// How old the key of the oldest one is; zero if there is none.
    pub oldest: Duration,
}

/// The observers of a client.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn ClientObserver>>);

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn ClientObserver>) {
        self.0.push(observer);
    }

    pub(crate) fn tell(&self, of: impl Fn(&dyn ClientObserver)) {
        for observer in &self.0 {
            if tell(|| of(&**observer)).is_none() {
                tracing::error!("an observer panicked, which changes nothing");
            }
        }
    }
}

//! The programs that call the service, what their users do, and what they were told.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use idempotent_client::{
    Budget, ClientCall as Keyed, ClientError, ClientJournal, ClientOutcome, IdempotencyKeys,
    Intent, KeyStatus, Limits, Profile, Resend, StopReason,
};
use idempotent_runtime::{clock::Timer, testing::ManualClock};
use rand::{RngExt, rngs::StdRng};
use reqwest::{Response, StatusCode};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, RequestBuilder};
use tokio::task::AbortHandle;

use crate::{
    LEASE, RETENTION, SHARED,
    service::{Receipt, Wish},
};

/// A program with a journal that outlives it, and that others may have, too.
#[derive(Debug)]
pub(crate) struct Program {
    /// Which journal it has.
    pub(crate) journal: usize,
    http: ClientWithMiddleware,
    pub(crate) keys: IdempotencyKeys,
    clock: ManualClock,
    url: String,
    /// When everything began, and every wish came up.
    began: SystemTime,
    pub(crate) calls: Vec<AbortHandle>,
}

/// When a manual clock begins.
const BEGAN: Duration = Duration::from_secs(1_767_225_600);

/// The habits of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) attempts: u32,
    pub(crate) keeps_connections: bool,
}

impl Program {
    pub(crate) fn start(
        journal: usize,
        kept_in: Arc<dyn ClientJournal>,
        clock: ManualClock,
        service: SocketAddr,
        habits: Habits,
    ) -> Self {
        let limits = Limits::default()
            .attempts(habits.attempts)
            .deadline(LEASE * 20)
            .attempt_timeout(LEASE * 3)
            .backoff(LEASE / 10, LEASE)
            .budget(Budget::new(1_000, 1.0));
        let keys = IdempotencyKeys::builder(Profile::ietf().retention(RETENTION))
            .limits(limits)
            .clock(clock.clone())
            .timer(clock.clone())
            .journal(kept_in);
        let connections = if habits.keeps_connections {
            usize::MAX
        } else {
            0
        };
        let http = reqwest::Client::builder().pool_max_idle_per_host(connections);
        let (http, keys) = keys.build(http).expect("a client");
        Self {
            journal,
            http: ClientBuilder::new(http).with(keys.clone()).build(),
            keys,
            clock,
            began: SystemTime::UNIX_EPOCH + BEGAN,
            url: format!("http://{service}/charges"),
            calls: Vec::new(),
        }
    }

    pub(crate) fn die(&self) {
        self.calls.iter().for_each(AbortHandle::abort);
    }

    /// Sends what the journal holds open, as the manual says.
    pub(crate) fn resume(&self) -> impl Future<Output = Option<Told>> + Send + use<> {
        let (keys, http) = (self.keys.clone(), self.http.clone());
        async move {
            for call in keys.unfinished(100).await.expect("a list") {
                let call = call.expect("it can be read");
                let Some(request) = call.request(&http) else {
                    assert_eq!(call.replay_plan(), Resend::TooOld);
                    continue;
                };
                let account = call.account().to_owned();
                // The outcome is the journal's, for any caller that asks.
                let _ = request.header("account", account).send().await;
            }
            None
        }
    }
}

/// One call, as it was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) number: usize,
    pub(crate) account: &'static str,
    pub(crate) wish: Wish,
    form: Form,
    /// How long after the beginning it comes.
    pub(crate) comes: Duration,
    /// When its user goes away.
    leaves: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Others have the same intent.
    Shared,
    /// An intent of its own.
    Own,
    /// A key that no other call knows.
    Random,
}

impl Call {
    /// Draws a call that comes within this time.
    pub(crate) fn draw(rng: &mut StdRng, number: usize, within: Duration) -> Self {
        let form = match rng.random_range(0..5) {
            0 => Form::Random,
            1 => Form::Own,
            _ => Form::Shared,
        };
        let intent = match form {
            Form::Shared => format!("shared {}", rng.random_range(0..SHARED)),
            Form::Own | Form::Random => format!("own {number}"),
        };
        Self {
            number,
            account: ["alice", "bob"][rng.random_range(0..2)],
            wish: Wish {
                intent,
                cents: match rng.random_range(0..8) {
                    0 => 99,
                    _ => 12,
                },
            },
            form,
            comes: within.mul_f64(rng.random_range(0.0..1.0)),
            leaves: match rng.random_range(0..4) {
                0 => Some(LEASE.mul_f64(rng.random_range(0.0..6.0))),
                _ => None,
            },
        }
    }

    /// Whether others may have asked for the same.
    pub(crate) fn is_shared(&self) -> bool {
        self.form == Form::Shared
    }

    /// Whether it can be asked for again.
    pub(crate) fn is_named(&self) -> bool {
        self.form != Form::Random
    }

    /// The same, by a user who waits for it, and of any program: it is no call's own any more.
    pub(crate) fn again(&self) -> Self {
        Self {
            form: Form::Shared,
            leaves: None,
            ..self.clone()
        }
    }

    /// Makes the call; `None` where its user left.
    pub(crate) fn make(self, by: &Program) -> impl Future<Output = Option<Told>> + Send + use<> {
        let (clock, request) = (by.clock.clone(), self.request(by));
        let journal = by.journal;
        async move {
            let leaves = async {
                match self.leaves {
                    Some(leaves) => clock.sleep(leaves).await,
                    None => std::future::pending().await,
                }
            };
            let ended = tokio::select! {
                response = request.send() => Ended::of(response).await,
                () = leaves => return None,
            };
            Some(Told {
                journal,
                call: self,
                ended,
            })
        }
    }

    fn request(&self, by: &Program) -> RequestBuilder {
        let mut keyed = Keyed::new().account(self.account);
        if self.form != Form::Random {
            let intent = Intent::new("charge", &self.wish.intent);
            keyed = keyed.intent(intent.begun(by.began));
        }
        by.http
            .post(&by.url)
            .header("account", self.account)
            .json(&self.wish)
            .with_extension(keyed)
    }
}

/// The answer that a caller was given.
#[derive(Debug)]
pub(crate) struct Told {
    /// Which journal its program has.
    pub(crate) journal: usize,
    pub(crate) call: Call,
    pub(crate) ended: Ended,
}

#[derive(Debug)]
pub(crate) enum Ended {
    Answered {
        status: StatusCode,
        /// The content of the body, if it says what was charged.
        receipt: Option<Receipt>,
        outcome: ClientOutcome,
    },
    Failed(reqwest_middleware::Error),
}

impl Ended {
    async fn of(response: reqwest_middleware::Result<Response>) -> Self {
        let response = match response {
            Ok(response) => response,
            Err(error) => return Ended::Failed(error),
        };
        let outcome = ClientOutcome::from_response(&response).expect("every response has one");
        Ended::Answered {
            status: response.status(),
            outcome: outcome.clone(),
            receipt: response.json().await.ok(),
        }
    }
}

impl Told {
    /// Whether asking again would say the same.
    pub(crate) fn is_settled(&self) -> bool {
        match &self.ended {
            Ended::Answered { outcome, .. } => outcome.key_status != KeyStatus::Released,
            Ended::Failed(error) => match ClientError::from_error(error) {
                Some(ClientError::Unknown { why, .. }) => !matches!(
                    why,
                    StopReason::Attempts
                        | StopReason::Deadline
                        | StopReason::Budget
                        | StopReason::Journal
                ),
                Some(ClientError::Exhausted { .. } | ClientError::RetryLater { .. }) => false,
                _ => true,
            },
        }
    }
}

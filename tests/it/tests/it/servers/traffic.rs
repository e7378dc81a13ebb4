//! A thousand calls of 64 callers, in the middle of which something happens to the server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{Error, Idempotency, InFlight, OnCrash, store::Store};
use tokio::{sync::watch, task::JoinSet};

const CALLS: usize = 1_000;
const CALLERS: usize = 64;
/// So each key is called for twice, by callers that come at about the same time.
const KEYS: usize = CALLS / 2;
/// So many calls have been answered when it happens.
const BEFORE: usize = 300;

/// The results of the calls.
pub(super) struct Traffic {
    effects: Arc<Vec<AtomicU32>>,
    /// The outcome that each key's callers were told.
    told: Vec<Option<u64>>,
    /// How many calls ended in an error that says that they may be tried again, and were.
    pub(super) refused: usize,
}

/// A caller: it takes the key that is next, and calls as often as it is told to try again.
#[derive(Clone)]
struct Caller {
    idem: Idempotency,
    on_crash: OnCrash,
    effects: Arc<Vec<AtomicU32>>,
    next: Arc<AtomicU32>,
    answered: watch::Sender<usize>,
    refused: watch::Sender<usize>,
}

/// Tells the maker of the fault how the callers fare.
pub(super) struct Progress {
    answered: watch::Receiver<usize>,
    refused: watch::Receiver<usize>,
}

impl Progress {
    /// Resolves when so many calls have been told to try again.
    pub(super) async fn refused(&mut self, count: usize) {
        let come = self.refused.wait_for(|refused| *refused >= count).await;
        drop(come.expect("the callers live"));
    }

    /// Resolves when so many calls have been answered.
    pub(super) async fn answered(&mut self, count: usize) {
        let come = self.answered.wait_for(|answered| *answered >= count).await;
        drop(come.expect("the callers live"));
    }
}

impl Traffic {
    /// Makes the calls, and lets `fault` happen in their middle.
    ///
    /// # Panics
    ///
    /// If a call ends in anything except an answer or an error that may be tried again, or if
    /// duplicates are answered differently.
    pub(super) async fn around(
        store: Arc<dyn Store>,
        on_crash: OnCrash,
        fault: impl AsyncFnOnce(Progress),
    ) -> Self {
        let idem = Idempotency::new(store);
        let (answered, refused) = (watch::Sender::new(0), watch::Sender::new(0));
        let mut progress = Progress {
            answered: answered.subscribe(),
            refused: refused.subscribe(),
        };
        let caller = Caller {
            idem: idem.clone(),
            on_crash,
            effects: Arc::new((0..KEYS).map(|_| AtomicU32::new(0)).collect()),
            next: Arc::default(),
            answered,
            refused,
        };
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(caller.clone().call_on());
        }
        progress.answered(BEFORE).await;
        fault(progress).await;

        let mut told = vec![None; KEYS];
        while let Some(ended) = callers.join_next().await {
            let answers = match ended {
                Ok(ended) => ended,
                Err(failed) => std::panic::resume_unwind(failed.into_panic()),
            };
            for (key, value) in answers {
                let first = *told[key].get_or_insert(value);
                assert_eq!(first, value, "two outcomes of call {key}");
            }
        }
        assert!(
            idem.shutdown(Duration::from_secs(25)).await,
            "every outcome is written"
        );
        Self {
            effects: caller.effects,
            told,
            refused: *caller.refused.borrow(),
        }
    }

    /// Asserts that another client finds every outcome that a caller was told, and that no body ran
    /// twice.
    pub(super) async fn assert_kept(&self, store: Arc<dyn Store>) {
        let idem = Idempotency::new(store);
        for (key, told) in self.told.iter().enumerate() {
            let again = answer(&idem, key, OnCrash::Uncertain, &self.effects, || {});
            assert_eq!(Some(again.await), *told, "call {key}");
            assert_eq!(self.runs(key), 1, "call {key}");
        }
    }

    pub(super) fn runs(&self, key: usize) -> u32 {
        self.effects[key].load(Ordering::SeqCst)
    }
}

impl Caller {
    async fn call_on(self) -> Vec<(usize, u64)> {
        let mut answers = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::SeqCst) as usize;
            if number >= CALLS {
                return answers;
            }
            let key = number / 2;
            let refused = || self.refused.send_modify(|refused| *refused += 1);
            let answer = answer(&self.idem, key, self.on_crash, &self.effects, refused).await;
            answers.push((key, answer));
            self.answered.send_modify(|answered| *answered += 1);
        }
    }
}

/// The answer to a call, which is made again after each error that may be gone the next time.
async fn answer(
    idem: &Idempotency,
    key: usize,
    on_crash: OnCrash,
    effects: &Arc<Vec<AtomicU32>>,
    refused: impl Fn(),
) -> u64 {
    loop {
        match charge(idem, key, on_crash, effects).await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_retryable(), "call {key}: {error:?}"),
        }
        refused();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A call whose outcome tells the run of its body.
async fn charge(
    idem: &Idempotency,
    key: usize,
    on_crash: OnCrash,
    effects: &Arc<Vec<AtomicU32>>,
) -> Result<u64, Error> {
    let effects = Arc::clone(effects);
    idem.call("charge")
        .key(&key)
        .on_crash(on_crash)
        .in_flight(InFlight::Wait(Duration::from_secs(20)))
        .run(|_| async move {
            let run = effects[key].fetch_add(1, Ordering::SeqCst) + 1;
            // This is some work, so that at any moment many bodies are in the middle of it.
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(key as u64 * 1_000 + u64::from(run))
        })
        .await
}

//! The callers, what their bodies do at a gateway, and what the callers were told.

use std::{collections::HashMap, sync::Arc, time::Duration};

use idempotent_runtime::{
    Attempt, CallReport, Error, Idempotency, InFlight, OnCrash, Reconciled, Verdict,
};
use rand::{RngExt, rngs::StdRng};
use serde::{Deserialize, Serialize};

use super::witness::Ledger;
use crate::scripts::{self, Form, Say, stored, verdict};

/// One call, as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) number: usize,
    pub(super) key: u64,
    /// The value that the fingerprint is taken of.
    pub(super) amount: u32,
    pub(super) on_crash: OnCrash,
    form: Form,
    in_flight: InFlight,
    /// How long after the beginning it comes.
    pub(super) comes: Duration,
    /// When its caller stops waiting for it.
    leaves: Option<Duration>,
    /// How long its body takes before it charges, and from then on.
    takes: [Duration; 2],
    /// Whether it keeps its thread for as long.
    blocks: bool,
    ends: Ends,
    knows: bool,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// It charges.
    Value,
    /// It charges, or not, and says this.
    Error(Say),
    /// It charges, or not.
    Panic { charged: bool },
}

/// The word that one body says, and no other one does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Word {
    pub(super) key: u64,
    pub(super) amount: u32,
    pub(super) call: usize,
    pub(super) token: u64,
    /// The gateway's receipt.
    pub(super) receipt: Option<usize>,
}

pub(super) type Failure = scripts::Failure<Word>;

/// Something that a body or a reconciling function did, under a fencing token.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) at: u64,
    pub(super) key: u64,
    pub(super) token: u64,
    pub(super) call: usize,
    pub(super) amount: u32,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The body was polled.
    Began { is_takeover: bool },
    /// The gateway refuses the child key: it was charged under it with another amount.
    Conflict,
    /// The body came to its end, and said this; as it is stored.
    Ended(String, Option<Say>),
    /// The body is gone, whether it came to its end or not.
    Gone,
    /// The reconciling function told whether the gateway knows of a charge, or that it cannot know.
    Asked(Option<bool>),
}

/// The answer that a caller was told.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) began: u64,
    pub(super) at: u64,
    pub(super) call: Call,
    pub(super) result: Result<Word, Failure>,
    /// How the answer came about, where the form of the call tells.
    pub(super) how: Option<CallReport>,
}

/// Charges once for each key that it is given, as gateways do.
#[derive(Debug, Default)]
pub(super) struct Books {
    charges: HashMap<String, (u32, usize)>,
}

impl Books {
    /// The receipt; nothing if it was charged with another amount.
    fn charge(&mut self, child_key: &str, amount: u32) -> Option<usize> {
        let receipt = self.charges.len();
        let of = self.charges.entry(child_key.to_owned());
        let (charged, receipt) = *of.or_insert((amount, receipt));
        (charged == amount).then_some(receipt)
    }

    fn find(&self, child_key: &str, amount: u32) -> Option<usize> {
        let charge = self.charges.get(child_key);
        charge.and_then(|(charged, receipt)| (*charged == amount).then_some(*receipt))
    }

    /// Whether it gave this receipt for this amount.
    pub(super) fn gave(&self, receipt: usize, amount: u32) -> bool {
        self.charges
            .values()
            .any(|charge| *charge == (amount, receipt))
    }
}

impl Call {
    /// Draws a call. `on_crash` is what every call of its key says, or `None` where each says what
    /// it likes.
    pub(super) fn draw(
        rng: &mut StdRng,
        number: usize,
        keys: &[u64],
        lease: Duration,
        on_crash: Option<OnCrash>,
    ) -> Self {
        let mut span = |most: f64| lease.mul_f64(rng.random_range(0.0..most));
        let (comes, leaves, waits) = (span(7.0), span(2.5), span(3.0));
        let (short, long) = ([span(0.2), span(0.2)], [span(1.5), span(1.5)]);
        let any = [OnCrash::Rerun, OnCrash::Uncertain, OnCrash::Reconcile];
        Self {
            number,
            key: keys[rng.random_range(0..keys.len())],
            amount: u32::from(rng.random_range(0..6) == 0),
            on_crash: on_crash.unwrap_or_else(|| any[rng.random_range(0..3)]),
            form: match rng.random_range(0..4) {
                0 => Form::Detached,
                _ => Form::Attached,
            },
            in_flight: match rng.random_range(0..4) {
                0 => InFlight::Reject,
                _ => InFlight::Wait(waits),
            },
            comes,
            leaves: (rng.random_range(0..4) == 0).then_some(leaves),
            takes: match rng.random_range(0..4) {
                0 => long,
                1 => [Duration::ZERO; 2],
                _ => short,
            },
            blocks: rng.random_range(0..20) == 0,
            ends: match rng.random_range(0..14) {
                0 => Ends::Panic { charged: true },
                1 => Ends::Panic { charged: false },
                2 => Ends::Error(Say::Declined),
                3..6 => Ends::Error(Say::Nothing),
                6 => Ends::Error(Say::Perhaps),
                _ => Ends::Value,
            },
            knows: rng.random_range(0..4) != 0,
        }
    }

    /// The call that tells, when all is over, what became of a key.
    pub(super) fn last(key: u64, amount: u32, number: usize, on_crash: OnCrash) -> Self {
        Self {
            number,
            key,
            amount,
            on_crash,
            form: Form::Attached,
            in_flight: InFlight::Wait(Duration::from_secs(20)),
            comes: Duration::ZERO,
            leaves: None,
            takes: [Duration::ZERO; 2],
            blocks: false,
            ends: Ends::Value,
            knows: true,
        }
    }

    /// Makes the call; `None` where its caller left.
    pub(super) async fn make(self, idem: Idempotency, ledger: Arc<Ledger>) -> Option<Told> {
        let began = ledger.tick();
        let answer = self.clone().run(idem, Arc::clone(&ledger));
        let (result, how) = match self.leaves {
            None => answer.await,
            Some(leaves) => tokio::select! {
                answer = answer => answer,
                () = tokio::time::sleep(leaves) => return None,
            },
        };
        Some(Told {
            began,
            at: ledger.tick(),
            call: self,
            result,
            how,
        })
    }

    async fn run(
        self,
        idem: Idempotency,
        ledger: Arc<Ledger>,
    ) -> (Result<Word, Failure>, Option<CallReport>) {
        let call = idem
            .call("charge")
            .key(&self.key)
            .arguments(&self.amount)
            .in_flight(self.in_flight)
            .classify_errors(verdict as fn(&Failure) -> Verdict);
        let (script, asked, asks) = (self.clone(), self.clone(), Arc::clone(&ledger));
        let body = move |attempt: Attempt| script.body(attempt, ledger);
        match (self.on_crash, self.form) {
            (OnCrash::Reconcile, _) => {
                let ask = move |attempt: Attempt| asked.ask(attempt, asks);
                (call.reconcile(ask, body).await, None)
            }
            (on_crash, Form::Detached) => (call.on_crash(on_crash).run_detached(body).await, None),
            (on_crash, Form::Attached) => {
                let (result, how) = call.on_crash(on_crash).run_detailed(body).await;
                (result, Some(how))
            }
        }
    }

    async fn body(self, attempt: Attempt, ledger: Arc<Ledger>) -> Result<Word, Failure> {
        let scribe = self.scribe(&attempt, &ledger);
        let is_takeover = attempt.is_takeover();
        scribe.note(What::Began { is_takeover });
        // It is dropped when the body is dropped.
        let _gone = Gone(&scribe);
        self.work(0).await;
        let charges = match self.ends {
            Ends::Value | Ends::Error(Say::Perhaps) => true,
            Ends::Panic { charged } => charged,
            Ends::Error(Say::Declined | Say::Nothing) => false,
        };
        let mut say = None;
        let mut receipt = None;
        if charges {
            let child_key = attempt.child_key("gateway.charge");
            receipt = ledger.books(|books| books.charge(&child_key, self.amount));
            if receipt.is_none() {
                scribe.note(What::Conflict);
                say = Some(Say::Perhaps);
            }
        }
        self.work(1).await;
        match self.ends {
            Ends::Panic { .. } => panic!("a body that panics"),
            Ends::Value => {}
            Ends::Error(said) => say = Some(said),
        }
        let word = scribe.word(receipt);
        let result = match say {
            None => Ok(word),
            Some(say) => Err(Failure::Declined { word, say }),
        };
        scribe.note(What::Ended(stored(&result), say));
        result
    }

    async fn work(&self, part: usize) {
        if self.blocks {
            std::thread::sleep(self.takes[part]);
        } else {
            tokio::time::sleep(self.takes[part]).await;
        }
    }

    /// Tells the truth, from the gateway's books, or says that it cannot know.
    async fn ask(self, attempt: Attempt, ledger: Arc<Ledger>) -> Reconciled<Word, Failure> {
        let scribe = self.scribe(&attempt, &ledger);
        tokio::time::sleep(self.takes[0]).await;
        if !self.knows {
            scribe.note(What::Asked(None));
            return Reconciled::Unknown;
        }
        let child_key = attempt.child_key("gateway.charge");
        let receipt = ledger.books(|books| books.find(&child_key, self.amount));
        scribe.note(What::Asked(Some(receipt.is_some())));
        if receipt.is_none() {
            return Reconciled::RunAgain;
        }
        let word = scribe.word(receipt);
        scribe.note(What::Ended(stored(&Ok(word.clone())), None));
        Reconciled::Happened(word)
    }

    fn scribe(&self, attempt: &Attempt, ledger: &Arc<Ledger>) -> Scribe {
        let token = attempt.fencing_token();
        Scribe {
            call: self.clone(),
            token: token.expect("every call is protected").as_u64(),
            ledger: Arc::clone(ledger),
        }
    }
}

/// Writes down what one body does.
struct Scribe {
    call: Call,
    token: u64,
    ledger: Arc<Ledger>,
}

impl Scribe {
    fn note(&self, what: What) {
        let Call {
            key,
            number,
            amount,
            ..
        } = self.call;
        self.ledger.note(|at| Deed {
            at,
            key,
            token: self.token,
            call: number,
            amount,
            what,
        });
    }

    fn word(&self, receipt: Option<usize>) -> Word {
        Word {
            key: self.call.key,
            amount: self.call.amount,
            call: self.call.number,
            token: self.token,
            receipt,
        }
    }
}

struct Gone<'a>(&'a Scribe);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.note(What::Gone);
    }
}

impl Told {
    /// The answer of a body, as it is stored, and its word; nothing if there was no answer.
    pub(super) fn heard(&self) -> Option<(String, &Word)> {
        scripts::heard(&self.result)
    }

    pub(super) fn refusal(&self) -> Option<&Error> {
        match &self.result {
            Err(Failure::Refused(error)) => Some(error),
            _ => None,
        }
    }
}

//! Deliveries of messages, the deeds of their handlers, and the dispositions.

use std::time::Duration;

use idempotent_runtime::{
    Attempt, BoxError, Error, Idempotency, OnCrash,
    clock::Timer,
    consumer::{DeadLetterReason, Disposition},
    identity::RecordId,
    key::Key,
    testing::ManualClock,
};
use rand::{RngExt, rngs::StdRng};

use super::{MAX_DELIVERIES, MESSAGES, REDRIVES};
use crate::{
    scripts::{Say, verdict},
    sim::{LEASE, faults::Faults, stage::Notes},
    told,
};

pub(super) type Failure = crate::scripts::Failure<String>;

/// One delivery of a message, as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) number: usize,
    pub(super) message: u32,
    pub(super) redrive: u32,
    pub(super) payload: u32,
    pub(super) delivery: u32,
    pub(super) on_crash: OnCrash,
    comes: Duration,
    leaves: Option<Duration>,
    takes: Duration,
    ends: Ends,
}

/// How a handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Well,
    Error(Say),
    Panic,
}

/// The work of a handler.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) delivery: Delivery,
    pub(super) token: u64,
    pub(super) attempt: u32,
    /// How many writes there were when the delivery began, and when the handler did this.
    pub(super) from: usize,
    pub(super) at: usize,
    /// `None` where it began.
    pub(super) ended: Option<Ends>,
}

/// The disposition of a delivery.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) delivery: Delivery,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) came: Came,
}

#[derive(Clone, Debug)]
pub(super) enum Came {
    Ack { replayed: bool },
    Retry(Why),
    Dead(DeadLetterReason),
}

/// The error of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The handler's own.
    Own(Say),
    Ours(&'static str),
    None,
}

/// The record of a message, or of one of its redrives.
pub(super) fn id_of(message: u32, redrive: u32) -> RecordId {
    let id = Key::from_part(&message).expect("numbers are keys");
    let key = match redrive {
        0 => id,
        n => Key::from_part(&("redrive", id.framed(), n)).expect("a key"),
    };
    RecordId::new("inbox:billing", None, key.framed())
}

impl Delivery {
    pub(super) fn draw(rng: &mut StdRng, number: usize, on_crash: OnCrash) -> Self {
        let mut lease = |most: f64| LEASE.mul_f64(rng.random_range(0.0..most));
        let (comes, leaves, short, long) = (lease(8.0), lease(2.0), lease(0.2), lease(2.0));
        Self {
            number,
            message: rng.random_range(0..MESSAGES),
            redrive: match rng.random_range(0..3) {
                0 => rng.random_range(0..=REDRIVES),
                _ => 0,
            },
            payload: u32::from(rng.random_range(0..12) == 0),
            delivery: rng.random_range(1..=MAX_DELIVERIES),
            on_crash,
            comes,
            leaves: (rng.random_range(0..6) == 0).then_some(leaves),
            takes: match rng.random_range(0..5) {
                0 => long,
                1 => Duration::ZERO,
                _ => short,
            },
            ends: match rng.random_range(0..12) {
                0 => Ends::Panic,
                1 | 2 => Ends::Error(Say::Declined),
                3..6 => Ends::Error(Say::Nothing),
                6 => Ends::Error(Say::Perhaps),
                _ => Ends::Well,
            },
        }
    }

    /// The delivery that tells, when all is over, how a message ended.
    pub(super) fn last(message: u32, number: usize, on_crash: OnCrash) -> Self {
        Self {
            number,
            message,
            redrive: 0,
            payload: 0,
            delivery: 1,
            on_crash,
            comes: Duration::ZERO,
            leaves: None,
            takes: Duration::ZERO,
            ends: Ends::Well,
        }
    }

    /// Delivers it; `None` if its consumer left.
    pub(super) async fn make(
        self,
        idem: Idempotency,
        timer: ManualClock,
        conditions: Faults,
        deeds: Notes<Deed>,
    ) -> Option<Told> {
        timer.sleep(self.comes).await;
        let from = conditions.writes();
        let handled = self.run(&idem, &timer, &conditions, &deeds);
        let disposition = match self.leaves {
            None => handled.await,
            Some(leaves) => tokio::select! {
                disposition = handled => disposition,
                () = timer.sleep(leaves) => return None,
            },
        };
        Some(Told {
            from,
            to: conditions.writes(),
            came: came(disposition),
            delivery: self,
        })
    }

    async fn run(
        &self,
        idem: &Idempotency,
        timer: &ManualClock,
        conditions: &Faults,
        deeds: &Notes<Deed>,
    ) -> Disposition {
        let from = conditions.writes();
        let consumer = idem.consumer("billing").ttl("7d").broker_retention("3d");
        let consumer = consumer
            .on_crash(self.on_crash)
            .max_deliveries(MAX_DELIVERIES);
        let consumer = consumer.build().expect("a consumer");
        let message = consumer.message(&self.message).redrive(self.redrive);
        let message = message.payload(&self.payload).delivery(self.delivery);
        let message = message.classify_errors(verdict as fn(&Failure) -> _);
        let handler = async |attempt: Attempt| {
            let token = attempt.fencing_token().expect("every call is protected");
            let note = |ended| {
                deeds.note(Deed {
                    delivery: self.clone(),
                    token: token.as_u64(),
                    attempt: attempt.number(),
                    from,
                    at: conditions.writes(),
                    ended,
                });
            };
            note(None);
            timer.sleep(self.takes).await;
            note(Some(self.ends));
            match self.ends {
                Ends::Well => Ok(()),
                Ends::Panic => panic!("a body that panics"),
                Ends::Error(say) => {
                    let word = format!("by {}", self.number);
                    Err(Failure::Declined { word, say })
                }
            }
        };
        message.run(handler).await
    }
}

fn came(disposition: Disposition) -> Came {
    match disposition {
        Disposition::Ack { replayed } => Came::Ack { replayed },
        Disposition::Retry { after, error } => {
            assert!(after <= Duration::from_secs(30), "{after:?}");
            Came::Retry(error.map_or(Why::None, why))
        }
        Disposition::DeadLetter { reason, .. } => Came::Dead(reason),
        other => panic!("{other:?}"),
    }
}

fn why(error: BoxError) -> Why {
    match (error.downcast_ref(), error.downcast_ref::<Error>()) {
        (Some(Failure::Declined { say, .. }), _) => Why::Own(*say),
        (_, Some(ours)) => Why::Ours(told::of_refusal(ours)),
        _ => panic!("{error:?}"),
    }
}

//! A stream whose numbers come out of order and in copies, and a worker that delivers them.

use std::{future::pending, sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, OnCrash,
    sequence::{Decision, FromFirst, Sequence},
    testing::EffectLog,
};
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};

/// The last number of the stream, which begins with 1.
pub(crate) const LAST: u64 = 40;
/// The first attempt of each of these numbers stops in its body, until its worker is killed.
pub(crate) const KILLS: [u64; 4] = [7, 16, 17, 33];

/// One of several workers of a stream.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) idem: Idempotency,
    pub(crate) effects: Arc<EffectLog>,
    pub(crate) seed: u64,
    pub(crate) on_crash: OnCrash,
}

impl Worker {
    fn stream(&self) -> Sequence<FromFirst> {
        let stream = self.idem.sequence("accounts", "account-7").first(1);
        let stream = stream.lease("1500ms").on_crash(self.on_crash);
        match self.seed % 2 {
            0 => stream,
            _ => stream.wait_for_gap("100ms"),
        }
    }

    /// Every number twice, in an order of its own.
    fn plan(&self) -> Vec<u64> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut plan: Vec<u64> = (1..=LAST).flat_map(|number| [number; 2]).collect();
        for window in plan.chunks_mut(9) {
            window.shuffle(&mut rng);
        }
        plan.reverse();
        plan
    }

    /// Delivers all numbers, and tells which ones were applied by it, in order.
    pub(crate) async fn deliver(&self, held: &(impl Fn(u64) + Sync)) -> Vec<u64> {
        let (mut left, mut applied) = (self.plan(), Vec::new());
        while let Some(number) = left.pop() {
            match self.apply(number, held).await {
                Ok(Decision::Applied(value)) => {
                    assert_eq!(value, number);
                    applied.push(number);
                }
                Ok(Decision::Replayed(value)) => assert_eq!(value, number),
                Ok(Decision::Past { last }) => assert!(last >= number),
                Ok(Decision::Gap { expected, got }) => {
                    assert!(expected < got && got == number);
                    // The source is read again from there.
                    left.extend([number, expected]);
                }
                Err(Error::Uncertain { .. }) => {
                    left.push(number);
                    self.settle().await;
                }
                // An operator does not know the value.
                Err(Error::NotReplayable { .. }) => {}
                Err(error) if error.is_retryable() => {
                    left.push(number);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => panic!("{error}: {error:?}"),
            }
        }
        applied
    }

    async fn apply(
        &self,
        number: u64,
        held: &(impl Fn(u64) + Sync),
    ) -> Result<Decision<u64>, Error> {
        let call = self.stream().number(number).arguments(&number);
        call.run(async |attempt| {
            let written = self
                .effects
                .record(number.to_string(), attempt.number(), "");
            written.expect("the log is written");
            if attempt.number() == 1 && KILLS.contains(&number) {
                held(number);
                pending::<()>().await;
            }
            Ok::<_, Error>(number)
        })
        .await
    }

    /// Does what an operator would: looks whether the number happened, and says so.
    async fn settle(&self) {
        let stream = self.stream();
        let Ok(position) = stream.position().await else {
            return;
        };
        let Some(running) = position.running else {
            return;
        };
        let happened = self.effects.count(&running.number.to_string());
        let settle = stream.settle(running.number);
        let settled = match happened.expect("the log is read") {
            0 => settle.release().await,
            _ => settle.as_done().await,
        };
        match settled {
            Ok(()) | Err(Error::NotSettled { .. }) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Asserts that every number was applied, in order, and once but for those that were killed.
/// `applied` are the numbers that workers which lived were told of.
pub(crate) fn assert_in_order(effects: &EffectLog, applied: &[Vec<u64>], on_crash: OnCrash) {
    let effects = effects.entries().expect("the log is read");
    let begun: Vec<u64> = effects
        .iter()
        .map(|effect| effect.key.parse().expect("a number"))
        .collect();
    assert!(begun.is_sorted(), "{begun:?}");
    let expected: Vec<u64> = (1..=LAST)
        .flat_map(|number| {
            let twice = on_crash == OnCrash::Rerun && KILLS.contains(&number);
            vec![number; 1 + usize::from(twice)]
        })
        .collect();
    assert_eq!(begun, expected);
    let mut told: Vec<u64> = applied.concat();
    for its in applied {
        assert!(its.is_sorted(), "{its:?}");
    }
    told.sort_unstable();
    let count = told.len();
    told.dedup();
    assert_eq!(told.len(), count, "no number is applied twice");
}

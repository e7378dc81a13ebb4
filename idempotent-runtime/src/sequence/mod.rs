//! Sequences: of a stream of numbered calls, only the next number is applied.
//!
//! A stream has one record for all of its numbers. A call brings its number, and the protocol
//! answers with a [`Decision`]: applied, a replay of the last one, past, or a gap. A number that
//! fails stops its stream until it succeeds, is settled, or is skipped. No number is applied twice,
//! and none before the one in front of it.

mod decision;
mod failing;
mod numbered;
mod operators;
mod settings;
mod settle;
#[cfg(feature = "_sql")]
mod transaction;

#[cfg(feature = "_sql")]
pub use self::transaction::StagedNumber;
pub use self::{
    decision::Decision,
    numbered::NumberedCall,
    operators::{Position, RunningNumber, Standing},
    settings::{AcceptGaps, FromFirst, GapRule, NoRule, Sequence},
    settle::{SettleNumber, SkipNumber},
};
pub use crate::protocol::sequence::FailingNumber;
use crate::{
    handle::Idempotency,
    key::{Key, KeyPart},
};

impl Idempotency {
    /// Begins with a stream of numbered calls: the events of an aggregate, or the messages of an
    /// ordered partition. `name` is that of the operation, and `key` that of the stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use idempotent_runtime::{BoxError, Error, Idempotency, sequence::Decision};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// let idem = Idempotency::memory();
    /// let account = idem.sequence("accounts", "account-7").first(1);
    /// let apply = |number: u64, amount: i64| {
    ///     let call = account.clone().number(number).arguments(&amount);
    ///     call.run(async move |_attempt| Ok::<i64, Error>(amount))
    /// };
    ///
    /// assert_eq!(apply(1, 100).await?, Decision::Applied(100));
    /// assert_eq!(apply(1, 100).await?, Decision::Replayed(100));
    /// assert_eq!(apply(3, -20).await?, Decision::Gap { expected: 2, got: 3 });
    /// assert_eq!(apply(2, -30).await?, Decision::Applied(-30));
    /// assert_eq!(apply(1, 100).await?, Decision::Past { last: 2 });
    /// # Ok(()) }
    /// ```
    pub fn sequence<K: KeyPart + ?Sized>(&self, name: &str, key: &K) -> Sequence {
        Sequence::new(self, name, Key::from_part(key))
    }
}

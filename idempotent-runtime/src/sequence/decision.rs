//! Decisions: they say what became of a number.

use std::{sync::Arc, time::Duration};

use crate::{
    attempt::{WithoutId, refuse},
    consumer::{Disposition, failure::Failure},
    error::Error,
    observe::CallReport,
    outcome::{FromRefusal, OutOfOrder},
    store::{StoreError, StoreErrorKind},
};

/// Says what became of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a number may be missing"]
pub enum Decision<T> {
    /// It was the next one, and its body ran. The outcome is recorded, or committed.
    Applied(T),
    /// It is the last one that was applied: this is the outcome of then.
    Replayed(T),
    /// It is below the last one or the first one, or an operator used it up. Nothing is compared.
    /// Under `accept_gaps` it may never have run.
    Past {
        /// The last number.
        last: u64,
    },
    /// Numbers before it are missing, and nothing ran. Read the source again from `expected`.
    Gap {
        /// The number that comes next.
        expected: u64,
        /// The number of this call.
        got: u64,
    },
}

/// After how long a message behind a gap comes again.
const BEHIND_A_GAP: Duration = Duration::from_secs(1);

impl<T> Decision<T> {
    /// Tells what to do with the message that brought the number: a gap is a retry after a second,
    /// and all else is acknowledged.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Applied(_) => Disposition::Ack { replayed: false },
            Self::Replayed(_) | Self::Past { .. } => Disposition::Ack { replayed: true },
            Self::Gap { .. } => Disposition::Retry {
                after: BEHIND_A_GAP,
                error: None,
            },
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Applied(_) => "applied",
            Self::Replayed(_) => "replayed",
            Self::Past { .. } => "past",
            Self::Gap { .. } => "gap",
        }
    }

    /// The value of a number that was applied, now or before.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Applied(value) | Self::Replayed(value) => Some(value),
            Self::Past { .. } | Self::Gap { .. } => None,
        }
    }
}

/// Tells what the end of a call means for its number. An outcome that is not recorded yet is not
/// said to be applied.
pub(super) fn decide<T, E: FromRefusal>(
    operation: &Arc<str>,
    result: Result<T, Failure<E>>,
    report: &CallReport,
) -> Result<Decision<T>, E> {
    match result {
        Ok(value) => match report {
            CallReport::Executed {
                recorded: false, ..
            } => Err(refuse(WithoutId::Number, not_recorded())),
            report if report.is_of_another() => Ok(Decision::Replayed(value)),
            _ => Ok(Decision::Applied(value)),
        },
        Err(Failure::OutOfOrder(OutOfOrder::Past { last })) => Ok(Decision::Past { last }),
        Err(Failure::OutOfOrder(OutOfOrder::Gap { expected, got })) => {
            Ok(Decision::Gap { expected, got })
        }
        Err(Failure::Refused(error)) => Err(E::from_refusal(error)),
        Err(Failure::Handler(error)) => Err(error),
        // Only consumers have these.
        Err(Failure::Unread(_) | Failure::TooOften) => {
            let operation = Arc::clone(operation);
            Err(refuse(
                WithoutId::Number,
                Error::NotReplayable { operation },
            ))
        }
    }
}

fn not_recorded() -> Error {
    let error = StoreError::new(StoreErrorKind::Unavailable, "recording a number");
    let source = "the body has run, and its outcome is still being written: the next call of the number gets it";
    error.with_source(source).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gap_has_its_message_come_again() {
        let gap = Decision::Gap {
            expected: 2,
            got: 3,
        };
        for (decision, replayed) in [
            (Decision::Applied(()), Some(false)),
            (Decision::Replayed(()), Some(true)),
            (Decision::Past { last: 3 }, Some(true)),
            (gap, None),
        ] {
            match decision.disposition() {
                Disposition::Ack { replayed: its } => assert_eq!(Some(its), replayed),
                Disposition::Retry { after, error: None } => {
                    assert_eq!((after, replayed), (BEHIND_A_GAP, None));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

//! The functions that a program protects. A test compares them with a list, and a deploy compares
//! them with those that the last deploy kept.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use crate::{
    error::Error,
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    handle::{Idempotency, identity, put},
    key::Key,
    operation::Operation,
    policy::OnCrash,
    record::{
        AttemptId, Draft, FencingToken, Moment, RawOutcome, Record, State, Subject, TokenRule,
        Version, limits::LONGEST,
    },
    request::OPERATIONS,
    store::{StoreError, StoreErrorKind, Swap},
};

/// A difference between the functions of a program and those that were kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationChange {
    /// The name was not there. Where an old name vanished, the function may have been renamed: its
    /// `also_accept` has the records of the old name answer.
    Added {
        /// The name of the operation.
        name: String,
    },
    /// The name is not there any more: the records of its calls answer no call.
    Vanished {
        /// The name of the operation.
        name: String,
    },
    /// A setting differs. Another `key` or `scope` means that the records from before the deploy
    /// answer no call.
    Changed {
        /// The name of the operation.
        name: String,
        /// The name of the setting, as the attribute has it.
        setting: String,
        /// Its value before; `None` where it was not said.
        before: Option<String>,
        /// Its value now; `None` where it is not said.
        after: Option<String>,
    },
}

impl fmt::Display for OperationChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { name } => write!(f, "{name} is new"),
            Self::Vanished { name } => write!(f, "{name} is not there any more"),
            Self::Changed {
                name,
                setting,
                before,
                after,
            } => {
                let unsaid = "not said".to_owned();
                let (before, after) = (
                    before.as_ref().unwrap_or(&unsaid),
                    after.as_ref().unwrap_or(&unsaid),
                );
                write!(f, "{name}: {setting} was {before}, and is {after}")
            }
        }
    }
}

/// Returns the properties of each function by its name.
type Said = BTreeMap<String, BTreeMap<String, String>>;

const DOING: &str = "keeping the operations of a program";

impl Idempotency {
    /// Compares the [operations](Self::operations) of this program with those that were kept under
    /// its name, and keeps them: at the start of each deploy, it tells what the deploy changes.
    /// Returns nothing the first time.
    ///
    /// Without the feature `inventory` only functions are known that were called. With it, two
    /// programs that keep their operations under one name would tell of each other: take a name for
    /// each. Where builds of two versions run at once, each start tells of the other one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] where no function is known, [`Error::InvalidKey`] where the name
    /// cannot be a key, [`Error::Store`] where the store fails
    /// or another program has written something else there.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, they are kept or are not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency};
    /// # async fn example(idem: Idempotency) -> Result<(), Error> {
    /// for change in idem.keep_operations("billing-service").await? {
    ///     tracing::warn!(%change, "this deploy changes what is protected");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn keep_operations(&self, program: &str) -> Result<Vec<OperationChange>, Error> {
        let operation: Arc<str> = OPERATIONS.into();
        let (id, _, key) = identity(&operation, None, Key::from_part(program))?;
        let now = said(&self.operations());
        if now.is_empty() {
            return Err(Error::InvalidPolicy(
                "no annotated function is known yet: keep the operations with the feature `inventory`, or after their first calls",
            ));
        }
        let bytes = serde_json::to_vec(&now).map_err(damaged)?;
        let none = Fingerprint::from_bytes([0; 32]);
        let subject = Arc::new(Subject {
            operation,
            scope: Vec::new(),
            key: self.shown(Some(key)),
            fingerprint: Fingerprinted::stored(none, ArgumentDigests::default()),
        });
        let mut record = self.store().load(&id).await?.record;
        loop {
            let before = record.as_deref().map(read).transpose()?.flatten();
            let changes = before
                .map(|before| difference(&before, &now))
                .unwrap_or_default();
            let draft = self.kept(&subject, bytes.clone());
            match put(self, &id, record.map(|it| it.version), &draft).await? {
                Swap::Applied(_) => return Ok(changes),
                Swap::Refused(stands) => record = stands.record,
            }
        }
    }

    fn kept(&self, subject: &Arc<Subject>, bytes: Vec<u8>) -> Draft {
        Draft {
            version: Version::random(),
            subject: Some(Arc::clone(subject)),
            state: State::Done,
            token: TokenRule::Above(FencingToken::from_u64(0)),
            attempt: 1,
            attempt_id: AttemptId::NOBODY,
            holder: self.holder(),
            on_crash: OnCrash::Rerun,
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(LONGEST),
            keep: Duration::ZERO,
            outcome: Some(RawOutcome::value(bytes)),
            note: None,
        }
    }
}

fn said(operations: &[Operation]) -> Said {
    let said = |operation: &Operation| {
        let settings = operation
            .said()
            .map(|(name, value)| (name.to_owned(), value));
        (operation.name.to_owned(), settings.collect())
    };
    operations.iter().map(said).collect()
}

/// `None` where an operator has invalidated it.
fn read(record: &Record) -> Result<Option<Said>, Error> {
    let outcome = record.outcome.as_ref();
    let said = outcome.map(|outcome| serde_json::from_slice(&outcome.bytes));
    Ok(said.transpose().map_err(damaged)?)
}

fn damaged(error: serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(error)
}

fn difference(before: &Said, now: &Said) -> Vec<OperationChange> {
    let names = before
        .keys()
        .chain(now.keys().filter(|it| !before.contains_key(*it)));
    let mut changes = Vec::new();
    for name in names {
        match (before.get(name), now.get(name)) {
            (None, _) => changes.push(OperationChange::Added { name: name.clone() }),
            (_, None) => changes.push(OperationChange::Vanished { name: name.clone() }),
            (Some(before), Some(now)) => {
                let new = now.keys().filter(|it| !before.contains_key(*it));
                for setting in before.keys().chain(new) {
                    let (before, after) = (before.get(setting), now.get(setting));
                    if before != after {
                        changes.push(OperationChange::Changed {
                            name: name.clone(),
                            setting: setting.clone(),
                            before: before.cloned(),
                            after: after.cloned(),
                        });
                    }
                }
            }
        }
    }
    changes
}

/// Compares the annotated functions of the program with a list, in a test of the binary's crate,
/// with the feature `inventory`. Each line is an [`Operation`] as it displays itself, in any order.
/// It panics with the lines that are missing and those that are too many.
///
/// Only crates that the program links are known. A crate that no line of the program names is not
/// linked. Write the test in the crate of the binary, and name each library there. Calls that
/// have no attribute, such as `idem.call("name")`, are not known to the linker. Wasm is not
/// promised.
///
/// # Examples
///
/// ```
/// # use idempotent_runtime::{Error, idempotent};
/// #[idempotent(key = order, ttl = "24h")]
/// async fn charge(order: u64) -> Result<u64, Error> {
///     Ok(order)
/// }
///
/// # mod tests {
/// # fn known() {
/// // #[test]
/// idempotent_runtime::assert_operations![
///     "my-shop::my_shop::charge: key = order, ttl = 86400s",
/// ];
/// # } }
/// ```
#[macro_export]
macro_rules! assert_operations {
    ($($line:expr),* $(,)?) => {
        $crate::operate::__assert_operations(&[$(&$line),*])
    };
}

#[doc(hidden)]
#[track_caller]
pub fn __assert_operations(expected: &[&dyn fmt::Display]) {
    let known = crate::operation::linked().map(|site| Operation::of(site, false).to_string());
    let differences = lines_apart(expected.iter().map(ToString::to_string), known);
    assert!(
        differences.is_empty(),
        "the annotated functions of this program are not those of the list (`-` is in the list alone, `+` in the program alone):\n{}",
        differences.join("\n")
    );
}

/// Returns the lines that only one side has, each as often as that side has it more.
fn lines_apart(
    expected: impl Iterator<Item = String>,
    known: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut more: BTreeMap<String, i64> = BTreeMap::new();
    expected.for_each(|line| *more.entry(line).or_default() -= 1);
    known.for_each(|line| *more.entry(line).or_default() += 1);
    let apart = more.into_iter().flat_map(|(line, more)| {
        let sign = if more < 0 { '-' } else { '+' };
        std::iter::repeat_n(format!("{sign} {line}"), more.unsigned_abs() as usize)
    });
    apart.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[&str]) -> impl Iterator<Item = String> {
        let all: Vec<_> = all.iter().map(|line| (*line).to_owned()).collect();
        all.into_iter()
    }

    #[test]
    fn lines_that_one_side_has_are_told_apart() {
        let apart = lines_apart(lines(&["a", "b", "c"]), lines(&["b", "d", "c", "c"]));
        assert_eq!(apart, ["- a", "+ c", "+ d"]);
        let same = lines_apart(lines(&["b", "a"]), lines(&["a", "b"]));
        assert!(same.is_empty(), "{same:?}");
    }
}

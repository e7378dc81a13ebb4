//! Golden files: every text that a store sends, byte by byte.
//!
//! A file has a line `-- name` before each text, and the text as it is sent. The environment
//! variable `UPDATE_EXPECT=1` has a test write its file anew.

#[cfg(feature = "_sql")]
use std::sync::{Mutex, PoisonError};

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::drafts::{claim, completion, heartbeat, version};
#[cfg(feature = "_sql")]
pub(crate) use self::of_sql::{here_is, id, of_schema, prefix};

/// Notes a text that is sent, with its values written out.
#[cfg(feature = "_sql")]
pub(crate) fn note(text: &str) {
    let mut sent = SENT.lock().unwrap_or_else(PoisonError::into_inner);
    sent.push(text.to_owned());
}

/// The texts that were sent for tables of this prefix.
#[cfg(feature = "_sql")]
pub(crate) fn sent(prefix: &str) -> Vec<String> {
    let sent = SENT.lock().unwrap_or_else(PoisonError::into_inner);
    let ours = sent.iter().filter(|text| text.contains(prefix));
    ours.cloned().collect()
}

#[cfg(feature = "_sql")]
static SENT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The names and texts of one golden file.
#[derive(Debug, Default)]
pub(crate) struct Golden(String);

impl Golden {
    /// Adds a text. No name stands twice.
    pub(crate) fn add(&mut self, name: &str, text: &str) {
        let head = format!("-- {name}\n");
        let begins = self.0.starts_with(&head) || self.0.contains(&format!("\n{head}"));
        assert!(!begins, "`{name}` stands twice");
        self.0 += &format!("{head}{text}\n");
    }

    /// Compares it with the file.
    #[track_caller]
    pub(crate) fn is(self, file: expect_test::ExpectFile) {
        file.assert_eq(&self.0);
    }
}

#[cfg(feature = "_sql")]
mod of_sql {
    use super::Golden;
    use crate::{
        identity::RecordId,
        store::sql::{
            TablePrefix, chosen,
            migrate::{Schema, ddl},
            version::{self, Found, here, missing},
        },
    };

    /// The id of a store, as its first step draws it.
    const STORE: &str = "0123456789abcdef0123456789abcdef";

    /// The prefix of all golden files.
    pub(crate) fn prefix() -> TablePrefix {
        chosen("golden_", "beginning a test").expect("a prefix")
    }

    /// Gives a row in the database of the store.
    pub(crate) fn here_is() -> String {
        here(&prefix(), STORE)
    }

    pub(crate) fn id(number: u8) -> RecordId {
        RecordId::from_bytes([number; 32])
    }

    /// Adds what all migrators have: the steps, their notes and the looks.
    pub(crate) fn of_schema<DB: Schema>(golden: &mut Golden, between: &str) {
        let prefix = prefix();
        golden.add("the look for the version", &version::look(&prefix));
        golden.add("the look for the store", &version::id(&prefix));
        golden.add("the look for this store", &here_is());
        golden.add("the table of the versions", &DB::schema_table(&prefix));
        for (found, step) in missing(&DB::steps(&prefix), Found::default()) {
            let Found {
                version,
                usable_from,
            } = found;
            let name = format!("step {version}, usable from {usable_from}");
            let (text, applied) = (&step.text, DB::applied(&prefix, found));
            golden.add(&name, &format!("{text}{between}{applied}"));
        }
        golden.add("ddl", &ddl::<DB>(&prefix));
    }
}

/// Drafts in which nothing is drawn.
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod drafts {
    use std::time::Duration;

    use crate::record::{AttemptId, Draft, Moment, Version, draft::tests};

    pub(crate) fn version(number: u8) -> Version {
        Version::from_bytes([number; 16])
    }

    pub(crate) fn claim(number: u8) -> Draft {
        Draft {
            version: version(number),
            attempt_id: AttemptId::from_bytes([number; 16]),
            lease: Moment::In(Duration::from_secs(30)),
            ..tests::claim(&[number])
        }
    }

    /// The completion of that claim.
    pub(crate) fn completion(number: u8) -> Draft {
        Draft {
            version: version(number + 100),
            ..tests::completion(&claim(number), vec![number])
        }
    }

    /// The heartbeat of that claim.
    pub(crate) fn heartbeat(number: u8) -> Draft {
        Draft {
            version: version(number + 200),
            subject: None,
            ..claim(number)
        }
    }
}

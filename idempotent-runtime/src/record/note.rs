//! The word about one version of a record or a step.

use std::sync::Arc;

use crate::error::Error;

/// The longest name of a person, in bytes.
const LONGEST_NAME: usize = 256;

/// The longest reason, in bytes.
const LONGEST_REASON: usize = 4 * 1024;

/// A word about one version of a record or of a step, for people: who wrote that version, and why.
///
/// It belongs to the version that it was written with. So the next write takes it away, whichever
/// build makes that, or writes it again: a stream says how often a number has failed for as long as
/// that is tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Note {
    /// The person who acted; `None` for the note of a program.
    pub by: Option<Arc<str>>,
    /// The reason; empty where none is known.
    pub text: Arc<str>,
}

impl Note {
    /// The note as a draft takes it; `None` if it has no word.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if the person or the reason is too long.
    pub(crate) fn checked(&self) -> Result<Option<Arc<Self>>, Error> {
        match &self.by {
            Some(by) if by.len() > LONGEST_NAME => Err(Error::InvalidPolicy(
                "the person in `by` has more than 256 bytes: a name or an address is enough",
            )),
            _ if self.text.len() > LONGEST_REASON => Err(Error::InvalidPolicy(
                "the reason in `because` has more than 4,096 bytes: give a sentence, and a link to the rest",
            )),
            None if self.text.is_empty() => Ok(None),
            _ => Ok(Some(Arc::new(self.clone()))),
        }
    }
}

/// Writes the setters of an act of an operator's. `note` is where its builder keeps the note.
macro_rules! signed {
    (|$it:ident| $note:expr) => {
        crate::value::setters! {
            /// Names the person who acts, in at most 256 bytes. The store keeps the name. A longer
            /// one is refused with `Error::InvalidPolicy`, before anything is written.
            by($it, person: impl Into<std::sync::Arc<str>>) {
                let person = person.into();
                $note.by = (!person.is_empty()).then_some(person);
            }
            /// Sets the reason, of at most 4,096 bytes. The store keeps it. A longer one is refused
            /// likewise.
            because($it, reason: impl Into<std::sync::Arc<str>>) {
                $note.text = reason.into();
            }
        }
    };
}
pub(crate) use signed;

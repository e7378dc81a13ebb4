//! The names of steps.

use crate::{
    key::{Key, KeyError, KeyPart},
    record,
};

/// The part of a call that has no usable name, in an error.
pub(crate) const STEP_NAME: &str = "step name";

/// The longest name of a step, in bytes of text.
pub(crate) const LONGEST: usize = 1024;

/// The name of a step: literal text, or a tuple that begins with it, such as `("item", line.id)`.
/// Every other part is a [`KeyPart`]. Together they have 1 to 1,024 bytes.
///
/// Errors and events show the literal text alone, so that no customer's data stands in them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the name of a step",
    note = "a name is literal text, or a tuple that begins with it, such as `(\"item\", line.id)`"
)]
pub trait StepLabel: KeyPart {
    /// The literal text.
    #[doc(hidden)]
    fn label(&self) -> &'static str;
}

impl StepLabel for &'static str {
    fn label(&self) -> &'static str {
        self
    }
}

macro_rules! labels {
    ($(($($part:ident),+))+) => { $(
        impl<$($part: KeyPart),+> StepLabel for (&'static str, $($part),+) {
            fn label(&self) -> &'static str {
                self.0
            }
        }
    )+ };
}

labels! { (A) (A, B) (A, B, C) (A, B, C, D) }

/// Hashes a name, if it can be one.
pub(crate) fn named(name: &impl StepLabel) -> Result<record::StepName, KeyError> {
    let key = Key::from_part(name)?;
    let hash = record::StepName::of(key.framed());
    match key.into_readable().len() {
        bytes if bytes > LONGEST => Err(KeyError::TooLong {
            bytes,
            limit: LONGEST,
        }),
        _ => Ok(hash),
    }
}

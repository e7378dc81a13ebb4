//! Values, their fingerprints, and what may and may not tell them apart.

mod digests;
mod encoding;
mod entries;
mod golden;
mod properties;
mod value;

use serde::Serialize;

use super::{Arguments, Fingerprint, Fingerprinted};

fn fingerprint<T: Serialize + ?Sized>(value: &T) -> Fingerprint {
    finished(|arguments| arguments.argument("value", value)).fingerprint()
}

/// Finishes the arguments that are added.
fn finished(add: impl FnOnce(&mut Arguments)) -> Fingerprinted {
    let mut arguments = Arguments::new();
    add(&mut arguments);
    arguments.finish(None).expect("they can be serialized")
}

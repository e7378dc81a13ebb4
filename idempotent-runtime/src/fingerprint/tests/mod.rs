//! Values, their fingerprints, and what may and may not tell them apart.

mod digests;
mod encoding;
mod golden;
mod properties;
mod value;

use serde::Serialize;

use super::{Arguments, Fingerprint};

fn fingerprint<T: Serialize + ?Sized>(value: &T) -> Fingerprint {
    let mut arguments = Arguments::new();
    arguments.argument("value", value);
    arguments
        .finish(None)
        .expect("the value can be serialized")
        .fingerprint()
}

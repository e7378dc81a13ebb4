//! The part of a trail that is read.

use std::{fmt, sync::Arc};

use idempotent_runtime::Time;

use crate::anchor::Anchor;

/// The part of a trail that is verified, and the anchors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    pub(crate) sealed_from: Option<Time>,
    pub(crate) sealed_to: Option<Time>,
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) tell: Tell,
}

/// Takes the number of batches that were read so far.
#[derive(Clone, Default)]
pub(crate) struct Tell(pub(crate) Option<Arc<dyn Fn(u64) + Send + Sync>>);

impl Tell {
    pub(crate) fn is(&self, batches: u64) {
        if let Some(tell) = &self.0 {
            tell(batches);
        }
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

impl Asked {
    pub(crate) fn is_whole(&self) -> bool {
        self.from.is_none()
            && self.to.is_none()
            && self.sealed_from.is_none()
            && self.sealed_to.is_none()
    }

    /// The condition for the seals of this part.
    ///
    /// A clock may have gone back: the part by time is one of batches that follow each other.
    pub(crate) fn condition(&self, seals: &str) -> String {
        let mut all = vec!["batch > 0".to_owned()];
        all.extend(self.from.map(|batch| format!("batch >= {batch}")));
        all.extend(self.to.map(|batch| format!("batch <= {batch}")));
        let time = |time: Time| time.as_micros();
        all.extend(self.sealed_from.map(|it| {
            format!(
                "batch >= (SELECT min(batch) FROM {seals} WHERE sealed >= {})",
                time(it)
            )
        }));
        all.extend(self.sealed_to.map(|it| {
            format!(
                "batch <= (SELECT max(batch) FROM {seals} WHERE sealed <= {})",
                time(it)
            )
        }));
        all.join(" AND ")
    }
}

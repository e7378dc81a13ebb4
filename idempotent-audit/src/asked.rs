//! The part of a trail that is read.

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
}

impl Asked {
    pub(crate) fn is_whole(&self) -> bool {
        self.from.is_none()
            && self.to.is_none()
            && self.sealed_from.is_none()
            && self.sealed_to.is_none()
    }

    /// The condition for the seals of this part.
    pub(crate) fn condition(&self) -> String {
        let mut all = vec!["batch > 0".to_owned()];
        all.extend(self.from.map(|batch| format!("batch >= {batch}")));
        all.extend(self.to.map(|batch| format!("batch <= {batch}")));
        let time = |time: Time| time.as_micros();
        all.extend(self.sealed_from.map(|it| format!("sealed >= {}", time(it))));
        all.extend(self.sealed_to.map(|it| format!("sealed <= {}", time(it))));
        all.join(" AND ")
    }
}

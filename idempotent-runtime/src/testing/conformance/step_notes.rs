//! Notes of steps.

use std::sync::Arc;

use super::{
    StoreUnderTest,
    sample::{applied, claim, id},
    steps::{begun, client, lists_what_it_loads, load, step, write, written},
};
use crate::{
    record::{Note, Step},
    store::StepWrite,
};

/// A note comes back with the version of the step that it was written with, and is gone with the
/// next one.
pub(super) async fn a_note_of_a_step_belongs_to_one_version(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let held = claim();
    applied(&*store, id(1), None, &held).await;
    let mut seen = None;
    let by = Some("Zoë".into());
    let notes = [
        (by.clone(), "the däshboard shows it"),
        (None, ""),
        (by, ""),
        (None, "said by no person"),
        (None, ""),
    ];
    for (by, text) in notes {
        let note = (by.is_some() || !text.is_empty()).then(|| {
            let text = text.into();
            Arc::new(Note { by, text })
        });
        let step = Step {
            note,
            ..step(1, held.attempt_id, "v")
        };
        written(&*store, id(1), seen, &step).await;
        assert_eq!(load(&*store, id(1), 1).await.as_deref(), Some(&step));
        lists_what_it_loads(&*store, id(1)).await;
        match write(&*store, id(1), None, &begun(1, held.attempt_id)).await {
            StepWrite::Stands(stands) => assert_eq!(*stands, step),
            answer => panic!("{answer:?}"),
        }
        seen = Some(step.version);
    }
}

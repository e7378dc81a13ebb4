//! Listing records for operators.

use super::{
    StoreUnderTest,
    sample::{applied, claim, id, scanned, standing},
    steps::{client, name, step, steps as steps_of, written},
};
use crate::{
    identity::RecordId,
    record::{Step, StepName},
};

/// K07: a scan lists every record once, as it stands, in the order of the ids.
pub(super) async fn scan_lists_in_the_order_of_ids(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    assert!(scanned(&*store, None, 10).await.is_empty());
    let lowest = RecordId::from_bytes([0; 32]);
    let highest = RecordId::from_bytes([0xff; 32]);
    let mut ids = vec![
        id(0x8000_0000),
        id(7),
        highest,
        id(0x7fff_ffff),
        lowest,
        id(200),
        id(3),
    ];
    for id in &ids {
        applied(&*store, *id, None, &claim()).await;
    }
    ids.sort_unstable_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
    let listed = scanned(&*store, None, 100).await;
    assert_eq!(listed.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    for (id, record) in listed {
        assert_eq!(record, standing(&*store, id).await);
    }
    let after = scanned(&*store, Some(lowest), 100).await;
    assert_eq!(
        after.len(),
        ids.len() - 1,
        "a scan begins after the id it is given"
    );
    assert!(scanned(&*store, Some(highest), 100).await.is_empty());
}

/// K07: a scan in pages lists what one long scan lists.
pub(super) async fn scan_goes_in_pages(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    for number in (0..23).rev() {
        applied(&*store, id(number), None, &claim()).await;
    }
    let mut pages = Vec::new();
    let mut after = None;
    for _ in 0..10 {
        let page = scanned(&*store, after, 5).await;
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        pages.push(page.len());
    }
    assert_eq!(pages, [5, 5, 5, 5, 3]);
    assert!(scanned(&*store, None, 0).await.is_empty());
    assert_eq!(scanned(&*store, None, u32::MAX).await.len(), 23);
}

/// All steps of a life are found at once, in the order of their names, and so are some of them.
pub(super) async fn the_steps_of_a_life_are_listed(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let (held, other) = (claim(), claim());
    applied(&*store, id(1), None, &held).await;
    applied(&*store, id(2), None, &other).await;
    written(
        &*store,
        id(2),
        None,
        &step(2, other.attempt_id, "another one's"),
    )
    .await;
    let mut steps = Vec::new();
    for number in [7, 2, 5, 3] {
        let step = step(number, held.attempt_id, "v");
        written(&*store, id(1), None, &step).await;
        steps.push(step);
    }
    steps.sort_by_key(|step| step.name);
    for (from, names) in [
        (0, StepName::ALL),
        (1, name(3)..=name(7)),
        (3, name(6)..=name(9)),
    ] {
        let listed = steps_of(&*store).load_steps(&id(1), &names).await;
        let listed: Vec<_> = listed.expect("a look at steps is answered");
        let listed: Vec<_> = listed.iter().map(|step| Step::clone(step)).collect();
        assert_eq!(listed, steps[from..], "{names:?}");
    }
    let none = steps_of(&*store).load_steps(&id(3), &StepName::ALL).await;
    assert!(none.expect("a look at steps is answered").is_empty());
}

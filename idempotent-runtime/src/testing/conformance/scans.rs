//! Listing records for operators.

use super::{
    Subject,
    sample::{applied, claim, id, standing},
};
use crate::identity::RecordId;

/// K07: a scan lists every record once, as it stands, in the order of the ids.
pub(super) async fn scan_lists_in_the_order_of_ids(subject: &dyn Subject) {
    let store = subject.store().await;
    assert!(
        store
            .scan(None, 10)
            .await
            .expect("a scan is answered")
            .is_empty()
    );
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
    let listed = store.scan(None, 100).await.expect("a scan is answered");
    assert_eq!(listed.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    for (id, record) in listed {
        assert_eq!(record, standing(&*store, id).await);
    }
    let after = store
        .scan(Some(lowest), 100)
        .await
        .expect("a scan is answered");
    assert_eq!(
        after.len(),
        ids.len() - 1,
        "a scan begins after the id it is given"
    );
    assert!(
        store
            .scan(Some(highest), 100)
            .await
            .expect("a scan is answered")
            .is_empty()
    );
}

/// K07: a scan in pages lists what one long scan lists.
pub(super) async fn scan_goes_in_pages(subject: &dyn Subject) {
    let store = subject.store().await;
    for number in (0..23).rev() {
        applied(&*store, id(number), None, &claim()).await;
    }
    let mut pages = Vec::new();
    let mut after = None;
    for _ in 0..10 {
        let page = store.scan(after, 5).await.expect("a scan is answered");
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        pages.push(page.len());
    }
    assert_eq!(pages, [5, 5, 5, 5, 3]);
    assert!(
        store
            .scan(None, 0)
            .await
            .expect("a scan is answered")
            .is_empty()
    );
    assert_eq!(
        store
            .scan(None, u32::MAX)
            .await
            .expect("a scan is answered")
            .len(),
        23
    );
}

//! Listing records for operators.

use std::{sync::Arc, time::Duration};

use super::{
    StoreUnderTest,
    sample::{
        STATES, applied, claim, completion, id, look, next, replaced, scanned, standing,
        subject as about, takeover,
    },
    steps::{client, name, step, steps as steps_of, written},
};
use crate::{
    identity::RecordId,
    record::{Draft, RawOutcome, Step, StepName, Subject},
    store::{ListOrder, ListedRecord, Store},
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

/// A page of a list, in every detail that a look shows, too; `None` where the store has no such
/// list.
async fn listed(
    store: &dyn Store,
    order: ListOrder<'_>,
    after: Option<&ListedRecord>,
    limit: u32,
) -> Option<Vec<ListedRecord>> {
    let lists = store.lists()?;
    let after = after.map(ListedRecord::position);
    let page = lists.list(order, after.as_ref(), limit).await;
    let page = page.expect("a list is answered")?;
    assert_eq!(page.damaged, 0);
    assert_eq!(page.is_last, page.records.len() < limit as usize);
    for record in &page.records {
        let stands = look(store, record.id).await;
        assert!(stands.now >= page.now, "the time is the store's");
        let stands = stands.record.expect("it stands");
        assert_eq!(*record, ListedRecord::of(record.id, &stands));
    }
    Some(page.records)
}

/// Lists by pages of three, and returns the ids.
async fn all(store: &dyn Store, order: ListOrder<'_>) -> Option<Vec<RecordId>> {
    let mut all: Vec<ListedRecord> = Vec::new();
    loop {
        let page = listed(store, order, all.last(), 3).await?;
        if page.is_empty() {
            return Some(all.iter().map(|it| it.id).collect());
        }
        all.extend(page);
    }
}

/// Records in every state, and some that have left theirs, are listed while they need somebody. All
/// are in the list of everything.
pub(super) async fn lists_find_what_needs_somebody(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let (mut needed, mut everything) = (Vec::new(), Vec::new());
    for (number, state) in (0..).zip(STATES.into_iter().cycle().take(4 * STATES.len())) {
        let id = id(number);
        everything.push(id);
        let begun = claim();
        let held = applied(&*store, id, None, &begun).await;
        let ends = Draft {
            outcome: Some(RawOutcome::error("declined")),
            ..next(&begun, state)
        };
        let ended = replaced(&*store, id, &held, &ends).await;
        match number % 4 {
            0 if state.needs_attention() => {
                replaced(&*store, id, &ended, &completion(&begun, "settled")).await;
            }
            1 if state.needs_attention() => {
                replaced(&*store, id, &ended, &takeover(&ended)).await;
            }
            _ if state.needs_attention() => needed.push(id),
            _ => {}
        }
    }
    if let Some(listed) = all(&*store, ListOrder::Attention).await {
        assert_eq!(listed, needed);
    }
    if let Some(listed) = all(&*store, ListOrder::Everything).await {
        assert_eq!(listed, everything);
    }
}

/// The records of one operation are listed, the newest first.
pub(super) async fn lists_find_the_newest_of_an_operation(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    let names = ["orders.place", "orders", "orders.placed", "\u{1f980}'; --"];
    let long = names[0].repeat(100);
    let longer = format!("{long}d");
    let names = [&names[..], &[&*long, &*longer]].concat();
    let mut newest = Vec::new();
    for (number, name) in (0..).zip(names.iter().cycle().take(5 * names.len())) {
        let about = Subject {
            operation: (*name).into(),
            ..(*about("key")).clone()
        };
        let begins = Draft {
            subject: Some(Arc::new(about)),
            ..claim()
        };
        applied(&*store, id(number), None, &begins).await;
        newest.insert(0, (id(number), *name));
        if number % 7 == 0 {
            subject.advance(Duration::from_secs(1)).await;
        }
    }
    for name in names {
        let of_it = newest.iter().filter(|(_, of)| *of == name);
        let of_it: Vec<_> = of_it.map(|(id, _)| *id).collect();
        if let Some(listed) = all(&*store, ListOrder::Operation(name)).await {
            assert_eq!(listed, of_it, "{name}");
        }
    }
    let unknown = all(&*store, ListOrder::Operation("order")).await;
    assert!(unknown.is_none_or(|listed| listed.is_empty()));
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

//! Random histories, checked against the model: [`Draft::apply`](crate::record::Draft::apply) on
//! one record.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    StoreUnderTest,
    sample::{
        LEASE, TTL, anew, claim, completion, heartbeat, id, look, next, purge_all, purged, release,
        swap, takeover,
    },
};
use crate::{
    record::{Draft, Record, State, Version},
    store::{Snapshot, Stamp, Store, Swap},
};

/// F31: what one caller after another does, through any client, is answered as the model answers.
pub(super) async fn a_sequence_is_that_of_the_model(subject: &dyn StoreUnderTest) {
    for seed in 1..=6 {
        let clients = [
            subject.store().await,
            subject.store().await,
            subject.store().await,
        ];
        let mut dice = Dice(seed);
        let mut stale = Vec::new();
        for step in 0..60 {
            let about = format!("seed {seed}, step {step}");
            let store = &clients[dice.below(3)];
            let cell =
                id(u32::try_from(seed * 10).unwrap_or(0)
                    + u32::try_from(dice.below(2)).unwrap_or(0));
            let before = look(&**store, cell).await.record;
            match dice.below(10) {
                0 => {
                    subject
                        .advance(LEASE * u32::try_from(dice.below(4)).unwrap_or(0))
                        .await;
                }
                1 => {
                    let now = look(&**store, cell).await;
                    let expired = before
                        .as_deref()
                        .is_some_and(|record| record.is_expired(now.now));
                    purged(&**store, 1000).await;
                    let after = look(&**store, cell).await.record;
                    assert_eq!(
                        after.is_none(),
                        expired || before.is_none(),
                        "{about}: a purge deletes what is expired"
                    );
                }
                _ => {
                    let seen = match dice.below(4) {
                        0 => None,
                        1 if !stale.is_empty() => stale[dice.below(stale.len())],
                        _ => before.as_ref().map(|record| record.version),
                    };
                    let draft = draft(&mut dice, before.as_deref());
                    let stands = before.as_ref().map(|record| record.version);
                    match swap(&**store, cell, seen, &draft).await {
                        Swap::Applied(stamp) => {
                            assert_eq!(seen, stands, "{about}: applied over another version");
                            let expected = draft.apply(before.as_deref(), stamp.now);
                            assert_eq!(
                                stamp,
                                Stamp::from_record(&expected, stamp.now),
                                "{about}: stamp"
                            );
                            let found = look(&*clients[dice.below(3)], cell).await.record;
                            assert_eq!(found.as_deref(), Some(&expected), "{about}: record");
                        }
                        Swap::Refused(snapshot) => {
                            assert_ne!(
                                seen, stands,
                                "{about}: refused over the version that stands"
                            );
                            assert_eq!(snapshot.record, before, "{about}: shown");
                        }
                    }
                    stale.push(seen);
                }
            }
        }
        purge_all(&*clients[0]).await;
    }
}

/// F31: what several do at once to one record could have been done by one after another.
pub(super) async fn a_history_is_linearizable(subject: &dyn StoreUnderTest) {
    const CALLERS: u64 = 6;
    const STEPS: u64 = 40;
    for seed in 1..=3 {
        let tick = Arc::new(AtomicU64::new(0));
        let mut callers = Vec::new();
        for caller in 0..CALLERS {
            let (store, tick) = (subject.store().await, Arc::clone(&tick));
            let dice = Dice(seed * 1000 + caller);
            callers.push(tokio::spawn(act(
                store,
                dice,
                tick,
                u32::try_from(seed).unwrap_or(0),
                STEPS,
            )));
        }
        let mut history = Vec::new();
        for caller in callers {
            history.extend(caller.await.expect("a caller ends"));
        }
        check(seed, &history);
    }
}

/// One thing that a caller did, between two ticks of a common counter.
struct Event {
    begin: u64,
    end: u64,
    what: What,
}

enum What {
    Looked(Snapshot),
    Refused(Option<Version>, Snapshot),
    Applied(Option<Version>, Box<Draft>, Stamp),
}

async fn act(
    store: Arc<dyn Store>,
    mut dice: Dice,
    tick: Arc<AtomicU64>,
    cell: u32,
    steps: u64,
) -> Vec<Event> {
    let mut known: Option<Arc<Record>> = None;
    let mut events = Vec::new();
    for _ in 0..steps {
        let begin = tick.fetch_add(1, Ordering::SeqCst);
        let what = if dice.below(4) == 0 {
            What::Looked(look(&*store, id(cell)).await)
        } else {
            let seen = known.as_ref().map(|record| record.version);
            let draft = draft(&mut dice, known.as_deref());
            match swap(&*store, id(cell), seen, &draft).await {
                Swap::Applied(stamp) => What::Applied(seen, Box::new(draft), stamp),
                Swap::Refused(snapshot) => What::Refused(seen, snapshot),
            }
        };
        let end = tick.fetch_add(1, Ordering::SeqCst);
        match &what {
            What::Looked(snapshot) | What::Refused(_, snapshot) => {
                known.clone_from(&snapshot.record);
            }
            What::Applied(_, draft, stamp) => {
                known = Some(Arc::new(draft.apply(known.as_deref(), stamp.now)));
            }
        }
        events.push(Event { begin, end, what });
    }
    events
}

/// The applied swaps form one chain; each answer belongs to a place on it, and places keep the
/// order of real time.
fn check(seed: u64, history: &[Event]) {
    let mut followers = HashMap::new();
    for event in history {
        if let What::Applied(seen, draft, stamp) = &event.what {
            let earlier = followers.insert(*seen, (draft, stamp));
            assert!(
                earlier.is_none(),
                "seed {seed}: two swaps over {seen:?} were applied"
            );
        }
    }
    let mut chain: Vec<Record> = Vec::new();
    while let Some((draft, stamp)) = followers.get(&chain.last().map(|record| record.version)) {
        let record = draft.apply(chain.last(), stamp.now);
        assert_eq!(
            **stamp,
            Stamp::from_record(&record, stamp.now),
            "seed {seed}: the stamp of place {}",
            chain.len()
        );
        chain.push(record);
    }
    assert_eq!(
        chain.len(),
        followers.len(),
        "seed {seed}: a swap was applied over a version that never stood"
    );

    // Place 0 is the empty cell, place n the nth record.
    let place_of = |record: Option<&Record>| match record {
        None => 0,
        Some(record) => {
            let place = chain.iter().position(|stood| stood == record);
            place.unwrap_or_else(|| panic!("seed {seed}: {record:?} never stood")) + 1
        }
    };
    let places: Vec<(u64, u64, usize, bool)> = history
        .iter()
        .map(|event| {
            let (place, wrote) = match &event.what {
                What::Looked(snapshot) => (place_of(snapshot.record.as_deref()), false),
                What::Refused(seen, snapshot) => {
                    let stood = snapshot.record.as_ref().map(|record| record.version);
                    assert_ne!(
                        *seen, stood,
                        "seed {seed}: a swap over the version that stood was refused"
                    );
                    (place_of(snapshot.record.as_deref()), false)
                }
                What::Applied(_, draft, _) => {
                    let place = chain
                        .iter()
                        .position(|record| record.version == draft.version);
                    (place.expect("every applied swap is on the chain") + 1, true)
                }
            };
            (event.begin, event.end, place, wrote)
        })
        .collect();
    for (begin, _, place, wrote) in &places {
        for (_, end, earlier, _) in &places {
            let in_order = if *wrote {
                earlier < place
            } else {
                earlier <= place
            };
            assert!(
                end >= begin || in_order,
                "seed {seed}: place {place} was seen after place {earlier}"
            );
        }
    }
}

/// Something that a caller who saw `record` might write.
fn draft(dice: &mut Dice, record: Option<&Record>) -> Draft {
    let Some(record) = record else { return claim() };
    let mine = Draft {
        attempt_id: record.attempt_id,
        attempt: record.attempt,
        ..claim()
    };
    match dice.below(7) {
        0 => anew(record),
        1 => takeover(record),
        2 => heartbeat(&mine),
        3 => completion(&mine, ["", "a", "b"][dice.below(3)]),
        4 => release(&mine),
        5 => next(&mine, [State::Uncertain, State::Parked][dice.below(2)]),
        _ => Draft {
            expires: crate::record::Moment::In(TTL.min(Duration::from_secs(60))),
            ..completion(&mine, "c")
        },
    }
}

/// Pseudo-random numbers that repeat for a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound as u64).unwrap_or(0)
    }
}

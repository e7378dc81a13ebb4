//! Many at once.

use std::sync::Arc;

use tokio::sync::Barrier;

use super::{
    StoreUnderTest,
    sample::{LEASE, applied, claim, completion, id, look, release, standing, swap, takeover},
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, State, TokenRule, Version},
    store::{Store, Swap},
};

const CROWD: usize = 64;
const CLIENTS: usize = 8;

/// F11: of 64 claims at once, one wins, and all others are shown it.
pub(super) async fn of_many_claims_at_once_one_wins(subject: &dyn StoreUnderTest) {
    for round in 0..4 {
        race(subject, id(round), None, |_| claim()).await;
    }
}

/// C07: of 64 takeovers of one abandoned record, one wins.
pub(super) async fn of_many_takeovers_at_once_one_wins(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    applied(&*store, id(1), None, &claim()).await;
    subject.advance(LEASE * 2).await;
    for _ in 0..4 {
        let record = standing(&*store, id(1)).await;
        race(subject, id(1), Some(record.version), |_| takeover(&record)).await;
    }
}

/// V2: of a completion, a release and a takeover at once, one wins.
pub(super) async fn of_many_endings_at_once_one_wins(subject: &dyn StoreUnderTest) {
    let store = subject.store().await;
    for round in 0..4 {
        let draft = claim();
        let record = applied(&*store, id(round), None, &draft).await;
        race(subject, id(round), Some(record.version), |place| {
            match place % 3 {
                0 => completion(&draft, "v"),
                1 => release(&draft),
                _ => takeover(&record),
            }
        })
        .await;
    }
}

/// C09: many ids at once keep to themselves.
pub(super) async fn many_ids_at_once_do_not_mix(subject: &dyn StoreUnderTest) {
    let clients = clients(subject).await;
    let calls: Vec<_> = (0..200_u32)
        .map(|number| {
            let store = Arc::clone(&clients[number as usize % CLIENTS]);
            tokio::spawn(async move {
                let draft = Draft {
                    subject: Some(super::sample::subject(number.to_be_bytes())),
                    ..claim()
                };
                let Swap::Applied(stamp) = swap(&*store, id(number), None, &draft).await else {
                    panic!("nobody else claims id {number}");
                };
                let mut ending = completion(&draft, "");
                ending.outcome = Some(crate::record::RawOutcome::value(
                    number.to_le_bytes().to_vec(),
                ));
                let Swap::Applied(_) =
                    swap(&*store, id(number), Some(stamp.version), &ending).await
                else {
                    panic!("nobody else ends id {number}");
                };
            })
        })
        .collect();
    for call in calls {
        call.await.expect("the call ends");
    }
    for number in 0..200 {
        let record = standing(&*clients[0], id(number)).await;
        assert_eq!(record.subject.key, number.to_be_bytes());
        assert_eq!(
            record.outcome.as_ref().map(|outcome| &outcome.bytes[..]),
            Some(&number.to_le_bytes()[..])
        );
    }
}

/// Lets a crowd swap over one version, and expects that one of them wins and the others are shown
/// it.
async fn race(
    subject: &dyn StoreUnderTest,
    id: RecordId,
    seen: Option<Version>,
    draft: impl Fn(usize) -> Draft,
) {
    let clients = clients(subject).await;
    let before = look(&*clients[0], id).await.record;
    let start = Arc::new(Barrier::new(CROWD));
    let runners: Vec<_> = (0..CROWD)
        .map(|place| {
            let (store, start, draft) = (
                Arc::clone(&clients[place % CLIENTS]),
                Arc::clone(&start),
                draft(place),
            );
            tokio::spawn(async move {
                start.wait().await;
                let swap = swap(&*store, id, seen, &draft).await;
                (draft, swap)
            })
        })
        .collect();
    let mut winners = Vec::new();
    let mut losers = Vec::new();
    for runner in runners {
        match runner.await.expect("the swap is answered") {
            (draft, Swap::Applied(stamp)) => winners.push((draft, stamp)),
            (_, Swap::Refused(snapshot)) => losers.push(snapshot),
        }
    }
    let [(draft, stamp)] = &winners[..] else {
        panic!(
            "{} of {CROWD} swaps over {seen:?} were applied",
            winners.len()
        );
    };
    let expected: Record = draft.apply(before.as_deref(), stamp.now);
    assert_eq!(*standing(&*clients[1], id).await, expected);
    for loser in losers {
        assert_eq!(
            loser.record.as_deref(),
            Some(&expected),
            "whoever lost is shown who won"
        );
    }
    if let (Some(before), TokenRule::Above(_), State::Running) = (&before, draft.token, draft.state)
    {
        assert!(expected.token > before.token);
    }
}

async fn clients(subject: &dyn StoreUnderTest) -> Vec<Arc<dyn Store>> {
    let mut clients = Vec::with_capacity(CLIENTS);
    for _ in 0..CLIENTS {
        clients.push(subject.store().await);
    }
    clients
}

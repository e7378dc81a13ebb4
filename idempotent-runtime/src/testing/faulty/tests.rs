use super::*;
use crate::record::{Moment, TokenRule, Version};
use crate::testing::Gate;
use crate::{
    protocol::{first, sample},
    record::AttemptId,
    store::MemoryStore,
};

const ID: RecordId = RecordId::from_bytes([1; 32]);

fn claim() -> Draft {
    let claim = sample::claim(AttemptId::random(), OnCrash::Rerun);
    first(&claim, Version::random())
}

fn heartbeat(of: &Draft) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        token: TokenRule::Keep,
        ..of.clone()
    }
}

fn store() -> FaultyStore {
    FaultyStore::new(MemoryStore::new())
}

async fn stands(store: &FaultyStore) -> bool {
    let found = store.load(&ID).await;
    found.expect("a load is answered").record.is_some()
}

#[tokio::test]
async fn a_lost_request_is_not_applied_and_a_lost_answer_is() {
    for (fault, applied) in [
        (Fault::LoseRequest, false),
        (Fault::LoseAnswer, true),
        (Fault::Fail(StoreErrorKind::Full), false),
    ] {
        let store = store();
        store.fault(StoreOperation::Claim, On::Call(1), fault);
        assert!(store.swap(&ID, None, &claim()).await.is_err());
        assert_eq!(stands(&store).await, applied);
        assert!(
            store.swap(&ID, None, &claim()).await.is_ok(),
            "only the first call fails"
        );
    }
}

#[tokio::test]
async fn an_outage_lasts_until_it_is_healed() {
    let store = store();
    store.outage(StoreErrorKind::Unavailable);
    for _ in 0..3 {
        let found = store.load(&ID).await;
        assert!(found.is_err_and(|error| error.is_transient()));
        assert!(store.swap(&ID, None, &claim()).await.is_err());
        assert!(store.purge(1, Duration::ZERO).await.is_err());
    }
    store.heal();
    assert!(!stands(&store).await);
    assert_eq!(
        (
            store.calls(StoreOperation::Load),
            store.calls(StoreOperation::Swap)
        ),
        (4, 3)
    );
}

#[tokio::test]
async fn a_delay_holds_the_call_before_and_a_delayed_answer_after_it_is_applied() {
    for (after, held) in [(false, Gate::new()), (true, Gate::new())] {
        let store = store();
        let fault = if after {
            Fault::DelayAnswer(held.clone())
        } else {
            Fault::Delay(held.clone())
        };
        store.fault(StoreOperation::Swap, On::Next, fault);
        let swap = tokio::spawn({
            let store = store.clone();
            async move { store.swap(&ID, None, &claim()).await }
        });
        held.arrived(1).await;
        assert_eq!(stands(&store).await, after);
        assert_eq!(store.under_way(), 1);
        held.open();
        assert!(swap.await.expect("the swap ends").is_ok());
        assert_eq!(store.under_way(), 0);
        assert!(stands(&store).await);
    }
}

#[tokio::test]
async fn swaps_are_told_apart_by_what_they_are_for() {
    let store = store();
    let draft = claim();
    store.fault(StoreOperation::Heartbeat, On::Call(2), Fault::LoseRequest);
    assert!(store.swap(&ID, None, &draft).await.is_ok());
    let beat = heartbeat(&draft);
    assert!(store.swap(&ID, Some(draft.version), &beat).await.is_ok());
    let second = heartbeat(&draft);
    assert!(store.swap(&ID, Some(beat.version), &second).await.is_err());
    let stopped = Draft {
        lease: Moment::In(Duration::ZERO),
        ..heartbeat(&draft)
    };
    assert!(store.swap(&ID, Some(beat.version), &stopped).await.is_ok());
    let done = Draft {
        state: State::Done,
        ..heartbeat(&draft)
    };
    assert!(store.swap(&ID, Some(stopped.version), &done).await.is_ok());

    let counted = [
        StoreOperation::Claim,
        StoreOperation::Heartbeat,
        StoreOperation::Ending,
        StoreOperation::Swap,
    ];
    assert_eq!(
        counted.map(|operation| store.calls(operation)),
        [1, 2, 2, 5]
    );
    assert_eq!(
        (store.swaps_to(State::Running), store.swaps_to(State::Done)),
        (4, 1)
    );
    assert_eq!(store.round_trips(), 3);
}

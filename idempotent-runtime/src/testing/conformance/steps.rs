//! Steps: which writes stand, and how long they do. A store without steps is asked nothing.

use std::sync::Arc;

use tokio::sync::Barrier;

use super::{
    StoreUnderTest,
    sample::{
        LEASE, TTL, applied, claim, completion, digests, heartbeat, id, in_order, look, next,
        purge_all, release, replaced, standing, swap, takeover,
    },
};
use crate::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    record::{AttemptId, Draft, ListedStep, RawOutcome, State, Step, StepName, StepState, Version},
    store::{StepStore, StepWrite, Store, Swap},
};

/// The `number`th name of a case; they differ at their ends.
pub(super) fn name(number: u32) -> StepName {
    let mut bytes = [0x5a; 32];
    bytes[28..].copy_from_slice(&number.to_be_bytes());
    StepName::from_bytes(bytes)
}

/// A step that is done, of this attempt.
pub(crate) fn step(number: u32, attempt_id: AttemptId, value: &str) -> Step {
    Step {
        name: name(number),
        label: "item".into(),
        version: Version::random(),
        state: StepState::Done,
        attempt_id,
        on_crash: OnCrash::Rerun,
        fingerprint: Fingerprinted::stored(Fingerprint::from_bytes([3; 32]), digests()),
        outcome: Some(RawOutcome::value(value.as_bytes().to_vec()).with_schema(7)),
        undo: Some(number),
        note: None,
    }
}

/// A step that has begun: only its name is that of [`step`].
pub(super) fn begun(number: u32, attempt_id: AttemptId) -> Step {
    let fingerprint = Fingerprint::from_bytes([4; 32]);
    Step {
        label: "begun".into(),
        state: StepState::Begun,
        on_crash: OnCrash::Uncertain,
        fingerprint: Fingerprinted::stored(fingerprint, ArgumentDigests::default()),
        outcome: None,
        undo: None,
        ..step(number, attempt_id, "")
    }
}

/// A client, if its store keeps steps.
pub(super) async fn client(subject: &dyn StoreUnderTest) -> Option<Arc<dyn Store>> {
    let store = subject.store().await;
    let keeps_steps = store.steps().is_some();
    keeps_steps.then_some(store)
}

/// The steps of a store that keeps some.
pub(crate) fn steps(store: &dyn Store) -> &dyn StepStore {
    store.steps().expect("the store keeps steps")
}

pub(super) async fn write(
    store: &dyn Store,
    call: RecordId,
    seen: Option<Version>,
    step: &Step,
) -> StepWrite {
    let written = steps(store).write_step(&call, seen, step).await;
    written.expect("a write of a step is answered")
}

pub(super) async fn load(store: &dyn Store, call: RecordId, number: u32) -> Option<Arc<Step>> {
    let loaded = steps(store).load_steps(&call, &name(number).alone()).await;
    let mut found = loaded.expect("a look at a step is answered");
    assert!(found.len() <= 1, "one name, one step");
    found.pop()
}

/// The list has the head of every step, in the same order.
pub(super) async fn lists_what_it_loads(store: &dyn Store, call: RecordId) {
    let loaded = steps(store).load_steps(&call, &StepName::ALL).await;
    let loaded = loaded.expect("a look at steps is answered");
    let heads: Vec<_> = loaded.iter().map(|it| ListedStep::from(&**it)).collect();
    let listed = steps(store).list_steps(&call).await;
    assert_eq!(listed.expect("a list of steps is answered"), heads);
}

/// Writes, and expects that it stands.
pub(super) async fn written(store: &dyn Store, call: RecordId, seen: Option<Version>, step: &Step) {
    let answer = write(store, call, seen, step).await;
    assert!(matches!(answer, StepWrite::Written), "{answer:?}");
}

/// Writes, and expects that the record takes no step of this attempt, and that the refusal shows
/// what stands.
async fn lost(store: &dyn Store, call: RecordId, step: &Step) {
    let before = look(store, call).await;
    match write(store, call, None, step).await {
        StepWrite::Lost(snapshot) => {
            assert_eq!(snapshot.record, before.record);
            in_order(before.now, snapshot.now, look(store, call).await.now);
        }
        answer => panic!("{answer:?}"),
    }
}

/// J07: every field of a step comes back, whatever its outcome is, and nothing of the record
/// changes.
pub(super) async fn a_step_comes_back_whole(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let held = claim();
    let record = applied(&*store, id(1), None, &held).await;
    let large = vec![0xfe; 1 << 20];
    let outcomes = [
        None,
        Some(RawOutcome::value("")),
        Some(RawOutcome::value(large).with_schema(u32::MAX)),
        Some(RawOutcome::error("declined")),
        Some(RawOutcome::not_replayable()),
    ];
    for (number, outcome) in (0..).zip(outcomes) {
        let on_crash = [OnCrash::Rerun, OnCrash::Reconcile, OnCrash::Uncertain];
        let state = match outcome {
            None => StepState::Begun,
            Some(_) => StepState::Done,
        };
        let step = Step {
            label: "läbel \u{1f6eb}".into(),
            state,
            on_crash: on_crash[number as usize % 3],
            outcome,
            ..step(number, held.attempt_id, "")
        };
        written(&*store, id(1), None, &step).await;
        let found = load(&*store, id(1), number).await.expect("it stands");
        assert_eq!(*found, step);
        assert_eq!(found.fingerprint.digests(), step.fingerprint.digests());
    }
    assert_eq!(standing(&*store, id(1)).await, record);
    lists_what_it_loads(&*store, id(1)).await;
    lists_what_it_loads(&*store, id(2)).await;
    assert_eq!(load(&*store, id(1), 99).await, None);
    assert_eq!(load(&*store, id(2), 0).await, None);
}

/// J10: the step that stands under a name stays, except for a write over its version.
pub(super) async fn the_first_write_of_a_step_wins(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let held = claim();
    applied(&*store, id(1), None, &held).await;
    let begun = begun(1, held.attempt_id);
    written(&*store, id(1), None, &begun).await;
    let done = step(1, held.attempt_id, "first");
    for seen in [None, Some(Version::random())] {
        match write(&*store, id(1), seen, &done).await {
            StepWrite::Stands(stands) => assert_eq!(*stands, begun),
            answer => panic!("{answer:?}"),
        }
    }
    written(&*store, id(1), Some(begun.version), &done).await;
    let second = Step {
        state: StepState::Done,
        outcome: Some(RawOutcome::error("second").with_schema(8)),
        ..begun.clone()
    };
    let answer = write(&*store, id(1), Some(begun.version), &second).await;
    assert!(matches!(answer, StepWrite::Stands(_)), "{answer:?}");
    let found = load(&*store, id(1), 1).await.expect("it stands");
    assert_eq!(*found, done);
    assert_eq!(found.fingerprint.digests(), done.fingerprint.digests());
}

/// J17, D04: a record takes steps of the attempt that holds it, or held it and left it uncertain,
/// and of no other.
pub(super) async fn a_step_of_a_stale_owner_is_refused(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let stale = claim();
    lost(&*store, id(1), &step(1, stale.attempt_id, "v")).await;
    let record = applied(&*store, id(1), None, &stale).await;
    lost(&*store, id(9), &step(1, stale.attempt_id, "v")).await;
    let held = takeover(&record);
    let record = replaced(&*store, id(1), &record, &held).await;
    lost(&*store, id(1), &step(1, stale.attempt_id, "v")).await;
    written(&*store, id(1), None, &step(1, held.attempt_id, "v")).await;
    let mut record = record;
    for (number, state) in [(2, State::Uncertain), (4, State::Undoing)] {
        record = replaced(&*store, id(1), &record, &next(&held, state)).await;
        written(&*store, id(1), None, &step(number, held.attempt_id, "v")).await;
    }
    replaced(&*store, id(1), &record, &completion(&held, "v")).await;
    lost(&*store, id(1), &step(3, held.attempt_id, "v")).await;
    for (number, end) in [(2, release(&stale)), (3, next(&stale, State::Parked))] {
        let record = applied(&*store, id(number), None, &stale).await;
        replaced(&*store, id(number), &record, &end).await;
        lost(&*store, id(number), &step(1, stale.attempt_id, "v")).await;
    }
    assert_eq!(load(&*store, id(1), 3).await, None);
}

/// J01: steps stay over heartbeats, takeovers, and writes that leave the record to be settled.
pub(super) async fn a_takeover_goes_on_with_the_steps(subject: &dyn StoreUnderTest) {
    let (Some(store), Some(other)) = (client(subject).await, client(subject).await) else {
        return;
    };
    let first = claim();
    let record = applied(&*store, id(1), None, &first).await;
    let kept = step(1, first.attempt_id, "kept");
    written(&*store, id(1), None, &kept).await;
    let began = begun(2, first.attempt_id);
    written(&*store, id(1), None, &began).await;
    let record = replaced(&*store, id(1), &record, &heartbeat(&first)).await;
    let second = takeover(&record);
    let record = replaced(&*other, id(1), &record, &second).await;
    assert_eq!(load(&*other, id(1), 1).await.as_deref(), Some(&kept));
    match write(&*other, id(1), None, &step(1, second.attempt_id, "v")).await {
        StepWrite::Stands(stands) => assert_eq!(*stands, kept),
        answer => panic!("{answer:?}"),
    }
    let done = step(2, second.attempt_id, "v");
    written(&*other, id(1), Some(began.version), &done).await;
    assert_eq!(load(&*store, id(1), 2).await.as_deref(), Some(&done));
    replaced(&*other, id(1), &record, &next(&second, State::Parked)).await;
    assert_eq!(load(&*store, id(1), 1).await.as_deref(), Some(&kept));
}

/// J08: a step is gone once its record is: purged, or begun again. Those of others stay.
pub(super) async fn a_step_ends_with_its_life(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let (released, done, stays) = (id(1), id(2), id(3));
    let held = Draft {
        on_crash: OnCrash::Uncertain,
        ..claim()
    };
    let old = step(1, held.attempt_id, "old");
    let mut versions = Vec::new();
    for call in [released, done, stays] {
        versions.push(applied(&*store, call, None, &held).await.version);
        written(&*store, call, None, &old).await;
    }
    applied(&*store, released, Some(versions[0]), &release(&held)).await;
    applied(&*store, done, Some(versions[1]), &completion(&held, "v")).await;
    subject.advance(LEASE).await;
    let seen = standing(&*store, released).await;
    let again = Draft {
        subject: claim().subject,
        ..takeover(&seen)
    };
    let record = replaced(&*store, released, &seen, &again).await;
    assert_eq!(load(&*store, released, 1).await, None);
    let anew = step(1, again.attempt_id, "anew");
    written(&*store, released, None, &anew).await;
    assert_eq!(load(&*store, released, 1).await.as_deref(), Some(&anew));
    replaced(&*store, released, &record, &heartbeat(&again)).await;

    subject.advance(TTL * 2).await;
    purge_all(&*store).await;
    assert_eq!(look(&*store, done).await.record, None);
    let new = claim();
    applied(&*store, done, None, &new).await;
    assert_eq!(load(&*store, done, 1).await, None);
    assert_eq!(load(&*store, stays, 1).await.as_deref(), Some(&old));
    let new = step(1, new.attempt_id, "new");
    written(&*store, done, None, &new).await;
    assert_eq!(load(&*store, done, 1).await.as_deref(), Some(&new));
}

/// V1: of many writes of one step at once, one stands, and every other is shown it.
pub(super) async fn of_many_writes_of_a_step_one_wins(subject: &dyn StoreUnderTest) {
    const CROWD: u32 = 16;
    let Some(store) = client(subject).await else {
        return;
    };
    for round in 0..4 {
        let held = claim();
        applied(&*store, id(round), None, &held).await;
        let barrier = Arc::new(Barrier::new(CROWD as usize));
        let mut writers = Vec::new();
        for number in 0..CROWD {
            let (store, barrier) = (subject.store().await, Arc::clone(&barrier));
            let step = step(1, held.attempt_id, &number.to_string());
            writers.push(tokio::spawn(async move {
                barrier.wait().await;
                (write(&*store, id(round), None, &step).await, step)
            }));
        }
        let (mut won, mut shown) = (Vec::new(), Vec::new());
        for writer in writers {
            match writer.await.expect("no panic") {
                (StepWrite::Written, step) => won.push(step),
                (StepWrite::Stands(step), _) => shown.push(step),
                (StepWrite::Lost(snapshot), _) => panic!("{snapshot:?}"),
            }
        }
        let [won] = &won[..] else {
            panic!("{} of them stand", won.len());
        };
        assert!(shown.iter().all(|step| **step == *won), "it is shown");
        assert_eq!(load(&*store, id(round), 1).await.as_deref(), Some(won));
    }
}

/// J11: many steps at once, of several records, keep to themselves.
pub(super) async fn many_steps_at_once_do_not_mix(subject: &dyn StoreUnderTest) {
    let Some(store) = client(subject).await else {
        return;
    };
    let mut held = Vec::new();
    for call in 0..4 {
        let draft = claim();
        applied(&*store, id(call), None, &draft).await;
        held.push(draft.attempt_id);
    }
    let value = |number: u32| format!("{} of {}", number / 4, number % 4);
    let mut writers = Vec::new();
    for number in 0..100_u32 {
        let call = number % 4;
        let step = step(number / 4, held[call as usize], &value(number));
        let store = subject.store().await;
        writers.push(tokio::spawn(async move {
            written(&*store, id(call), None, &step).await;
        }));
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    for number in 0..100 {
        let found = load(&*store, id(number % 4), number / 4).await;
        let outcome = found.expect("it stands").outcome.clone();
        let bytes = outcome.expect("it is done").bytes;
        assert_eq!(bytes, value(number));
    }
}

/// Once a takeover is applied, no step of the attempt before is written any more.
pub(super) async fn a_step_beside_a_takeover_is_before_it_or_refused(subject: &dyn StoreUnderTest) {
    let (Some(a), Some(b)) = (client(subject).await, client(subject).await) else {
        return;
    };
    for round in 0..16 {
        let first = claim();
        let record = applied(&*a, id(round), None, &first).await;
        let step = step(1, first.attempt_id, "late");
        let barrier = Arc::new(Barrier::new(2));
        let writing = {
            let (a, barrier) = (Arc::clone(&a), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                write(&*a, id(round), None, &step).await
            })
        };
        barrier.wait().await;
        let taken = swap(&*b, id(round), Some(record.version), &takeover(&record)).await;
        assert!(matches!(taken, Swap::Applied(_)), "{taken:?}");
        let after = load(&*b, id(round), 1).await;
        let answer = writing.await.expect("no panic");
        let stood = match &answer {
            StepWrite::Written => true,
            StepWrite::Lost(_) => false,
            StepWrite::Stands(step) => panic!("{step:?}"),
        };
        assert_eq!(after.is_some(), stood, "{answer:?}");
        assert_eq!(load(&*b, id(round), 1).await, after);
    }
}

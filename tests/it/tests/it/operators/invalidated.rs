//! An operator gives up the outcome of a finished call, and the next call runs.

use idempotent_runtime::{
    Error, Idempotency, NotSettled, RecordChange,
    operate::State,
    sequence::Decision,
    step,
    store::{OutcomeCache, TieredStore},
    testing::Gate,
};

use super::{charge, leave_uncertain, row};
use crate::harness::{Owner, World, not_settled};

on_every_store![
    an_invalidated_call_runs_again_with_its_steps,
    nothing_but_an_outcome_is_invalidated,
];

async fn an_invalidated_call_runs_again_with_its_steps(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let report = async |owner: &Owner, of: &str| {
        let of = of.to_owned();
        let body = async |_| {
            let figures = async |_| Ok::<_, Error>(of.clone());
            step("figures", figures).await
        };
        owner.call("report").key("k").run(body).await
    };
    assert_eq!(report(&owner, "October").await.as_deref(), Ok("October"));
    assert_eq!(report(&other, "November").await.as_deref(), Ok("October"));
    let seen = row(&owner).await;

    let act = owner
        .idem
        .invalidate(seen.id, "it has the figures of October");
    act.at_version(seen.version)
        .by("anna")
        .await
        .expect("it is finished");

    let released = row(&owner).await;
    assert_eq!((released.state, released.outcome), (State::Released, None));
    let note = released.note.expect("anna signed it");
    assert_eq!(
        (note.by.as_deref(), &*note.text),
        (Some("anna"), "it has the figures of October")
    );
    assert_eq!(owner.log.count(RecordChange::Invalidated), 1);
    assert_eq!(report(&other, "November").await.as_deref(), Ok("November"));
    assert_eq!(report(&owner, "December").await.as_deref(), Ok("November"));
    assert_eq!(row(&owner).await.note, None);
}

async fn nothing_but_an_outcome_is_invalidated(world: World) {
    let owner = world.owner().await;
    leave_uncertain(&owner, "k").await;
    let id = row(&owner).await.id;
    let invalidate = async |reason: &str| {
        let act = owner.idem.invalidate(id, reason);
        not_settled(act.await)
    };
    assert_eq!(
        invalidate("it is wrong").await,
        Some(NotSettled::NotFinished)
    );
    let settle = owner.idem.settle_id(id).await.expect("it stands");
    settle.as_done().await.expect("it is uncertain");
    assert_eq!(
        invalidate("it is wrong").await,
        Some(NotSettled::NotFinished)
    );
    let settle = owner.idem.settle_id(id).await.expect("it stands");
    settle
        .with_value(&7_u64)
        .await
        .expect("its outcome was not kept");
    for none in ["", " \n"] {
        let without = owner.idem.invalidate(id, none).await;
        assert!(
            matches!(without, Err(Error::InvalidPolicy(_))),
            "{without:?}"
        );
    }
    assert_eq!(charge(&owner, "k", 8).await, Ok(7));
    assert_eq!(invalidate("it is wrong").await, None);
    assert_eq!(
        invalidate("it is wrong").await,
        Some(NotSettled::UnknownKey)
    );

    let gate = Gate::new();
    let (call, its) = (owner.call("charge").key("k"), gate.clone());
    let running = owner.spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(9_u64)
        };
        call.run(body).await
    });
    gate.arrived(1).await;
    assert_eq!(
        invalidate("it is wrong").await,
        Some(NotSettled::StillRunning)
    );
    gate.open();
    assert_eq!(running.await.expect("it does not panic"), Ok(9));

    let payouts = owner.idem.sequence("payouts", "m-7").first(1).number(1);
    let applied = payouts.run(async |_| Ok::<_, Error>(1_u64)).await;
    assert_eq!(applied.ok(), Some(Decision::Applied(1)));
    let page = owner.idem.records().page(10).await;
    let rows = page.expect("the store answers").rows;
    let stream = rows.iter().find(|row| row.is_stream).expect("it began");
    let act = owner.idem.invalidate(stream.id, "it is wrong").await;
    assert_eq!(not_settled(act), Some(NotSettled::IsSequence));
}

/// A copy that this process holds does not outlive the outcome.
#[tokio::test]
async fn an_invalidated_call_has_no_copy_left_in_this_process() -> Result<(), Error> {
    let world = World::memory().await;
    let store = TieredStore::new(world.store().await, OutcomeCache::new(10));
    let idem = Idempotency::new(store);
    let charge = async |receipt: u64| {
        let call = idem.call("charge").key("k");
        call.run(async |_| Ok::<_, Error>(receipt)).await
    };
    assert_eq!(
        (charge(1).await?, charge(2).await?, charge(3).await?),
        (1, 1, 1)
    );
    let id = idem.records().page(1).await?.rows[0].id;
    idem.invalidate(id, "it is wrong").await?;
    assert_eq!((charge(4).await?, charge(5).await?), (4, 4));
    Ok(())
}

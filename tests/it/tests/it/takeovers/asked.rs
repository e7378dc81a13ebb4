//! The answers of a reconciling function, and the fate of the record after each of them.

use super::{unbegun::left, *};

on_every_store![
    d22_asking_in_vain_uses_up_no_budget,
    d22_a_body_that_ran_again_counts_as_an_attempt,
    d22_what_is_found_to_have_failed_is_as_if_the_body_had_said_so,
    d22_that_nobody_knows_is_never_an_outcome,
    d22_a_takeover_whose_answer_is_lost_is_a_takeover_all_the_same,
];

async fn d22_asking_in_vain_uses_up_no_budget(world: World) {
    lapsed(&world, Mode::Reconcile(Found::Unknown)).await;
    let owner = world.owner().await;
    ask_in_vain(&world, &owner).await;
    // The next one runs the body again, and vanishes in it.
    lapsed(&world, Mode::Reconcile(Found::Nothing)).await;

    // It is not parked.
    finds(&world, &owner).await;

    assert_eq!(world.runs("k"), 2);
}

async fn d22_a_body_that_ran_again_counts_as_an_attempt(world: World) {
    const NOTHING: Mode = Mode::Reconcile(Found::Nothing);
    for way in ["is dropped", "says that nobody knows", "panics after it"] {
        lapsed_under(&world, way, NOTHING).await;
        let owner = world.owner().await;

        if way == "is dropped" {
            let charge = Charge::of(&world, &owner).key(way).mode(NOTHING);
            let (call, _gate) = charge.begun().await;
            abort(call).await;
        } else if way == "panics after it" {
            let call = owner.call("charge").key(way).arguments(&1);
            let call = call.classify_errors(|_: &Error| -> Verdict { panic!("planned") });
            let call = tokio::spawn(call.reconcile(
                |_| async { Reconciled::RunAgain },
                |_| async { Err::<String, _>(Error::InvalidPolicy("who knows")) },
            ));
            assert!(call.await.is_err_and(|ended| ended.is_panic()));
        } else {
            let call = owner.call("charge").key(way).arguments(&1);
            let call = call.uncertain_errors().reconcile(
                |_| async { Reconciled::RunAgain },
                |_| async { Err::<String, _>(Error::InvalidPolicy("who knows")) },
            );
            assert_eq!(call.await, Err(Error::InvalidPolicy("who knows")));
        }
        owner.settled().await;

        let left = left(&world, way).await;
        assert_eq!(left, Some((State::Uncertain, 2)), "{way}");
    }
}

async fn d22_what_is_found_to_have_failed_is_as_if_the_body_had_said_so(world: World) {
    for (row, verdict) in [Verdict::Replay, Verdict::Release, Verdict::Uncertain]
        .into_iter()
        .enumerate()
    {
        let key = format!("row {row}");
        lapsed_under(&world, &key, Mode::Reconcile(Found::Nothing)).await;
        let owner = world.owner_with(|builder| builder.on_error(verdict)).await;
        let body = world.clone();
        let call = owner.call("charge").key(key.as_str()).arguments(&1);

        let answer = call
            .reconcile(
                |_| async { Reconciled::Failed(Heard::Refused) },
                |_| async {
                    body.happened(&key);
                    Ok::<(), Heard>(())
                },
            )
            .await;

        assert_eq!(answer, Err(Heard::Refused), "{verdict:?}");
        assert_eq!(world.runs(&key), 1, "{verdict:?}: no body ran");
        assert_eq!(owner.log.answers(), [CallOutcome::Reconciled]);
        let status = owner.idem.lookup("charge", None::<&str>, &key).await;
        let status = status.expect("the store answers");
        let as_said = match (verdict, &status) {
            (Verdict::Replay, Status::Failed(kept)) => {
                kept.decode::<Heard>().ok() == Some(Heard::Refused)
            }
            (Verdict::Release, Status::Unknown) | (Verdict::Uncertain, Status::Uncertain) => true,
            _ => false,
        };
        assert!(as_said, "{verdict:?}: {status:?}");
    }
}

/// It holds also if the function's error type turns a refusal of ours into a text, which could be
/// stored.
async fn d22_that_nobody_knows_is_never_an_outcome(world: World) {
    lapsed(&world, Mode::Reconcile(Found::Unknown)).await;
    let owner = world.owner().await;
    let call = owner.call("charge").key("k").arguments(&1);
    let answer = call.reconcile(
        |_| async { Reconciled::Unknown },
        |_| async { Ok::<String, Heard>("ran".into()) },
    );

    let answer = answer.await;

    assert!(matches!(answer, Err(Heard::NoAnswer(_))), "{answer:?}");
    assert_eq!(owner.log.answers(), [CallOutcome::Uncertain]);
    assert_eq!(world.record().await.state, State::Uncertain);
    finds(&world, &owner).await;
}

/// The call recognises it as its own, and as a takeover. A call that took it for a first claim
/// would not ask, and would run the body again.
async fn d22_a_takeover_whose_answer_is_lost_is_a_takeover_all_the_same(world: World) {
    for (key, mode, answered, runs) in [
        (
            "asks",
            Mode::Reconcile(Found::Happened),
            ("found", CallOutcome::Reconciled),
            1,
        ),
        (
            "runs",
            Mode::Rerun,
            ("charged", CallOutcome::ExecutedAfterTakeover),
            2,
        ),
    ] {
        lapsed_under(&world, key, mode).await;
        let owner = world.owner().await;
        // The first claim finds the record, the second one takes it over.
        owner.fault(StoreOperation::Claim, On::Call(2), Fault::LoseAnswer);
        let call = Charge::of(&world, &owner).key(key).mode(mode).spawn();
        while owner.store.calls(StoreOperation::Claim) < 2 {
            yield_now().await;
        }
        owner.timer.await_sleepers(1).await;
        owner.timer.advance(LEASE / 100);

        let answer = call.await.expect("no panic");

        assert_eq!(answer, Ok(answered.0.into()), "{key}");
        assert_eq!(owner.log.answers(), [answered.1], "{key}");
        assert_eq!(world.runs(key), runs, "{key}");
    }
}

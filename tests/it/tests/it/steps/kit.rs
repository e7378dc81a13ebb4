//! The testing kit and steps: it lets processes die around each of them, and replays them over
//! changed code.

use std::sync::{Arc, Mutex};

use idempotent_runtime::{
    BoxError, Error, Idempotency,
    record::{Step, StepName},
    step, step_version,
    testing::{CrashPoint, CrashPoints, EffectLog, StepDifference, StoreOperation, replay_steps},
};

use crate::booking::{BookError, verdict};

/// A gateway that takes repeated requests for one if they have the same key.
fn happens(gateway: &EffectLog, what: &str, key: &str) {
    gateway.record(what, 1, key).expect("memory takes it");
}

/// How often it was asked, and how many different keys there were.
fn requests(gateway: &EffectLog, what: &str) -> (usize, usize) {
    let entries = gateway.entries().expect("memory is read");
    let of_it = entries.into_iter().filter(|effect| effect.key == what);
    let mut keys: Vec<_> = of_it.map(|effect| effect.value).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    (all, keys.len())
}

/// Two steps with undos; the call ends well or fails for good.
async fn book(idem: &Idempotency, gateway: &EffectLog, ends: bool) -> Result<(), BookError> {
    let call = idem.call("trips.book").key("trip-1");
    call.classify_errors(verdict)
        .run(async |_| {
            for name in ["flight", "hotel"] {
                let undone_at = gateway.clone();
                let body = async |s: idempotent_runtime::StepContext| {
                    happens(gateway, name, &s.key());
                    Ok::<_, BookError>(())
                };
                let step = step(name, body).undo(move |undo| {
                    happens(&undone_at, &format!("undo {name}"), &undo.key());
                    async { Ok::<_, BoxError>(()) }
                });
                step.run().await?;
            }
            happens(gateway, "the end", "of the body");
            match ends {
                true => Ok(()),
                false => Err(BookError::Refused),
            }
        })
        .await
}

#[test]
fn a_process_dies_at_every_point_of_a_call_with_steps() {
    let mut again = Vec::new();
    let points = CrashPoints::new().run(
        async || EffectLog::new(),
        async |idem, gateway| book(idem, gateway, true).await,
        async |point, gateway, answer| {
            assert_eq!(answer, Ok(()), "{point}");
            for name in ["flight", "hotel"] {
                let (asked, keys) = requests(gateway, name);
                assert_eq!(
                    keys, 1,
                    "{point}: one effect at a gateway that knows its keys"
                );
                assert!(asked <= 2, "{point}: one more for the kill");
                if asked == 2 {
                    again.push((point, name));
                }
                assert_eq!(requests(gateway, &format!("undo {name}")).0, 0, "{point}");
            }
        },
    );
    let before_a_record = CrashPoint::Before(StoreOperation::WriteStep);
    assert_eq!(
        again,
        [(before_a_record, "flight"), (before_a_record, "hotel")]
    );
    let writes = points.iter().filter(|point| **point == before_a_record);
    assert_eq!(
        writes.count(),
        4,
        "each step says that it begins, and that it has ended"
    );
}

#[test]
fn a_saga_whose_process_dies_at_any_point_is_undone_and_never_runs_forward() {
    let in_an_undo = Mutex::new(0);
    CrashPoints::new().run(
        async || EffectLog::new(),
        async |idem, gateway| book(idem, gateway, false).await,
        async |point, gateway, answer| {
            assert_eq!(answer, Err(BookError::Refused), "{point}");
            for name in ["flight", "hotel"] {
                assert_eq!(requests(gateway, name).1, 1, "{point}: {name}");
                let (asked, keys) = requests(gateway, &format!("undo {name}"));
                assert_eq!(keys, 1, "{point}: {name} is undone, and under one key");
                *in_an_undo.lock().expect("nobody panicked") += asked - 1;
            }
            // Once the decision stands, the body comes to its end no more.
            let ends = requests(gateway, "the end").0;
            assert!(ends <= 2, "{point}: {ends}");
        },
    );
    let again = in_an_undo.into_inner().expect("nobody panicked");
    assert_eq!(
        again, 2,
        "each undo once more where its record was not written"
    );
}

/// The steps of a call that ran this body.
async fn recorded(idem: &Idempotency, amount: u64) -> Vec<Arc<Step>> {
    let call = idem.call("orders.ship").key("order-1");
    call.run(async |_| ship(amount).await)
        .await
        .expect("it ends well");
    let records = idem.store().scan(None, 1).await.expect("memory is listed");
    let steps = idem.store().steps().expect("the store keeps steps");
    let steps = steps.load_steps(&records[0].0, &StepName::ALL).await;
    steps.expect("memory is read")
}

async fn part(name: &'static str, amount: u64) -> Result<u64, Error> {
    let body = async |_| Ok::<_, Error>(amount);
    step(name, body).argument("amount", &amount).await
}

async fn ship(amount: u64) -> Result<u64, Error> {
    let charged = part("charge", amount).await?;
    part("parcel", charged).await
}

#[tokio::test]
async fn equal_code_replays_and_runs_no_step() {
    let idem = Idempotency::memory();
    let steps = recorded(&idem, 7).await;
    let ran = std::cell::Cell::new(false);
    let body = async {
        let body = async |_| {
            ran.set(true);
            Ok::<_, Error>(1)
        };
        let charged = step("charge", body).argument("amount", &7).run().await?;
        part("parcel", charged).await
    };
    // The body of the step would give 1, and the record gives 7.
    assert_eq!(replay_steps(&idem, &steps, body).await, Ok(Some(Ok(7))));
    assert!(!ran.get());
}

#[tokio::test]
async fn a_version_that_was_added_since_takes_the_old_path_and_differs_in_nothing() {
    let idem = Idempotency::memory();
    let steps = recorded(&idem, 7).await;
    let body = async {
        match step_version("two parcels").await? {
            true => part("other parcel", 7).await,
            false => ship(7).await,
        }
    };
    assert_eq!(replay_steps(&idem, &steps, body).await, Ok(Some(Ok(7))));
}

#[tokio::test]
async fn the_first_difference_of_changed_code_is_told() {
    let idem = Idempotency::memory();
    let steps = recorded(&idem, 7).await;
    let changed = replay_steps(&idem, &steps, ship(8)).await;
    let expected = StepDifference::Changed {
        step: "charge".to_owned(),
        differing: vec!["amount".to_owned()],
    };
    assert_eq!(changed, Err(expected));
    let removed = replay_steps(&idem, &steps, part("charge", 7)).await;
    let parcel = vec!["parcel".to_owned()];
    let expected = StepDifference::Missing {
        steps: parcel.clone(),
    };
    assert_eq!(removed, Err(expected));
    let renamed = replay_steps(&idem, &steps, async {
        let charged = part("charge", 7).await?;
        part("package", charged).await
    });
    let expected = StepDifference::New {
        steps: vec!["package".to_owned()],
        missing: parcel,
    };
    assert_eq!(renamed.await, Err(expected));
}

#[tokio::test]
async fn code_that_goes_on_behind_the_record_does_not_differ() {
    let idem = Idempotency::memory();
    let steps = recorded(&idem, 7).await;
    let added = replay_steps(&idem, &steps, async {
        let (charged, parcel) = tokio::join!(part("charge", 7), part("parcel", 7));
        part("mail", charged? + parcel?).await
    });
    assert_eq!(added.await, Ok(None), "it stands at the new step");
    let reordered = replay_steps(&idem, &steps, async {
        let parcel = part("parcel", 7).await?;
        part("charge", 7).await.map(|charged| charged + parcel)
    });
    assert_eq!(reordered.await, Ok(Some(Ok(14))));
}

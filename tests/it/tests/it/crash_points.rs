//! The part of the kit that lets processes die at every point of a call.

use std::{sync::mpsc::channel, thread, time::Duration};

use idempotent_runtime::{
    Attempt, Error, OnCrash, current, idempotent,
    testing::{CrashPoint, CrashPoints, EffectLog, StoreOperation},
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::{spawn_blocking, yield_now},
};

const CLAIM_AND_ENDING: [CrashPoint; 4] = [
    CrashPoint::Before(StoreOperation::Claim),
    CrashPoint::After(StoreOperation::Claim),
    CrashPoint::Before(StoreOperation::Ending),
    CrashPoint::After(StoreOperation::Ending),
];

/// A gateway. If it is sent the same key again, it takes the charge for a repeated one.
fn charged(gateway: &EffectLog, order: &str, key: &str) {
    let attempt = current().number();
    gateway
        .record(order, attempt, key)
        .expect("memory takes it");
}

fn charges(gateway: &EffectLog) -> usize {
    let entries = gateway.entries().expect("memory is read");
    let mut keys: Vec<_> = entries.into_iter().map(|effect| effect.value).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.len()
}

fn requests(gateway: &EffectLog) -> usize {
    gateway.entries().expect("memory is read").len()
}

#[idempotent(name = "crashes.charge", key = order, skip(gateway))]
async fn charge(gateway: &EffectLog, order: &str) -> Result<u32, Error> {
    yield_now().await;
    charged(gateway, order, &current().child_key("gateway"));
    yield_now().await;
    Ok(7)
}

#[test]
fn l03_a_process_dies_at_every_point_of_a_function() {
    let mut requested = Vec::new();
    let points = CrashPoints::new().run(
        async || EffectLog::new(),
        async |_, gateway| charge(gateway, "order-1").await,
        async |point, gateway, answer| {
            assert_eq!((answer, charges(gateway)), (Ok(7), 1), "{point}");
            requested.push(requests(gateway));
        },
    );

    let [before_claim, after_claim, before_ending, after_ending] = CLAIM_AND_ENDING;
    let (first, second) = (CrashPoint::Await(1), CrashPoint::Await(2));
    let expected = [
        (before_claim, 1),
        (after_claim, 1),
        (before_ending, 2),
        (after_ending, 1),
        (first, 1),
        (second, 2),
        (CrashPoint::Answered, 1),
    ];
    let met: Vec<_> = points.into_iter().zip(requested).collect();
    assert_eq!(met, expected);
}

#[test]
fn l03_at_most_once_is_seen_to_hold_at_every_point() {
    let mut uncertain = Vec::new();
    CrashPoints::new()
        .set_up(|builder| builder.on_crash(OnCrash::Uncertain))
        .run(
            async || EffectLog::new(),
            async |_, gateway| charge(gateway, "order-1").await,
            async |point, gateway, answer| {
                assert!(requests(gateway) <= 1, "{point}");
                match answer {
                    Ok(7) => assert_eq!(requests(gateway), 1, "{point}"),
                    Err(Error::Uncertain { .. }) => uncertain.push(point),
                    answer => panic!("{point}: {answer:?}"),
                }
            },
        );
    let [_, after_claim, before_ending, _] = CLAIM_AND_ENDING;
    let awaits = [CrashPoint::Await(1), CrashPoint::Await(2)];
    assert_eq!(
        uncertain,
        [after_claim, before_ending, awaits[0], awaits[1]]
    );
}

#[idempotent(name = "crashes.detached", key = order, skip(gateway), on_cancel = detach)]
async fn detached(gateway: EffectLog, order: String) -> Result<u32, Error> {
    charged(&gateway, &order, &current().child_key("gateway"));
    Ok(7)
}

#[test]
fn l03_a_detached_body_dies_with_its_process() {
    let mut requested = Vec::new();
    let points = CrashPoints::new().run(
        async || EffectLog::new(),
        async |_, gateway| detached(gateway.clone(), "order-1".into()).await,
        async |point, gateway, answer| {
            assert_eq!((answer, charges(gateway)), (Ok(7), 1), "{point}");
            requested.push(requests(gateway));
        },
    );

    let [before_claim, after_claim, before_ending, after_ending] = CLAIM_AND_ENDING;
    let expected = [
        (before_claim, 1),
        (after_claim, 1),
        (before_ending, 2),
        (after_ending, 1),
        // Its task has not begun.
        (CrashPoint::Await(1), 1),
        (CrashPoint::Answered, 1),
    ];
    let met: Vec<_> = points.into_iter().zip(requested).collect();
    assert_eq!(met, expected);
}

#[idempotent(name = "crashes.order", key = order, lease = "10m", skip(gateway))]
async fn place_order(gateway: &EffectLog, order: &str) -> Result<u32, Error> {
    charge(gateway, order).await
}

#[test]
fn l03_nested_calls_are_all_left_behind() {
    let points = CrashPoints::new().run(
        async || EffectLog::new(),
        async |_, gateway| place_order(gateway, "order-1").await,
        async |point, gateway, answer| {
            assert_eq!((answer, charges(gateway)), (Ok(7), 1), "{point}");
        },
    );
    for point in CLAIM_AND_ENDING {
        let times = points.iter().filter(|met| **met == point).count();
        assert_eq!(times, 2, "{point}");
    }
}

type Asked = (u32, oneshot::Sender<u32>);

/// A world with a task of its own, which must go on while processes die.
async fn doubling() -> mpsc::Sender<Asked> {
    let (ask, mut asked) = mpsc::channel::<Asked>(1);
    tokio::spawn(async move {
        while let Some((number, answer)) = asked.recv().await {
            let _gone = answer.send(2 * number);
        }
    });
    ask
}

#[test]
fn l03_a_world_goes_on_beside_the_processes() {
    let points = CrashPoints::new().run(
        doubling,
        async |idem, world| {
            let call = idem.call("crashes.double").key("k");
            let body = async |_| {
                let (answer, answered) = oneshot::channel();
                world.send((21, answer)).await.expect("the world is there");
                Ok::<_, Error>(answered.await.expect("the world answers"))
            };
            call.run(body).await
        },
        async |point, _, answer| assert_eq!(answer, Ok(42), "{point}"),
    );
    assert_eq!(points[..4], CLAIM_AND_ENDING);
}

/// A connection that says goodbye in a task, as pools give theirs back.
struct Connection;

impl Drop for Connection {
    fn drop(&mut self) {
        drop(tokio::spawn(async {}));
    }
}

#[test]
fn l03_a_world_goes_where_it_came_from() {
    let points = CrashPoints::new().run(
        async || Connection,
        async |idem, _| {
            let call = idem.call("crashes.connected").key("k");
            call.run(async |_| Ok::<_, Error>(7)).await
        },
        async |point, _, answer| assert_eq!(answer, Ok(7), "{point}"),
    );
    assert_eq!(points[..4], CLAIM_AND_ENDING);
}

#[test]
fn l03_a_process_dies_whose_bodies_are_held_for_ever() {
    let points = CrashPoints::new()
        .set_up(|builder| builder.max_run_time(Duration::MAX))
        .run(
            async || EffectLog::new(),
            async |_, gateway| charge(gateway, "order-1").await,
            async |point, _, answer| assert_eq!(answer, Ok(7), "{point}"),
        );
    assert_eq!(points.len(), 7);
}

/// The record is held in a thread that cannot be ended from outside.
#[test]
fn l03_a_call_that_a_thread_waits_for_is_left_behind() {
    let points = CrashPoints::new().run(
        async || EffectLog::new(),
        async |idem, gateway| {
            let (idem, gateway) = (idem.clone(), gateway.clone());
            let process = Handle::current();
            let waiting =
                spawn_blocking(move || process.block_on(idem.enter(charge(&gateway, "order-1"))));
            waiting.await.expect("it does not panic")
        },
        async |point, gateway, answer| {
            assert_eq!((answer, charges(gateway)), (Ok(7), 1), "{point}");
        },
    );
    assert_eq!(points[..4], CLAIM_AND_ENDING);
}

/// A thread finishes slow work that it has begun, even when its process dies.
#[test]
fn l03_what_a_thread_has_begun_is_done_as_a_whole() {
    let points = CrashPoints::new().run(
        async || EffectLog::new(),
        async |idem, gateway| {
            let call = idem.call("crashes.threaded").key("k");
            let body = async |attempt: Attempt| {
                if attempt.number() == 1 {
                    let gateway = gateway.clone();
                    let (begun, has_begun) = channel();
                    let slowly = spawn_blocking(move || {
                        let _told = begun.send(());
                        thread::sleep(Duration::from_millis(100));
                        gateway.record("k", 1, "charged").expect("memory takes it");
                    });
                    has_begun.recv().expect("it tells");
                    slowly.await.expect("it does not panic");
                }
                Ok::<_, Error>(7)
            };
            call.run(body).await
        },
        async |point, gateway, answer| {
            assert_eq!(answer, Ok(7), "{point}");
            if point == CrashPoint::Await(1) {
                assert_eq!(requests(gateway), 1, "{point}");
            }
        },
    );
    assert!(points.contains(&CrashPoint::Await(1)), "{points:?}");
}

#[test]
fn l03_what_runs_beside_a_call_does_not_learn_that_it_is_dead() {
    CrashPoints::new().run(
        async || EffectLog::new(),
        async |idem, gateway| {
            let call = charge(gateway, "order-1");
            let beside = async {
                let known = idem.lookup::<str, _>("crashes.charge", None, "order-1");
                if known.await.is_err() {
                    gateway
                        .record("order-1", 1, "by hand")
                        .expect("memory takes it");
                }
            };
            tokio::join!(call, beside).0
        },
        async |point, gateway, answer| {
            assert_eq!((answer, charges(gateway)), (Ok(7), 1), "{point}");
        },
    );
}

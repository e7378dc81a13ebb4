//! The same key with other arguments.

use super::*;

on_every_store![
    b14_mismatch_completed,
    b14_mismatch_while_running,
    b14_mismatch_in_every_state_that_binds,
    b16_mismatch_nested_field,
    b18_fingerprint_survives_completion,
    b19_mismatch_error_names_what_differs,
    b20_mismatch_after_release,
    mend_34_a_value_that_was_given_whole_is_called_by_its_word,
];

async fn b14_mismatch_completed(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(charge(&world, request(), 0)).await;
    let recorded = world.record().await;

    let other = Request {
        note: "other".into(),
        ..request()
    };
    let refused = owner.enter(charge(&world, other, 0)).await;

    assert!(is_reused(&refused), "{refused:?}");
    assert_eq!(world.runs("charge"), 1);
    assert_eq!(world.record().await, recorded);
    assert_eq!(owner.enter(charge(&world, request(), 0)).await, first);
    owner.assert_answers(&[
        CallOutcome::Executed,
        CallOutcome::KeyReused,
        CallOutcome::Replayed,
    ]);
}

#[idempotent(name = "fingerprints.held", key = key, skip(world, gate))]
async fn held(world: World, gate: Gate, key: &'static str, amount: u32) -> Result<u32, Error> {
    world.happened(key);
    gate.pass().await;
    Ok(amount)
}

async fn b14_mismatch_while_running(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let gate = Gate::new();
    let first = a.spawn(held(world.clone(), gate.clone(), "k", 1));
    gate.arrived(1).await;

    let refused = b.enter(held(world.clone(), gate.clone(), "k", 2)).await;

    assert!(is_reused(&refused), "{refused:?}");
    gate.open();
    assert_eq!(first.await.expect("it does not panic"), Ok(1));
    assert_eq!(world.runs("k"), 1);
}

async fn b14_mismatch_in_every_state_that_binds(world: World) {
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    let call = |name: &str, amount: u32| owner.call(name).key("k").arguments(&amount);
    let mismatch = async |name: &str| {
        let answer = call(name, 2).run(|_| async { Ok::<_, Error>(()) }).await;
        assert!(is_reused(&answer), "{name}: {answer:?}");
    };

    let failed = call("failed", 1)
        .run(|_| async { Err::<(), _>(Failure("no".into())) })
        .await;
    assert_eq!(failed, Err(Failure("no".into())));
    mismatch("failed").await;

    let uncertain = call("uncertain", 1)
        .uncertain_errors()
        .run(|_| async { Err::<(), _>(Error::AlreadyInstalled) })
        .await;
    assert_eq!(uncertain, Err(Error::AlreadyInstalled));
    mismatch("uncertain").await;

    let not_replayable = call("not replayable", 1)
        .run(|_| async { Ok::<_, Error>(Opaque) })
        .await;
    assert!(not_replayable.is_ok());
    mismatch("not replayable").await;

    // Dropped half-way: it stays bound until the next call takes over, and so it does when it is
    // parked.
    let gate = Gate::new();
    let stopped = tokio::spawn({
        let (call, gate) = (call("stopped", 1), gate.clone());
        async move {
            call.run(|_| async move {
                gate.pass().await;
                Ok::<_, Error>(())
            })
            .await
        }
    });
    gate.arrived(1).await;
    stopped.abort();
    assert!(stopped.await.is_err());
    owner.log.await_step(RecordChange::Stopped).await;
    mismatch("stopped").await;
    let parked = call("stopped", 1)
        .run(|_| async { Ok::<_, Error>(()) })
        .await;
    assert!(matches!(parked, Err(Error::Parked { .. })), "{parked:?}");
    mismatch("stopped").await;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Has no encoding.
#[derive(Debug)]
struct Opaque;

impl Serialize for Opaque {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("opaque"))
    }
}

impl<'de> Deserialize<'de> for Opaque {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("opaque"))
    }
}

async fn b16_mismatch_nested_field(world: World) {
    let owner = world.owner().await;
    let _ = owner.enter(charge(&world, request(), 0)).await;

    let mut tampered = request();
    tampered.amount.parts[1].1 = 4;
    let refused = owner.enter(charge(&world, tampered, 0)).await;

    assert!(is_reused(&refused), "{refused:?}");
}

async fn b18_fingerprint_survives_completion(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let fingerprint = |record: &Record| record.subject.fingerprint.clone();
    let gate = Gate::new();

    let first = a.spawn(held(world.clone(), gate.clone(), "k", 1));
    gate.arrived(1).await;
    let claimed = fingerprint(&*world.record().await);
    world.advance(Duration::from_secs(10)).await;
    a.log.await_step(RecordChange::Heartbeat).await;
    assert_eq!(fingerprint(&*world.record().await), claimed, "a heartbeat");
    a.die_in(first).await;
    world.advance(Duration::from_secs(30)).await;

    let second = b.spawn(held(world.clone(), gate.clone(), "k", 1));
    gate.arrived(2).await;
    assert_eq!(fingerprint(&*world.record().await), claimed, "a takeover");
    gate.open();
    assert_eq!(second.await.expect("it does not panic"), Ok(1));
    assert_eq!(fingerprint(&*world.record().await), claimed, "completion");
}

#[idempotent(name = "fingerprints.pay", key = order, skip(world))]
async fn pay(
    world: &World,
    order: u32,
    amount: u32,
    currency: &str,
    note: &str,
) -> Result<String, Error> {
    world.happened("pay");
    Ok(format!("{amount} {currency}"))
}

async fn b19_mismatch_error_names_what_differs(world: World) {
    let owner = world.owner().await;
    let _ = owner.enter(pay(&world, 1, 1_234, "EUR", "a")).await;

    let refused = owner.enter(pay(&world, 1, 5_678, "USD", "a")).await;

    let Err(error @ Error::KeyReused { .. }) = refused else {
        panic!("{refused:?}")
    };
    let Error::KeyReused { differing, .. } = &error else {
        unreachable!("it was matched above")
    };
    assert_eq!(differing, &["amount", "currency"]);
    let text = format!("{error} {error:?}");
    for value in ["1234", "5678", "EUR", "USD"] {
        assert!(!text.contains(value), "{text}");
    }
    // The stored outcome, for who asks.
    let status = owner.idem.lookup("fingerprints.pay", None::<&str>, &1);
    let status = status.await.expect("the store answers");
    let Status::Completed(kept) = status else {
        panic!("{status:?}")
    };
    assert_eq!(kept.decode::<String>().expect("it is text"), "1234 EUR");
}

#[idempotent(name = "fingerprints.released", key = key, on_error = release, skip(world, fails))]
async fn released(world: &World, key: &str, amount: u32, fails: bool) -> Result<u32, Error> {
    world.happened(key);
    if fails {
        return Err(Error::AlreadyInstalled);
    }
    Ok(amount)
}

async fn b20_mismatch_after_release(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(released(&world, "k", 1, true)).await;

    let second = owner.enter(released(&world, "k", 2, false)).await;

    assert_eq!((first, second), (Err(Error::AlreadyInstalled), Ok(2)));
    let third = owner.enter(released(&world, "k", 1, false)).await;
    assert!(matches!(third, Err(Error::KeyReused { .. })), "{third:?}");
}

async fn mend_34_a_value_that_was_given_whole_is_called_by_its_word(world: World) {
    let owner = world.owner().await;
    let call = async |amount: u32| {
        let call = owner.call("fingerprints.whole").key("k");
        call.arguments(&amount)
            .run(|_| async { Ok::<_, Error>(()) })
            .await
    };
    assert_eq!(call(1).await, Ok(()));
    let refused = call(2).await;
    assert!(
        matches!(&refused, Err(Error::KeyReused { differing, .. }) if differing == &["arguments"]),
        "{refused:?}"
    );
}

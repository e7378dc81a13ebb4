//! Secrets that must not show: keys, values, and texts that an application calls secret.

use super::*;

on_every_store![
    k13_no_plaintext_key,
    k14_redaction,
    k17_error_messages_hide_payload,
];

/// A text that must not show.
const SECRET: &str = "4929-0000-1111-2222";

async fn k13_no_plaintext_key(world: World) {
    let secret = FingerprintKey::new(*b"a secret of thirty-two bytes, ok").expect("long enough");
    let hidden = world
        .owner_with(|builder| builder.redact_keys().fingerprint_key(secret))
        .await;
    let plain = world.owner().await;
    let call = |owner: &Owner, name: &str| {
        owner
            .call(name)
            .key(SECRET)
            .scope(SECRET)
            .argument("card", SECRET)
            .run(|_| async { Ok::<_, Error>(()) })
    };

    assert_eq!(call(&hidden, "observed.hidden").await, Ok(()));
    assert_eq!(call(&hidden, "observed.hidden").await, Ok(()));
    let hidden_record = world.record().await;
    assert_eq!(call(&plain, "observed.hidden").await.map_err(drop), Err(()));
    assert_eq!(call(&plain, "observed.plain").await, Ok(()));

    assert!(hidden_record.subject.key.is_empty());
    assert!(hidden_record.subject.scope.is_empty());
    let records = world.records().await;
    let (_, plain_record) = records
        .iter()
        .find(|(_, record)| &*record.subject.operation == "observed.plain")
        .expect("it was recorded");
    assert_eq!(plain_record.subject.key, SECRET.as_bytes());
    let debug = format!("{plain_record:?}");
    let as_list = format!("{:?}", SECRET.as_bytes());
    assert!(
        !debug.contains(SECRET) && !debug.contains(&as_list),
        "{debug}"
    );
    assert_ne!(
        plain_record.subject.fingerprint.fingerprint(),
        hidden_record.subject.fingerprint.fingerprint(),
        "who has no secret cannot try arguments out"
    );
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Payment {
    last_digits: String,
    #[serde(skip)]
    card: String,
}

#[idempotent(name = "observed.redacted", key = order, skip(card))]
async fn redacted(order: u32, card: &str) -> Result<Payment, Error> {
    Ok(Payment {
        last_digits: card[card.len() - 4..].into(),
        card: card.into(),
    })
}

async fn k14_redaction(world: World) {
    let owner = world.owner().await;

    let (answers, said) = said_during(owner.enter(async {
        let first = redacted(1, SECRET).await;
        (first, redacted(1, "9999").await)
    }))
    .await;

    let kept = Payment {
        last_digits: "2222".into(),
        card: String::new(),
    };
    assert_eq!(answers, (Ok(kept.clone()), Ok(kept)));
    assert!(!said.contains(SECRET), "{said}");
    let record = world.record().await;
    let outcome = record.outcome.as_ref().expect("it is kept");
    assert_eq!(&outcome.bytes[..], br#"{"last_digits":"2222"}"#);
}

#[derive(Debug, Serialize)]
struct Wrong(String);

/// A value that can be written, and not be read again.
#[derive(Debug)]
struct Lossy;

impl Serialize for Lossy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wrong(SECRET.into()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(|_| Self)
    }
}

/// A value that cannot be written. The error of the try names the secret.
#[derive(Debug)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom(SECRET))
    }
}

impl<'de> Deserialize<'de> for Unwritable {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(|_| Self)
    }
}

async fn k17_error_messages_hide_payload(world: World) {
    let owner = world
        .owner_with(|builder| builder.max_takeovers(0).in_flight(InFlight::Reject))
        .await;
    let call = |name: &str| {
        owner
            .call(name)
            .key(SECRET)
            .scope(SECRET)
            .argument("card", SECRET)
    };
    let ok = |_| async { Ok::<_, Error>(SECRET.to_owned()) };

    let (errors, said) = said_during(async {
        let mut errors = Vec::new();
        assert!(call("observed.done").run(ok).await.is_ok());
        let reused = owner.call("observed.done").key(SECRET).scope(SECRET);
        errors.extend(reused.argument("card", "another").run(ok).await.err());
        let unreadable = call("observed.done").run(|_| async { Ok::<u32, Error>(0) });
        errors.extend(unreadable.await.err());

        assert!(
            call("observed.lossy")
                .run(|_| async { Ok::<_, Error>(Lossy) })
                .await
                .is_ok()
        );
        errors.extend(call("observed.lossy").run(ok).await.err());
        let unwritable = call("observed.unwritable").run(|_| async { Ok::<_, Error>(Unwritable) });
        assert!(unwritable.await.is_ok());

        let uncertain = || call("observed.uncertain").uncertain_errors();
        let fails = |_| async { Err::<(), _>(Error::AlreadyInstalled) };
        assert!(uncertain().run(fails).await.is_err());
        errors.extend(uncertain().run(fails).await.err());

        let gate = Gate::new();
        let running = tokio::spawn({
            let (call, gate) = (call("observed.running"), gate.clone());
            call.run(|_| async move {
                gate.pass().await;
                Ok::<_, Error>(())
            })
        });
        gate.arrived(1).await;
        errors.extend(call("observed.running").run(ok).await.err());
        running.abort();
        assert!(running.await.is_err());
        owner.log.await_step(RecordChange::Stopped).await;
        errors.extend(call("observed.running").run(ok).await.err());

        let recursive = call("observed.recursive").run(|_| call("observed.recursive").run(ok));
        errors.extend(recursive.await.err());
        let too_long = owner.call("observed.long").key(&SECRET.repeat(10_000));
        errors.extend(too_long.run(ok).await.err());
        owner.fails(StoreOperation::Claim, On::Next, StoreErrorKind::Denied);
        errors.extend(call("observed.denied").run(ok).await.err());
        errors
    })
    .await;

    let kinds = [
        "KeyReused",
        "Unreadable",
        "NotReplayable",
        "Uncertain",
        "InProgress",
        "Parked",
        "Recursive",
        "InvalidKey",
        "Store",
    ];
    assert_eq!(errors.len(), kinds.len(), "{errors:?}");
    for (error, kind) in errors.iter().zip(kinds) {
        let mut text = format!("{error:?}");
        assert!(text.starts_with(kind), "{text}");
        let mut source: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = source {
            text.push_str(&format!("\n{error}"));
            source = error.source();
        }
        assert!(!text.contains(SECRET), "{text}");
    }
    assert!(
        said.contains("observed.running"),
        "it says something: {said}"
    );
    assert!(!said.contains(SECRET), "{said}");
    let states = world.states().await;
    assert!(states.contains(&State::Parked), "{states:?}");
}

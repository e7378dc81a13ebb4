//! Keys of which a part is missing.

use super::*;

on_every_store![
    b09_missing_key_refused,
    b09_missing_key_runs_unprotected,
    b09_a_missing_part_is_a_missing_key,
    b09_a_missing_part_runs_unprotected,
    b09_a_missing_scope_is_refused,
    b09_an_old_key_that_is_missing_is_not_looked_up,
    b10_what_counts_as_missing,
];

#[idempotent(name = "keys.optional", key = key, skip(world))]
async fn optional(world: &World, key: Option<&str>) -> Result<(), Error> {
    world.happened("optional");
    Ok(())
}

async fn b09_missing_key_refused(world: World) {
    let owner = world.owner().await;

    let answer = owner.enter(optional(&world, None)).await;

    let Err(Error::InvalidKey { part, source, .. }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!((part, source), ("key", KeyError::Missing));
    assert_eq!(world.runs("optional"), 0);
    assert_eq!(owner.store.round_trips(), 0);
    assert_eq!(owner.log.answers(), [CallOutcome::Refused]);
    assert_eq!(owner.enter(optional(&world, Some("k"))).await, Ok(()));
}

#[idempotent(name = "keys.optional_run", key = key, on_missing_key = run, skip(world))]
async fn optional_run(world: &World, key: Option<&str>) -> Result<(), Error> {
    world.happened("optional");
    Ok(())
}

async fn b09_missing_key_runs_unprotected(world: World) {
    let owner = world.owner().await;

    for _ in 0..2 {
        assert_eq!(owner.enter(optional_run(&world, None)).await, Ok(()));
    }

    assert_eq!(world.runs("optional"), 2);
    assert_eq!(owner.store.round_trips(), 0);
    owner.assert_answers(&[CallOutcome::Unprotected, CallOutcome::Unprotected]);
    let (_, how) = owner
        .call("keys.optional_detailed")
        .key(&None::<u8>)
        .on_missing_key(OnMissingKey::Run)
        .run_detailed(|_| async { Ok::<_, Error>(()) })
        .await;
    assert_eq!(how, CallReport::Unprotected(UnprotectedReason::MissingKey));
}

#[derive(Serialize, KeyPart)]
struct Retry {
    tenant: &'static str,
    client_key: Option<&'static str>,
}

#[idempotent(name = "keys.of_tuple", key = (retry.tenant, retry.client_key), skip(world))]
async fn of_tuple(world: &World, retry: &Retry) -> Result<(), Error> {
    world.happened("part");
    Ok(())
}

#[idempotent(
    name = "keys.of_template",
    key = "{retry.tenant}/{retry.client_key}",
    skip(world)
)]
async fn of_template(world: &World, retry: &Retry) -> Result<(), Error> {
    world.happened("part");
    Ok(())
}

#[idempotent(name = "keys.of_struct", key = retry, skip(world))]
async fn of_struct(world: &World, retry: &Retry) -> Result<(), Error> {
    world.happened("part");
    Ok(())
}

/// Otherwise all calls of a tenant that bring no key of their own would be one.
async fn b09_a_missing_part_is_a_missing_key(world: World) {
    let owner = world.owner().await;
    let without = Retry {
        tenant: "t",
        client_key: None,
    };
    let answers = [
        owner.enter(of_tuple(&world, &without)).await,
        owner.enter(of_template(&world, &without)).await,
        owner.enter(of_struct(&world, &without)).await,
    ];
    for answer in answers {
        let Err(Error::InvalidKey { part, source, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!((part, source), ("key", KeyError::Missing));
    }
    assert_eq!(world.runs("part"), 0);
    assert_eq!(owner.store.round_trips(), 0);

    let with = Retry {
        client_key: Some("k"),
        ..without
    };
    for _ in 0..2 {
        assert_eq!(owner.enter(of_tuple(&world, &with)).await, Ok(()));
        assert_eq!(owner.enter(of_template(&world, &with)).await, Ok(()));
        assert_eq!(owner.enter(of_struct(&world, &with)).await, Ok(()));
    }
    assert_eq!(world.runs("part"), 3);
    assert_eq!(world.record_keys().await, ["t, k", "t, k", "t/k"]);
}

async fn b09_a_missing_part_runs_unprotected(world: World) {
    let owner = world
        .owner_with(|builder| builder.on_missing_key(OnMissingKey::Run))
        .await;
    let without = Retry {
        tenant: "t",
        client_key: None,
    };

    for _ in 0..2 {
        assert_eq!(owner.enter(of_tuple(&world, &without)).await, Ok(()));
        assert_eq!(owner.enter(of_struct(&world, &without)).await, Ok(()));
    }

    assert_eq!(world.runs("part"), 4);
    assert_eq!(owner.store.round_trips(), 0);
    assert_eq!(owner.log.answers(), [CallOutcome::Unprotected; 4]);
}

/// This holds for every `on_missing_key`: without its scope, a call would meet the records of no
/// particular tenant.
async fn b09_a_missing_scope_is_refused(world: World) {
    let owner = world
        .owner_with(|builder| builder.on_missing_key(OnMissingKey::Run))
        .await;
    macro_rules! with_scope {
        ($scope:expr) => {
            owner
                .call("keys.scope")
                .key("k")
                .scope(&$scope)
                .run(|_| async { Ok::<_, Error>(()) })
                .await
        };
    }

    for answer in [with_scope!(None::<u8>), with_scope!(("t", None::<u8>))] {
        let Err(Error::InvalidKey { part, source, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!((part, source), ("scope", KeyError::Missing));
        let told = source.to_string();
        assert!(told.ends_with("without a scope cannot"), "{told}");
    }
    assert_eq!(owner.store.round_trips(), 0);
}

/// No build has ever recorded anything under it.
async fn b09_an_old_key_that_is_missing_is_not_looked_up(world: World) {
    let owner = world.owner().await;

    let answer = owner
        .call("keys.moved")
        .key("k")
        .also_accept_key(&("t", None::<u8>))
        .run(|_| async { Ok::<_, Error>(()) })
        .await;

    assert_eq!(answer, Ok(()));
    assert_eq!(owner.store.calls(StoreOperation::Load), 0);
}

async fn b10_what_counts_as_missing(world: World) {
    let owner = world.owner().await;
    macro_rules! with_key {
        ($key:expr) => {
            owner
                .call("keys.values")
                .key(&$key)
                .run(|_| async { Ok::<_, Error>(()) })
                .await
        };
    }
    let refused = |answer: Result<(), Error>, why: KeyError| {
        assert!(
            matches!(&answer, Err(Error::InvalidKey { source, .. }) if *source == why),
            "{answer:?}"
        );
    };

    assert_eq!(with_key!(0), Ok(()));
    assert_eq!(with_key!(false), Ok(()));
    assert_eq!(with_key!("False"), Ok(()));
    assert_eq!(with_key!(text(&0)), Ok(()));
    assert_eq!(with_key!(Some(0)), Ok(()), "the same key as `0`");
    assert_eq!(
        world.records().await.len(),
        3,
        "`0` and its text read alike"
    );

    refused(with_key!(None::<u8>), KeyError::Missing);
    refused(with_key!((None::<u8>, None::<u8>)), KeyError::Missing);
    refused(with_key!((None::<u8>, "x")), KeyError::Missing);
    refused(with_key!(("x", (1, None::<u8>))), KeyError::Missing);
    refused(with_key!(""), KeyError::Empty);
    refused(with_key!(Some("")), KeyError::Empty);
}

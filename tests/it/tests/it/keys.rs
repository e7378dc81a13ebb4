//! The identity of a call: key, scope, name.

mod missing;
mod roll_out;
mod tenants;

use idempotent_runtime::{
    CallOutcome, CallReport, Error, KeyPart, OnMissingKey, UnprotectedReason, idempotent,
    key::{KeyError, LONGEST},
    testing::StoreOperation,
    text,
};
use serde::{Deserialize, Serialize};

use crate::harness::{Owner, World};

on_every_store![
    b03_unambiguous_framing,
    b05_several_arguments,
    b08_caller_given_key,
    b11_key_length,
    b11_any_character,
    b11_what_is_wrong_with_a_scope_is_not_told_of_the_key,
    b12_resolver_fails,
    b13_async_resolver,
    b25_rename_safe_identity,
    b25_two_functions_of_one_name_are_told_apart,
    arguments_that_are_all_missing_are_a_key,
    b26_old_name_is_accepted,
    b26_old_key_is_accepted,
];

#[idempotent(name = "keys.pair", key = (left, right), scope = tenant, skip(world))]
async fn pair(world: &World, tenant: &str, left: &str, right: &str) -> Result<String, Error> {
    world.happened("pair");
    Ok(format!("{tenant} {left} {right}"))
}

async fn b03_unambiguous_framing(world: World) {
    let owner = world.owner().await;
    let calls = [
        ("t", "a", "bc"),
        ("t", "ab", "c"),
        ("t", "abc", ""),
        ("t", "", "abc"),
        ("t", "a:b", "c"),
        ("t", "a", "b:c"),
        ("t", "a\0b", "c"),
        ("t", "a", "\0bc"),
        ("ta", "", "bc"),
        ("ta", "b", "c"),
    ];

    for (tenant, left, right) in calls {
        let answer = owner.enter(pair(&world, tenant, left, right)).await;
        assert_eq!(answer, Ok(format!("{tenant} {left} {right}")));
    }

    assert_eq!(world.runs("pair"), calls.len());
    assert_eq!(world.records().await.len(), calls.len());
}

#[idempotent(name = "keys.template", key = "{cart}:{seq}", skip(world))]
async fn template(world: &World, cart: &str, seq: u32) -> Result<u32, Error> {
    world.happened(cart);
    Ok(seq)
}

async fn b05_several_arguments(world: World) {
    let owner = world.owner().await;

    for seq in [1, 2, 1, 2] {
        assert_eq!(owner.enter(template(&world, "cart", seq)).await, Ok(seq));
    }

    assert_eq!(world.runs("cart"), 2);
    assert_eq!(world.record_keys().await, ["cart:1", "cart:2"]);
}

#[idempotent(name = "keys.given", key = order, scope = merchant, skip(world))]
async fn given(world: &World, merchant: &str, order: &str) -> Result<(), Error> {
    world.happened(order);
    Ok(())
}

async fn b08_caller_given_key(world: World) {
    let owner = world.owner().await;

    assert_eq!(owner.enter(given(&world, "m-7", "order 42")).await, Ok(()));

    let record = world.record().await;
    assert_eq!(record.subject.key, b"order 42");
    assert_eq!(record.subject.scope, b"m-7");
    assert_eq!(&*record.subject.operation, "keys.given");
}

async fn b11_key_length(world: World) {
    let owner = world.owner().await;
    let with_key = |key: String| {
        let call = owner.call("keys.length").key(&key);
        call.run(|_| async { Ok::<_, Error>(()) })
    };

    assert_eq!(with_key("k".repeat(LONGEST)).await, Ok(()));
    // Each character has two bytes, and bytes are counted.
    assert_eq!(with_key("é".repeat(LONGEST / 2)).await, Ok(()));
    assert_eq!(owner.store.round_trips(), 4);

    for too_long in ["k".repeat(LONGEST + 1), "é".repeat(LONGEST / 2 + 1)] {
        let answer = with_key(too_long).await;
        assert!(
            matches!(
                &answer,
                Err(Error::InvalidKey {
                    source: KeyError::TooLong { limit: LONGEST, .. },
                    ..
                })
            ),
            "{answer:?}"
        );
    }
    assert_eq!(owner.store.round_trips(), 4, "refused before storage");
}

async fn b11_what_is_wrong_with_a_scope_is_not_told_of_the_key(world: World) {
    let owner = world.owner().await;

    for scope in [String::new(), "s".repeat(LONGEST + 1)] {
        let call = owner.call("keys.length").key("k").scope(&scope);
        let answer = call.run(|_| async { Ok::<_, Error>(()) }).await;

        let Err(Error::InvalidKey { part, source, .. }) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(part, "scope");
        let told = source.to_string();
        assert!(!told.contains("the key"), "{told}");
    }
    assert_eq!(owner.store.round_trips(), 0);
}

async fn b11_any_character(world: World) {
    let owner = world.owner().await;
    let keys = ["\0", "\u{1}\r\n", "\u{1f4b8}", "\u{10ffff}", " ", "K", "k"];

    for _ in 0..2 {
        for key in keys {
            let call = owner.call("keys.characters").key(key);
            let answer = call.run(|_| async { Ok::<_, Error>(key.to_owned()) }).await;
            assert_eq!(answer, Ok(key.to_owned()));
        }
    }

    assert_eq!(world.records().await.len(), keys.len());
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
enum PayError {
    #[error("no order in the request")]
    NoOrder,
    #[error(transparent)]
    Idempotency(#[from] Error),
}

fn order_of(request: &str) -> Result<&str, PayError> {
    request.strip_prefix("order=").ok_or(PayError::NoOrder)
}

#[idempotent(name = "keys.resolved", key = order_of(request)?, skip(world))]
async fn resolved(world: &World, request: &str) -> Result<usize, PayError> {
    world.happened("resolved");
    Ok(world.runs("resolved"))
}

async fn b12_resolver_fails(world: World) {
    let owner = world.owner().await;

    let answer = owner.enter(resolved(&world, "nothing")).await;

    assert_eq!(answer, Err(PayError::NoOrder));
    assert_eq!(owner.store.round_trips(), 0);
    assert_eq!(world.runs("resolved"), 0);
    assert_eq!(owner.enter(resolved(&world, "order=1")).await, Ok(1));
    assert_eq!(owner.enter(resolved(&world, "order=1")).await, Ok(1));
}

async fn order_later(request: &str) -> Result<String, PayError> {
    tokio::task::yield_now().await;
    order_of(request).map(str::to_owned)
}

#[idempotent(name = "keys.awaited", key = order_later(request).await?, skip(world))]
async fn awaited(world: &World, request: &str) -> Result<usize, PayError> {
    world.happened("awaited");
    Ok(world.runs("awaited"))
}

async fn b13_async_resolver(world: World) {
    let owner = world.owner().await;

    assert_eq!(owner.enter(awaited(&world, "order=1")).await, Ok(1));
    assert_eq!(owner.enter(awaited(&world, "order=1")).await, Ok(1));
    assert_eq!(owner.enter(awaited(&world, "order=2")).await, Ok(2));
    assert_eq!(
        owner.enter(awaited(&world, "nothing")).await,
        Err(PayError::NoOrder)
    );

    assert_eq!(world.record_keys().await, ["1", "2"]);
}

mod before {
    use super::{Error, World, idempotent};

    #[idempotent(name = "keys.kept", key = order, skip(world))]
    pub(super) async fn charge(world: &World, order: &str) -> Result<String, Error> {
        world.happened(order);
        Ok("before".into())
    }

    #[idempotent(key = order, skip(world))]
    pub(super) async fn unnamed(world: &World, order: &str) -> Result<String, Error> {
        world.happened(order);
        Ok("before".into())
    }
}

mod after {
    use super::{Error, World, idempotent};

    #[idempotent(name = "keys.kept", key = order, skip(world))]
    pub(super) async fn charge_renamed(world: &World, order: &str) -> Result<String, Error> {
        world.happened(order);
        Ok("after".into())
    }

    #[idempotent(key = order, skip(world))]
    pub(super) async fn unnamed(world: &World, order: &str) -> Result<String, Error> {
        world.happened(order);
        Ok("after".into())
    }
}

fn operations(owner: &Owner) -> Vec<&'static str> {
    let operations = owner.idem.operations();
    let seen = operations.iter().filter(|operation| operation.is_seen);
    seen.map(|operation| operation.name).collect()
}

async fn b25_rename_safe_identity(world: World) {
    // These are two builds of one program.
    let (old, new) = (world.owner().await, world.owner().await);

    let first = old.enter(before::charge(&world, "named")).await;
    let second = new.enter(after::charge_renamed(&world, "named")).await;

    assert_eq!((&first, &second), (&Ok("before".into()), &first));
    assert_eq!(world.runs("named"), 1);

    let first = old.enter(before::unnamed(&world, "unnamed")).await;
    let second = new.enter(after::unnamed(&world, "unnamed")).await;

    assert_eq!(
        (first, second),
        (Ok("before".into()), Ok("after".into())),
        "without a name, moving a function makes it another one"
    );
    let (old, new) = (operations(&old), operations(&new));
    assert!(
        old.iter().any(|name| name.ends_with("before::unnamed")),
        "{old:?}"
    );
    assert!(
        new.iter().any(|name| name.ends_with("after::unnamed")),
        "{new:?}"
    );
}

async fn b25_two_functions_of_one_name_are_told_apart(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(before::charge(&world, "k")).await;
    assert_eq!(first, Ok("before".into()));
    let trips = owner.store.round_trips();

    for _ in 0..2 {
        let answer = owner.enter(after::charge_renamed(&world, "k")).await;
        assert!(
            matches!(answer, Err(Error::DuplicateOperation { .. })),
            "{answer:?}"
        );
    }

    assert_eq!(owner.store.round_trips(), trips, "refused before storage");
    assert_eq!(owner.enter(before::charge(&world, "k")).await, first);
    assert_eq!(world.runs("k"), 1);
}

#[idempotent(name = "keys.list", key_from_arguments, skip(world))]
async fn list(world: &World, filter: Option<u64>) -> Result<Option<u64>, Error> {
    world.happened("list");
    Ok(filter)
}

async fn arguments_that_are_all_missing_are_a_key(world: World) {
    let owner = world.owner().await;

    for filter in [None, Some(1), None, Some(1)] {
        assert_eq!(owner.enter(list(&world, filter)).await, Ok(filter));
    }

    assert_eq!(world.runs("list"), 2);
}

#[idempotent(name = "keys.old_name", key = order, skip(world))]
async fn old_name(world: &World, order: &str) -> Result<String, Error> {
    world.happened(order);
    Ok("old".into())
}

#[idempotent(name = "keys.new_name", key = order, also_accept = "keys.old_name", skip(world))]
async fn new_name(world: &World, order: &str) -> Result<String, Error> {
    world.happened(order);
    Ok("new".into())
}

async fn b26_old_name_is_accepted(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let first = old.enter(old_name(&world, "k")).await;

    assert_eq!(new.enter(new_name(&world, "k")).await, first);
    assert_eq!(new.enter(new_name(&world, "fresh")).await, Ok("new".into()));
    assert_eq!(new.enter(new_name(&world, "fresh")).await, Ok("new".into()));

    assert_eq!((world.runs("k"), world.runs("fresh")), (1, 1));
}

#[idempotent(name = "keys.composed", key = "{cart}:{seq}", fingerprint = (cart, seq))]
async fn old_key(world: &World, cart: &str, seq: u32) -> Result<String, Error> {
    world.happened(cart);
    Ok("old".into())
}

#[idempotent(name = "keys.composed", key = "{shop}/{cart}/{seq}", also_accept = "{cart}:{seq}", fingerprint = (cart, seq))]
async fn new_key(world: &World, shop: &str, cart: &str, seq: u32) -> Result<String, Error> {
    world.happened(cart);
    Ok("new".into())
}

async fn b26_old_key_is_accepted(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let first = old.enter(old_key(&world, "cart", 1)).await;

    assert_eq!(new.enter(new_key(&world, "s", "cart", 1)).await, first);
    assert_eq!(world.runs("cart"), 1);

    for _ in 0..2 {
        let answer = new.enter(new_key(&world, "s", "fresh", 1)).await;
        assert_eq!(answer, Ok("new".into()));
    }
    assert_eq!(world.runs("fresh"), 1);
    assert_eq!(world.record_keys().await, ["cart:1", "s/fresh/1"]);
}

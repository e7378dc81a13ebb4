//! Changes of arguments, fingerprints, keys and scopes.

use idempotent_runtime::{Builder, FingerprintKey, idempotent};

use super::*;

on_every_store![
    arguments_that_move_are_wider_or_new_and_none_are_the_same,
    arguments_that_are_new_gone_renamed_or_skipped_are_refused_in_both_builds,
    a_changed_fingerprint_key_is_refused_in_both_builds,
    arguments_that_are_the_key_run_again_when_they_change,
    a_changed_key_runs_again_unless_also_accept_says_the_old_one,
    a_new_scope_runs_again_unless_it_is_said_in_the_key,
    hidden_keys_change_nothing_for_calls,
];

fn is_reused(answer: &Result<bool, Error>, names: &[&str]) -> bool {
    matches!(answer, Err(Error::KeyReused { differing, .. }) if differing == names)
}

async fn arguments_that_move_are_wider_or_new_and_none_are_the_same(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let before = charge(&old)
        .argument("order", "o-1")
        .argument("cents", &5_u32);
    assert_eq!(runs(before).await, Ok(true));

    let after = charge(&new)
        .argument("cents", &5_i64)
        .argument("order", "o-1");
    assert_eq!(
        runs(after.argument("note", &None::<String>)).await,
        Ok(false)
    );
}

async fn arguments_that_are_new_gone_renamed_or_skipped_are_refused_in_both_builds(world: World) {
    type Change = fn(CallBuilder<Recorded, Whole>) -> CallBuilder<Recorded, Whole>;
    let before: Change = |call| call.argument("order", "o-1").argument("cents", &5);
    let changes: [(&str, Change, &[&str]); 5] = [
        (
            "new",
            |call| {
                call.argument("order", "o-1")
                    .argument("cents", &5)
                    .argument("note", "n")
            },
            &["note"],
        ),
        ("gone", |call| call.argument("order", "o-1"), &["cents"]),
        (
            "renamed",
            |call| call.argument("order_id", "o-1").argument("cents", &5),
            &["order", "order_id"],
        ),
        (
            "of another type",
            |call| call.argument("order", "o-1").argument("cents", "5"),
            &["cents"],
        ),
        (
            "a fingerprint",
            |call| call.arguments(&("o-1", 5)),
            &["arguments", "cents", "order"],
        ),
    ];
    for (key, after, differing) in changes {
        let (old, new) = (world.owner().await, world.owner().await);
        let call = |owner: &Owner, form: Change| form(owner.call("changes.arguments").key(key));
        let gate = Gate::new();
        let held = holds(call(&old, before), &gate);
        gate.arrived(1).await;

        let meanwhile = runs(call(&new, after)).await;
        assert!(is_reused(&meanwhile, differing), "{key}: {meanwhile:?}");
        gate.open();
        assert_eq!(held.await.expect("no panic"), Ok(()));
        let finished = runs(call(&new, after)).await;
        assert!(is_reused(&finished, differing), "{key}: {finished:?}");

        let other = |owner: &Owner, form: Change| form(owner.call("changes.rolled_back").key(key));
        assert_eq!(runs(other(&new, after)).await, Ok(true));
        let rolled_back = runs(other(&old, before)).await;
        // The older build does not know how the newer one's value was given.
        let differing = differing.iter().map(|name| match *name {
            "arguments" => "fingerprint",
            name => name,
        });
        let mut differing: Vec<_> = differing.collect();
        differing.sort_unstable();
        assert!(
            is_reused(&rolled_back, &differing),
            "{key}: {rolled_back:?}"
        );
    }
}

fn secret(byte: u8) -> FingerprintKey {
    FingerprintKey::new([byte; 32]).expect("it is long enough")
}

async fn a_changed_fingerprint_key_is_refused_in_both_builds(world: World) {
    let keyed = async |byte| {
        world
            .owner_with(|builder| builder.fingerprint_key(secret(byte)))
            .await
    };
    let builds = [world.owner().await, keyed(1).await, keyed(2).await];
    let call = |owner: &Owner, key: usize| {
        runs(owner.call("changes.secret").key(&key).argument("cents", &5))
    };
    for (first, old) in builds.iter().enumerate() {
        assert_eq!(call(old, first).await, Ok(true));
        for (second, new) in builds
            .iter()
            .enumerate()
            .filter(|(second, _)| *second != first)
        {
            let answer = call(new, first).await;
            assert!(
                is_reused(&answer, &["cents"]),
                "{first}, {second}: {answer:?}"
            );
        }
        assert_eq!(call(old, first).await, Ok(false), "rolled back");
    }
}

mod before {
    use super::{Error, World, idempotent};

    #[idempotent(name = "changes.from_arguments", key_from_arguments, skip(world))]
    pub(super) async fn charge(world: &World, order: &str) -> Result<(), Error> {
        world.happened("from arguments");
        let _ = order;
        Ok(())
    }
}

mod after {
    use super::{Error, World, idempotent};

    #[idempotent(name = "changes.from_arguments", key_from_arguments, skip(world))]
    pub(super) async fn charge(world: &World, order_id: &str) -> Result<(), Error> {
        world.happened("from arguments");
        let _ = order_id;
        Ok(())
    }
}

async fn arguments_that_are_the_key_run_again_when_they_change(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let keyed = world
        .owner_with(|builder| builder.fingerprint_key(secret(1)))
        .await;

    assert_eq!(old.enter(before::charge(&world, "o-1")).await, Ok(()));
    assert_eq!(new.enter(after::charge(&world, "o-1")).await, Ok(()));
    assert_eq!(keyed.enter(before::charge(&world, "o-1")).await, Ok(()));

    assert_eq!(world.runs("from arguments"), 3);
}

async fn a_changed_key_runs_again_unless_also_accept_says_the_old_one(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let call = |owner: &Owner| owner.call("changes.key");
    assert_eq!(runs(call(&old).key("o-1")).await, Ok(true));

    let after = || call(&new).key(&("shop", "o-1"));
    assert_eq!(runs(after().also_accept_key("o-1")).await, Ok(false));
    assert_eq!(runs(after()).await, Ok(true));
}

async fn a_new_scope_runs_again_unless_it_is_said_in_the_key(world: World) {
    let (old, new) = (world.owner().await, world.owner().await);
    let call = |owner: &Owner| owner.call("changes.scope");
    assert_eq!(runs(call(&old).key("o-1")).await, Ok(true));

    let scoped = call(&new).key("o-1").scope("tenant").also_accept_key("o-1");
    assert_eq!(runs(scoped).await, Ok(true));
    let keyed = call(&new).key(&("tenant", "o-1")).also_accept_key("o-1");
    assert_eq!(runs(keyed).await, Ok(false));
}

async fn hidden_keys_change_nothing_for_calls(world: World) {
    let (old, new) = (
        world.owner().await,
        world.owner_with(Builder::redact_keys).await,
    );
    for (key, [first, second]) in [("shown", [&old, &new]), ("hidden", [&new, &old])] {
        let call = |owner: &Owner| runs(owner.call("changes.hidden").key(key));
        assert_eq!(call(first).await, Ok(true));
        assert_eq!(call(second).await, Ok(false));
    }
}

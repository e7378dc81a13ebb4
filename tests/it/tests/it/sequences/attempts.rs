//! The body of each number hands keys of its own downstream.

use std::{collections::HashSet, time::Duration};

use idempotent_runtime::Attempt;

use super::{ApplyError, account, begin};
use crate::harness::World;

on_every_store![each_number_has_keys_of_its_own_and_keeps_them_over_a_takeover];

async fn each_number_has_keys_of_its_own_and_keeps_them_over_a_takeover(world: World) {
    let owner = world.owner().await;
    let keys = |attempt: &Attempt| (attempt.child_key("gateway"), attempt.child_id().to_string());
    let mut seen = HashSet::new();
    let mut token = None;
    for number in 1..=3 {
        let failed = std::sync::Mutex::new(None);
        let call = account(&owner).number(number).arguments(&(number * 10));
        let refused = call.run(async |attempt| {
            *failed.lock().expect("nobody panics") = Some(keys(&attempt));
            Err::<u64, _>(ApplyError::Refused)
        });
        assert!(refused.await.is_err());
        let dead = world.owner().await;
        let (_gate, task) = begin(&dead, &account(&dead), number).await;
        dead.die_in(task).await;
        world.advance(Duration::from_secs(31)).await;

        let call = account(&owner).number(number).arguments(&(number * 10));
        let applied = call.run(async |attempt| {
            let own = keys(&attempt);
            assert_eq!(failed.lock().expect("nobody panics").as_ref(), Some(&own));
            assert!(seen.insert(own), "each number has its own");
            assert!(attempt.is_takeover());
            assert!(attempt.fencing_token() > token, "it grows with every claim");
            token = attempt.fencing_token();
            Ok::<u64, ApplyError>(number)
        });
        let applied = applied.await.expect("it is the next one");
        assert_eq!(applied.into_value(), Some(number));
    }
}

//! Calls whose outcome this process has seen: it asks for that one again before it claims.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency,
    identity::RecordId,
    record::{Draft, FencingToken, Holder, Moment, RawOutcome, State, TokenRule, Version},
    store::Swap,
    testing::{Proxy, conformance::StoreUnderTest},
};

use super::{
    Server,
    costs::{charge, two_processes},
    on_every_server,
};
use crate::harness::{applied, claim, completion, heartbeat};

on_every_server![
    a_first_call_costs_a_look_more_where_the_outcome_is_gone,
    an_outcome_in_the_place_of_a_seen_one_is_replayed,
    what_is_known_of_a_record_is_what_stands,
    what_was_written_over_a_seen_outcome_is_what_is_given,
];
on_every_server! { @on postgres_behind_a_proxy (crate::servers::Postgres::behind_proxy) [what_is_known_of_a_record_is_what_stands] }
on_every_server! { @on postgres_alone (crate::servers::Postgres::new) [a_replay_sends_less_than_a_claim] }
on_every_server! { @on redis_alone (crate::servers::Redis::new) [a_replay_sends_less_than_a_claim] }

/// It asks for the outcome. Another process sends a whole claim, and is refused.
async fn a_replay_sends_less_than_a_claim<S: Server>(server: S) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let (idem, elsewhere) = two_processes(&server, &proxy).await;
    charge(&idem, "k").await.expect("an answer");
    let mut sent = Vec::new();
    // An outcome that was replayed once has been seen, too.
    for idem in [&idem, &elsewhere, &elsewhere] {
        let before = proxy.request_bytes();
        charge(idem, "k").await.expect("an answer");
        sent.push(proxy.request_bytes() - before);
    }

    let [seen, claimed, seen_since] = *sent else {
        unreachable!("three calls were made")
    };
    assert!(2 * seen < claimed, "{seen} of {claimed} bytes");
    assert!(2 * seen_since < claimed, "{seen_since} of {claimed} bytes");
}

/// If it asks for an outcome that is gone meanwhile, it claims a round trip later.
async fn a_first_call_costs_a_look_more_where_the_outcome_is_gone<S: Server>(server: S) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let (idem, elsewhere) = two_processes(&server, &proxy).await;
    let mut cost = Vec::new();
    for (key, second) in [("k", &idem), ("l", &elsewhere)] {
        charge(&idem, key).await.expect("an answer");
        forgotten(&server).await;
        let before = proxy.round_trips();
        charge(second, key).await.expect("an answer");
        cost.push(proxy.round_trips() - before);
        let before = proxy.round_trips();
        charge(second, key).await.expect("an answer");
        assert_eq!(proxy.round_trips() - before, 1, "a replay");
    }

    let (first, _) = server.round_trips();
    assert_eq!(cost, [first + 1, first]);
}

/// The knowledge of this process about a record counts only for as long as the store says so.
async fn an_outcome_in_the_place_of_a_seen_one_is_replayed<S: Server>(server: S) {
    let process = async || Idempotency::new(server.at(server.address(), 1).await);
    let (idem, elsewhere) = (process().await, process().await);
    let draw = async |idem: &Idempotency, of: &str, number: u32| {
        let call = idem.call("draw").key("k").arguments(&of);
        call.run(|_| async move { Ok(number) }).await
    };
    assert_eq!(draw(&idem, "one urn", 1).await, Ok(1));
    assert_eq!(draw(&idem, "one urn", 2).await, Ok(1), "it is seen, too");
    forgotten(&server).await;

    assert_eq!(draw(&elsewhere, "another urn", 3).await, Ok(3));

    assert_eq!(draw(&idem, "another urn", 4).await, Ok(3));
    let reused = draw(&idem, "one urn", 5).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
    assert_eq!(draw(&idem, "another urn", 4).await, Ok(3));
}

/// After every history that was written here, a refusal shows the record that another process sees.
async fn what_is_known_of_a_record_is_what_stands(server: impl StoreUnderTest) {
    let (here, elsewhere) = (server.store().await, server.store().await);
    for (number, written) in (0_u8..).zip(histories()) {
        let id = RecordId::from_bytes([number; 32]);
        let mut seen = None;
        for draft in written {
            let swap = here.swap(&id, seen, &draft).await.expect("an answer");
            let Swap::Applied(stamp) = swap else {
                panic!("it was refused in history {number}: {swap:?}")
            };
            seen = Some(stamp.version);
        }

        let stands = elsewhere.load(&id).await.expect("an answer").record;
        let swap = here.swap(&id, None, &claim()).await.expect("an answer");
        let Swap::Refused(refused) = swap else {
            panic!("it was written over in history {number}: {swap:?}")
        };
        assert_eq!(refused.record, stands, "history {number}");
    }
}

/// This holds also if only the version tells that it is another one.
async fn what_was_written_over_a_seen_outcome_is_what_is_given(server: impl StoreUnderTest) {
    let (here, elsewhere) = (server.store().await, server.store().await);
    let id = RecordId::from_bytes([1; 32]);
    let first = claim();
    let done = completion(&first, b"1".to_vec());
    let over = Draft {
        version: Version::random(),
        lease: Moment::Keep,
        expires: Moment::Keep,
        outcome: Some(RawOutcome::value("2")),
        ..done.clone()
    };
    for (store, seen, draft) in [
        (&here, None, &first),
        (&here, Some(first.version), &done),
        (&elsewhere, Some(done.version), &over),
    ] {
        applied(store, &id, seen, draft).await;
    }

    let swap = here.swap(&id, None, &claim()).await.expect("an answer");

    let Swap::Refused(refused) = swap else {
        panic!("it was written over: {swap:?}")
    };
    let given = refused.record.expect("it is shown what stands");
    assert_eq!(
        (given.version, &given.outcome),
        (over.version, &over.outcome)
    );
}

/// Ways of a record to its outcome.
fn histories() -> Vec<Vec<Draft>> {
    let first = claim();
    let done = completion(&first, b"receipt".to_vec());
    let kept = Draft {
        lease: Moment::Keep,
        expires: Moment::Keep,
        holder: Holder {
            label: "h".repeat(300).into(),
            trace_parent: Some("".into()),
        },
        outcome: Some(RawOutcome::not_replayable().with_schema(u32::MAX)),
        ..done.clone()
    };
    let for_ever = Draft {
        lease: Moment::In(Duration::MAX),
        expires: Moment::In(Duration::MAX),
        outcome: Some(RawOutcome::error("").with_schema(7)),
        ..done.clone()
    };
    let without = Draft {
        outcome: None,
        ..done.clone()
    };
    let at_once = Draft {
        subject: first.subject.clone(),
        token: TokenRule::Keep,
        lease: Moment::Keep,
        ..done.clone()
    };
    let high = FencingToken::from_u64(u64::MAX / 4);
    let takeover = Draft {
        token: TokenRule::Above(high),
        attempt: u32::MAX,
        ..heartbeat(&first)
    };
    let released = Draft {
        state: State::Released,
        outcome: None,
        ..done.clone()
    };
    let again = Draft {
        version: Version::random(),
        ..first.clone()
    };
    let parked = Draft {
        version: Version::random(),
        state: State::Parked,
        outcome: None,
        ..done.clone()
    };
    let settled = Draft {
        version: Version::random(),
        keep: Duration::from_secs(60),
        ..done.clone()
    };
    vec![
        vec![first.clone(), done.clone()],
        vec![first.clone(), kept],
        vec![first.clone(), for_ever],
        vec![first.clone(), without],
        vec![at_once],
        vec![first.clone(), takeover, done.clone()],
        vec![first.clone(), released, again, settled.clone()],
        vec![first, parked, settled],
    ]
}

/// Lets all records expire. Another process deletes them.
async fn forgotten(server: &impl Server) {
    server.advance(Duration::from_secs(48 * 3600)).await;
    let store = server.at(server.address(), 1).await;
    let purged = store.purge(100, Duration::ZERO).await;
    purged.expect("a purge is answered");
    assert_eq!(store.scan(None, 100).await, Ok(Vec::new()));
}

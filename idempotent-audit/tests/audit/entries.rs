//! Each change of a record leaves the entry that says what happened.

use idempotent_runtime::{Error, InFlight, outbox::Message, step, testing::Gate};

use crate::harness::{Place, Shop, hash, shows};

on_every_database![
    a_call_leaves_two_entries_and_its_replay_none,
    an_entry_says_who_and_what_and_never_the_key,
    a_takeover_is_told_from_a_call,
    an_error_that_releases_leaves_its_end,
    heartbeats_and_waiting_calls_leave_none,
    an_act_of_an_operator_names_the_person,
    a_deleted_record_says_whether_it_could_be_forgotten,
    a_change_by_hand_leaves_an_entry,
    a_call_of_a_transaction_is_rolled_back_with_its_entry,
    a_stream_leaves_its_numbers,
    a_step_leaves_its_entries,
    an_outbox_leaves_its_claims_and_acts,
    outcomes_are_kept_where_that_is_asked_for,
];

const RUNNING: Option<i64> = Some(1);
const DONE: Option<i64> = Some(2);
const RELEASED: Option<i64> = Some(3);
const UNCERTAIN: Option<i64> = Some(4);

async fn pay<DB: Place>(shop: &Shop<DB>, key: &str) -> Result<u64, Error> {
    let call = shop
        .idem
        .call("payments.charge")
        .key(key)
        .arguments(&"secret-argument");
    call.scope("secret-scope")
        .run(async |_| Ok::<_, Error>(7_u64))
        .await
}

async fn a_call_leaves_two_entries_and_its_replay_none<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    for _ in 0..3 {
        assert_eq!(pay(&shop, "k").await.ok(), Some(7));
    }
    shop.expect(
        "record",
        &[("call", None, RUNNING), ("call", RUNNING, DONE)],
    )
    .await;
}

async fn an_entry_says_who_and_what_and_never_the_key<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    pay(&shop, "secret-key").await.expect("a call");
    let entries = shop.entries().await;
    let [begun, ended] = &entries[..] else {
        panic!("{entries:?}")
    };
    assert!(begun.number < ended.number && begun.written <= ended.written);
    let is_now = begun.written.abs_diff(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time")
            .as_micros()
            .try_into()
            .expect("a number"),
    );
    assert!(is_now < 60_000_000, "{is_now}");
    assert_eq!(begun.operation.as_deref(), Some("payments.charge"));
    assert_eq!(
        (begun.attempt, begun.holder.as_deref()),
        (Some(1), Some("till-3"))
    );
    assert!(begun.token.is_some() && begun.token == ended.token);
    assert_eq!(begun.record.as_ref().map(Vec::len), Some(32));
    let user = begun.db_user.as_deref().map(|user| user.split('@').next());
    assert_eq!(user.flatten(), (!DB::IS_SQLITE).then_some("idempotent"));
    assert_eq!((begun.outcome_kind, &begun.outcome_hash), (None, &None));
    assert_eq!(
        (ended.outcome_kind, ended.outcome_hash.clone()),
        (Some(1), hash::<DB>(b"7"))
    );
    assert!(!shows(&entries).contains("secret"), "{entries:?}");
}

async fn a_takeover_is_told_from_a_call<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let gate = Gate::new();
    let (its, idem) = (gate.clone(), shop.idem.clone());
    let dropped = tokio::spawn(async move {
        let call = idem
            .call("payments.charge")
            .key("k")
            .arguments(&"secret-argument");
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(1_u64)
        };
        call.scope("secret-scope").run(body).await
    });
    gate.arrived(1).await;
    dropped.abort();
    let _ = dropped.await;
    assert_eq!(pay(&shop, "k").await.ok(), Some(7));
    let taken_over = ("takeover", RUNNING, RUNNING);
    shop.expect(
        "record",
        &[("call", None, RUNNING), taken_over, ("call", RUNNING, DONE)],
    )
    .await;
    let attempts: Vec<_> = shop
        .entries()
        .await
        .iter()
        .map(|entry| entry.attempt)
        .collect();
    assert_eq!(attempts, [Some(1), Some(2), Some(2)]);
}

async fn an_error_that_releases_leaves_its_end<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let call = shop.idem.call("payments.charge").key("k").release_errors();
    let ended = call
        .run(async |_| Err::<u64, _>(Error::InvalidPolicy("no")))
        .await;
    assert!(ended.is_err());
    shop.expect(
        "record",
        &[("call", None, RUNNING), ("call", RUNNING, RELEASED)],
    )
    .await;
}

async fn heartbeats_and_waiting_calls_leave_none<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let gate = Gate::new();
    let call = |lease: &str| {
        shop.idem
            .call("payments.charge")
            .key("k")
            .lease(lease.to_owned())
    };
    let its = gate.clone();
    let first = call("3s");
    let first = tokio::spawn(async move {
        let body = async |_| {
            its.pass().await;
            Ok::<_, Error>(1_u64)
        };
        first.run(body).await
    });
    gate.arrived(1).await;
    let waiting = call("3s").in_flight(InFlight::Wait(std::time::Duration::from_millis(1_800)));
    let refused = waiting.run(async |_| Ok::<_, Error>(2_u64)).await;
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
    let version = "SELECT count(*) FROM {p}records WHERE lease_end > created + 3400000";
    let beaten = shop.by_hand(version).await.expect("a record");
    assert_eq!(
        idempotent_runtime::__audit::Row::number(&beaten[0], 0).ok(),
        Some(Some(1))
    );
    gate.open();
    assert_eq!(first.await.expect("it ends").ok(), Some(1));
    shop.expect(
        "record",
        &[("call", None, RUNNING), ("call", RUNNING, DONE)],
    )
    .await;
}

async fn an_act_of_an_operator_names_the_person<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let call = shop
        .idem
        .call("payments.charge")
        .key("k")
        .uncertain_errors();
    let left = call
        .run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")))
        .await;
    assert!(left.is_err());
    let settle = shop
        .idem
        .settle("payments.charge", None::<&str>, "k")
        .expect("a key");
    let settled = settle
        .by("anna")
        .because("row 7 of the dashboard")
        .with_value(&9_u64)
        .await;
    settled.expect("it is uncertain");
    shop.expect(
        "record",
        &[
            ("call", None, RUNNING),
            ("call", RUNNING, UNCERTAIN),
            ("operator", UNCERTAIN, DONE),
        ],
    )
    .await;
    let entries = shop.entries().await;
    assert_eq!(entries[1].note_by, None);
    assert_eq!(entries[2].note_by.as_deref(), Some("anna"));
    assert_eq!(entries[2].note.as_deref(), Some("row 7 of the dashboard"));
    assert_eq!(entries[2].outcome_hash, hash::<DB>(b"9"));
}

async fn a_deleted_record_says_whether_it_could_be_forgotten<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let call = shop.idem.call("payments.charge").key("old").ttl("1ms");
    call.run(async |_| Ok::<_, Error>(7_u64))
        .await
        .expect("a call");
    pay(&shop, "young").await.expect("a call");
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    assert_eq!(shop.idem.purge().await.ok(), Some(1));
    shop.done_by_hand("DELETE FROM {p}records").await;
    let entries = shop.entries().await;
    let deleted: Vec<_> = entries[4..]
        .iter()
        .map(|it| (it.kind.as_str(), it.forgettable))
        .collect();
    assert_eq!(deleted, [("deleted", Some(1)), ("deleted", Some(0))]);
    assert_eq!(entries[4].states, (DONE, None));
    assert_eq!(entries[5].outcome_hash, hash::<DB>(b"7"));
}

async fn a_change_by_hand_leaves_an_entry<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    pay(&shop, "k").await.expect("a call");
    let other = "UPDATE {p}records SET outcome = ";
    shop.done_by_hand(&format!("{other}{}", DB::bytes(b"8")))
        .await;
    for other in [
        "state = 3, expires = 0",
        "expires = 1, holder = 'somebody'",
        "outcome_kind = 3",
        "outcome_schema = 7",
        "operation = 'other'",
    ] {
        shop.done_by_hand(&format!("UPDATE {{p}}records SET {other}"))
            .await;
    }
    shop.expect(
        "record",
        &[
            ("call", None, RUNNING),
            ("call", RUNNING, DONE),
            ("rewritten", DONE, DONE),
            ("call", DONE, RELEASED),
            ("rewritten", RELEASED, RELEASED),
            ("rewritten", RELEASED, RELEASED),
            ("call", RELEASED, RELEASED),
        ],
    )
    .await;
    let entries = shop.entries().await;
    assert_eq!(entries[2].hash_before, hash::<DB>(b"7"));
    assert_eq!(entries[2].outcome_hash, hash::<DB>(b"8"));
}

async fn a_call_of_a_transaction_is_rolled_back_with_its_entry<DB: Place>(shop: Shop<DB>)
where
    DB::Connection: idempotent_runtime::store::SqlConnection,
{
    let shop = shop.audited().await;
    let place = async |key: &str, stands: bool| -> Result<(), Error> {
        let mut transaction = shop.pool.begin().await.expect("a transaction");
        let call = shop.idem.call("orders.place").key(key);
        let staged = call
            .run_in(&mut *transaction, async |_| Ok::<_, Error>(7_u64))
            .await;
        match stands {
            true => {
                staged?;
                transaction.commit().await.expect("it stands");
                Ok(())
            }
            false => {
                transaction.rollback().await.expect("it ends");
                Ok(())
            }
        }
    };
    place("rolled back", false).await.expect("it ends");
    shop.expect("record", &[]).await;
    place("committed", true).await.expect("it ends");
    let told = shop.told("record").await;
    assert_eq!(
        told.last().map(|it| (it.0.as_str(), it.2)),
        Some(("call", DONE)),
        "{told:?}"
    );
}

async fn a_stream_leaves_its_numbers<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let account = shop.idem.sequence("accounts", "account-7").first(1);
    for number in [1, 2] {
        let applied = account
            .clone()
            .number(number)
            .run(async |_| Ok::<_, Error>(number))
            .await;
        assert!(applied.is_ok(), "the next number");
    }
    let entries = shop.entries().await;
    let numbers: Vec<_> = entries
        .iter()
        .map(|entry| (entry.stream, entry.states.1))
        .collect();
    let expected = [
        (Some(1), RUNNING),
        (Some(1), DONE),
        (Some(2), RUNNING),
        (Some(2), DONE),
    ];
    assert_eq!(numbers, expected);
}

async fn a_step_leaves_its_entries<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let call = shop.idem.call("trip.book").key("k");
    let body = async |_| step("hotel", async |_| Ok::<_, Error>(3_u64)).run().await;
    call.run(body).await.expect("a call");
    shop.expect("step", &[("call", None, DONE)]).await;
    let entries = shop.entries().await;
    let of_step = entries
        .iter()
        .find(|entry| entry.source == "step")
        .expect("one");
    assert_eq!(of_step.label.as_deref(), Some("hotel"));
    assert_eq!(of_step.step.as_ref().map(Vec::len), Some(32));
    assert_eq!(of_step.record, entries[0].record);
    assert_eq!(of_step.outcome_hash, hash::<DB>(b"3"));
}

async fn an_outbox_leaves_its_claims_and_acts<DB: Place>(shop: Shop<DB>) {
    let outbox = shop.outbox().await;
    let shop = shop.audited().await;
    let _ = (outbox, Message::new("orders.placed", &7));
    let insert = "INSERT INTO {p}outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since) VALUES (<key>, 5, 0, 1, 0, 0)";
    shop.done_by_hand(&insert.replace("<key>", &DB::bytes(b"secret-key")))
        .await;
    shop.done_by_hand("UPDATE {p}outbox_claims SET lease_end = 1")
        .await;
    shop.done_by_hand("UPDATE {p}outbox_claims SET blocked_since = 1")
        .await;
    shop.done_by_hand("DELETE FROM {p}outbox_claims").await;
    shop.expect(
        "claim",
        &[
            ("call", None, Some(1)),
            ("call", Some(1), Some(2)),
            ("deleted", Some(2), None),
        ],
    )
    .await;
    let act = "INSERT INTO {p}outbox_acts (message_key, acted, act, person, reason) VALUES (<key>, 1, <act>, <who>, <why>)";
    let act = act
        .replace("<key>", &DB::bytes(b"k"))
        .replace("<act>", &DB::bytes(b"resumed"));
    let act = act
        .replace("<who>", &DB::bytes(b"anna"))
        .replace("<why>", &DB::bytes(b"row 7"));
    shop.done_by_hand(&act).await;
    let entries = shop.entries().await;
    assert_eq!(entries[0].record, hash::<DB>(b"secret-key"));
    let act = entries.last().expect("an act");
    assert_eq!(
        (act.source.as_str(), act.kind.as_str()),
        ("act", "operator")
    );
    assert_eq!(act.label.as_deref(), Some("resumed"));
    assert_eq!(
        (act.note.as_deref(), act.note_by.as_deref()),
        (Some("row 7"), Some("anna"))
    );
}

async fn outcomes_are_kept_where_that_is_asked_for<DB: Place>(shop: Shop<DB>) {
    shop.audit()
        .keep_outcomes()
        .migrate()
        .await
        .expect("a trail");
    pay(&shop, "k").await.expect("a call");
    let kept = "SELECT kept.outcome FROM {p}audit_outcomes AS kept JOIN {p}audit AS entry ON entry.number = kept.number WHERE entry.state_after = 2";
    let kept = shop.by_hand(kept).await.expect("outcomes");
    let kept = kept.iter().map(|row| {
        idempotent_runtime::__audit::Row::bytes(row, 0)
            .ok()
            .flatten()
    });
    assert_eq!(kept.collect::<Vec<_>>(), [Some(b"7".to_vec())]);
    shop.audit().connect().await.expect("either text stands");
}

//! A trail is sealed beside calls, and each change of what was sealed is found by its kind.

use std::time::Duration;

use idempotent_audit::{Anchor, Audit, DivergenceKind, Report};
use idempotent_runtime::{Error, step};

use crate::harness::{Place, Shop};

on_every_database![
    a_trail_that_was_sealed_holds,
    each_change_of_a_sealed_entry_is_found,
    each_change_of_a_seal_is_found,
    entries_that_were_removed_added_or_moved_are_found,
    a_tail_that_was_cut_off_is_found,
    a_chain_that_was_made_anew_is_found_by_an_anchor,
    an_entry_that_was_never_sealed_is_found,
    a_change_without_an_entry_is_found,
    two_sealers_seal_each_entry_once,
    a_late_commit_falls_into_a_later_batch,
    a_part_of_a_trail_is_verified_alone,
    a_storm_leaves_a_trail_that_holds,
];

async fn pay<DB: Place>(shop: &Shop<DB>, key: &str) {
    let call = shop.idem.call("payments.charge").key(key);
    let body = async |_| {
        step("gateway", async |_| Ok::<_, Error>(3_u64))
            .run()
            .await?;
        Ok::<_, Error>(7_u64)
    };
    call.run(body).await.expect("a call");
}

async fn connect<DB: Place>(shop: &Shop<DB>) -> Audit {
    shop.audit().connect().await.expect("it stands")
}

/// A shop with three batches, of three entries each.
async fn sealed<DB: Place>(shop: Shop<DB>) -> (Shop<DB>, Audit) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    for key in ["a", "b", "c"] {
        pay(&shop, key).await;
        assert_eq!(audit.seal().await, Ok(3));
    }
    (shop, audit)
}

async fn report(audit: &Audit) -> Report {
    audit.verify().run().await.expect("it can be read")
}

#[track_caller]
fn assert_found(report: &Report, kind: DivergenceKind, change: &str) {
    let found = report.divergence.as_ref().map(|found| found.kind);
    assert_eq!(found, Some(kind), "{change}: {report:?}");
}

async fn a_trail_that_was_sealed_holds<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let whole = report(&audit).await;
    assert_eq!(
        (whole.batches, whole.entries, &whole.divergence),
        (3, 9, &None),
        "{whole:?}"
    );
    assert_eq!(audit.seal().await, Ok(0), "nothing is open");
    pay(&shop, "open").await;
    assert_eq!(
        report(&audit).await.divergence,
        None,
        "open entries are no divergence"
    );
    shop.done_by_hand("UPDATE {p}records SET expires = 0, purge_from = 0")
        .await;
    assert_eq!(shop.idem.purge().await.ok(), Some(4));
    assert!(audit.seal().await.expect("it seals") >= 11);
    let whole = report(&audit).await;
    assert_eq!(whole.divergence, None, "{whole:?}");
}

/// Another value for a column.
fn other<DB: Place>(column: &str) -> String {
    match column {
        "record" | "step" | "stream" | "outcome_hash" | "hash_before" => DB::bytes(b"other"),
        "source" | "kind" | "operation" | "label" | "holder" | "db_user" | "note" | "note_by" => {
            "'other'".to_owned()
        }
        _ => "77".to_owned(),
    }
}

const FIELDS: [&str; 20] = [
    "written",
    "source",
    "kind",
    "record",
    "operation",
    "step",
    "label",
    "stream",
    "state_before",
    "state_after",
    "attempt",
    "token",
    "holder",
    "db_user",
    "note",
    "note_by",
    "forgettable",
    "outcome_kind",
    "outcome_hash",
    "hash_before",
];

async fn each_change_of_a_sealed_entry_is_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let second = shop.entries().await[4].number;
    for field in FIELDS {
        let keep = "CREATE TABLE {p}kept AS SELECT * FROM {p}audit";
        shop.done_by_hand(keep).await;
        let change = format!(
            "UPDATE {{p}}audit SET {field} = {} WHERE number = {second}",
            other::<DB>(field)
        );
        shop.done_by_hand(&change).await;
        let found = report(&audit).await;
        assert_found(&found, DivergenceKind::Content, field);
        let found = found.divergence.expect("one");
        assert_eq!(
            (found.batch, found.number),
            (Some(2), Some(second)),
            "{field}"
        );
        let back = format!(
            "UPDATE {{p}}audit SET {field} = (SELECT {field} FROM {{p}}kept WHERE number = {second}) WHERE number = {second}; DROP TABLE {{p}}kept"
        );
        shop.done_by_hand(&back).await;
    }
    let moved = format!(
        "UPDATE {{p}}audit SET leaf = {} WHERE number = {second}",
        DB::bytes(&[7; 32])
    );
    shop.done_by_hand(&moved).await;
    assert_found(&report(&audit).await, DivergenceKind::Content, "leaf");
}

async fn each_change_of_a_seal_is_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    for (field, value, kind) in [
        ("format", "7".to_owned(), DivergenceKind::Link),
        ("entries", "7".to_owned(), DivergenceKind::Link),
        ("root", DB::bytes(&[7; 32]), DivergenceKind::Link),
        ("previous", DB::bytes(&[7; 32]), DivergenceKind::Link),
        ("sealed", "7".to_owned(), DivergenceKind::Link),
        ("hash", DB::bytes(&[7; 32]), DivergenceKind::Link),
        ("batch", "77".to_owned(), DivergenceKind::Gap),
    ] {
        shop.done_by_hand("CREATE TABLE {p}kept AS SELECT * FROM {p}audit_seals")
            .await;
        shop.done_by_hand(&format!(
            "UPDATE {{p}}audit_seals SET {field} = {value} WHERE batch = 2"
        ))
        .await;
        assert_found(&report(&audit).await, kind, field);
        shop.done_by_hand("DELETE FROM {p}audit_seals; INSERT INTO {p}audit_seals SELECT * FROM {p}kept; DROP TABLE {p}kept").await;
        assert_eq!(report(&audit).await.divergence, None, "{field}");
    }
    shop.done_by_hand("DELETE FROM {p}audit_seals WHERE batch = 2")
        .await;
    assert_found(
        &report(&audit).await,
        DivergenceKind::Gap,
        "a seal was removed",
    );
}

async fn entries_that_were_removed_added_or_moved_are_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let number = shop.entries().await[4].number;
    let columns = "batch, place, leaf, written, source, kind, record, operation, step, label, stream, state_before, state_after, attempt, token, holder, db_user, note, note_by, forgettable, outcome_kind, outcome_hash, hash_before";
    for (change, kind) in [
        (
            format!("DELETE FROM {{p}}audit WHERE number = {number}"),
            DivergenceKind::Gap,
        ),
        (
            format!(
                "INSERT INTO {{p}}audit ({columns}) SELECT {columns} FROM {{p}}audit WHERE number = {number}"
            ),
            DivergenceKind::Gap,
        ),
        (
            "UPDATE {p}audit SET place = 1 - place WHERE batch = 2 AND place < 2".to_owned(),
            DivergenceKind::Place,
        ),
        (
            format!("UPDATE {{p}}audit SET batch = 3 WHERE number = {number}"),
            DivergenceKind::Gap,
        ),
        (
            format!("UPDATE {{p}}audit SET batch = NULL, place = NULL WHERE number = {number}"),
            DivergenceKind::Gap,
        ),
    ] {
        shop.done_by_hand("CREATE TABLE {p}kept AS SELECT * FROM {p}audit")
            .await;
        shop.done_by_hand(&change).await;
        assert_found(&report(&audit).await, kind, &change);
        let back = match DB::NAME {
            "PostgreSQL" => {
                "DELETE FROM {p}audit; INSERT INTO {p}audit OVERRIDING SYSTEM VALUE SELECT * FROM {p}kept; DROP TABLE {p}kept"
            }
            _ => {
                "DELETE FROM {p}audit; INSERT INTO {p}audit SELECT * FROM {p}kept; DROP TABLE {p}kept"
            }
        };
        shop.done_by_hand(back).await;
        assert_eq!(report(&audit).await.divergence, None, "{change}");
    }
}

async fn a_tail_that_was_cut_off_is_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let anchor = audit
        .anchor()
        .await
        .expect("it can be read")
        .expect("a chain");
    shop.done_by_hand("DELETE FROM {p}audit_seals WHERE batch = 3")
        .await;
    assert_found(&report(&audit).await, DivergenceKind::MissingTail, "a seal");
    shop.done_by_hand(
        "UPDATE {p}audit SET batch = NULL, place = NULL, leaf = NULL WHERE batch = 3",
    )
    .await;
    if !DB::IS_SQLITE {
        // There the hash of an outcome is taken for the outcome now.
        let unseen = report(&audit).await.divergence;
        assert_eq!(unseen, None, "only an anchor tells");
    }
    let anchored = audit
        .verify()
        .anchors([anchor])
        .run()
        .await
        .expect("it can be read");
    assert_found(
        &anchored,
        DivergenceKind::MissingTail,
        "a seal and its places",
    );
}

async fn a_chain_that_was_made_anew_is_found_by_an_anchor<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let line = audit
        .anchor()
        .await
        .expect("it can be read")
        .expect("a chain")
        .to_string();
    let anchor: Anchor = line.parse().expect("an anchor");
    let holds = audit
        .verify()
        .anchors([anchor.clone()])
        .run()
        .await
        .expect("it can be read");
    assert_eq!((holds.anchored, &holds.divergence), (3, &None));
    let first = shop.entries().await[0].number;
    shop.done_by_hand(&format!(
        "UPDATE {{p}}audit SET holder = 'other' WHERE number = {first}"
    ))
    .await;
    shop.done_by_hand(
        "UPDATE {p}audit SET batch = NULL, place = NULL, leaf = NULL; DELETE FROM {p}audit_seals",
    )
    .await;
    for _ in 0..3 {
        audit.seal().await.expect("it seals");
    }
    pay(&shop, "d").await;
    audit.seal().await.expect("it seals");
    pay(&shop, "e").await;
    audit.seal().await.expect("it seals");
    if !DB::IS_SQLITE {
        assert_eq!(
            report(&audit).await.divergence,
            None,
            "only an anchor tells"
        );
    }
    let anchored = audit
        .verify()
        .anchors([anchor])
        .run()
        .await
        .expect("it can be read");
    assert_found(&anchored, DivergenceKind::Remade, "another chain");
}

async fn an_entry_that_was_never_sealed_is_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let added = "INSERT INTO {p}audit (written, source, kind) VALUES (77, 'event', 'event')";
    shop.done_by_hand(added).await;
    assert_found(&report(&audit).await, DivergenceKind::NeverSealed, added);
}

async fn a_change_without_an_entry_is_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    pay(&shop, "d").await;
    let drop = match DB::NAME {
        "PostgreSQL" => {
            "DROP TRIGGER {p}audit_record_writes ON {p}records; DROP TRIGGER {p}audit_step_writes ON {p}steps"
        }
        _ => {
            "DROP TRIGGER {p}audit_record_insert; DROP TRIGGER {p}audit_record_update; DROP TRIGGER {p}audit_record_delete; DROP TRIGGER {p}audit_step_insert; DROP TRIGGER {p}audit_step_update; DROP TRIGGER {p}audit_step_delete"
        }
    };
    for change in [
        format!(
            "UPDATE {{p}}records SET outcome = {} WHERE attempt = 1",
            DB::bytes(b"8")
        ),
        "UPDATE {p}records SET state = 3".to_owned(),
        "UPDATE {p}records SET token = token + 1".to_owned(),
        "DELETE FROM {p}records".to_owned(),
        format!("UPDATE {{p}}steps SET outcome = {}", DB::bytes(b"8")),
        format!(
            "UPDATE {{p}}records SET id = {} WHERE id = {}",
            DB::bytes(&[7; 32]),
            DB::bytes(&shop.entries().await[0].record.clone().expect("an id"))
        ),
    ] {
        shop.done_by_hand(drop).await;
        shop.done_by_hand("CREATE TABLE {p}kept AS SELECT * FROM {p}records; CREATE TABLE {p}kept_steps AS SELECT * FROM {p}steps").await;
        shop.done_by_hand(&change).await;
        assert_found(&report(&audit).await, DivergenceKind::Unaudited, &change);
        back(&shop).await;
        shop.audit().migrate().await.expect("it is made again");
        let mended = report(&audit).await;
        assert_eq!(mended.divergence, None, "{change}: {mended:?}");
    }
}

/// Puts records and steps back as they were.
async fn back<DB: Place>(shop: &Shop<DB>) {
    let of_records = "id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from";
    let of_steps = "record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, life";
    let steps = match DB::NAME {
        "PostgreSQL" => "ALTER TABLE {p}steps DISABLE TRIGGER ALL;",
        _ => {
            "DROP TRIGGER IF EXISTS {p}audit_step_insert; DROP TRIGGER IF EXISTS {p}audit_step_delete; DROP TRIGGER IF EXISTS {p}audit_step_update;"
        }
    };
    shop.done_by_hand(steps).await;
    shop.done_by_hand(&format!(
        "DELETE FROM {{p}}records; INSERT INTO {{p}}records ({of_records}) SELECT {of_records} FROM {{p}}kept; DROP TABLE {{p}}kept;
         DELETE FROM {{p}}steps; INSERT INTO {{p}}steps ({of_steps}) SELECT {of_steps} FROM {{p}}kept_steps; DROP TABLE {{p}}kept_steps"
    ))
    .await;
}

async fn two_sealers_seal_each_entry_once<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    let sealers = [(); 2].map(|()| audit.seal_every("1ms").expect("a duration"));
    for key in 0..40 {
        pay(&shop, &key.to_string()).await;
    }
    let open = "SELECT count(*) FROM {p}audit WHERE batch IS NULL";
    loop {
        let rows = shop.by_hand(open).await.expect("a count");
        let open = idempotent_runtime::__audit::Row::number(&rows[0], 0).expect("a number");
        if open == Some(0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(sealers);
    let whole = report(&audit).await;
    assert_eq!(
        (whole.entries, &whole.divergence),
        (120, &None),
        "{whole:?}"
    );
}

async fn a_late_commit_falls_into_a_later_batch<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    if DB::IS_SQLITE {
        return;
    }
    let mut late = shop.pool.begin().await.expect("a transaction");
    let insert = format!(
        "INSERT INTO {}audit_events (event) VALUES ('late')",
        shop.prefix
    );
    DB::query(&mut late, insert, "writing")
        .await
        .expect("it is written");
    pay(&shop, "early").await;
    assert_eq!(audit.seal().await, Ok(3));
    late.commit().await.expect("it stands");
    assert_eq!(audit.seal().await, Ok(1));
    let entries = shop.entries().await;
    assert_eq!(
        entries[0].label.as_deref(),
        Some("late"),
        "its number is the first one"
    );
    let whole = report(&audit).await;
    assert_eq!((whole.batches, &whole.divergence), (2, &None), "{whole:?}");
}

async fn a_part_of_a_trail_is_verified_alone<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let first = shop.entries().await[0].number;
    shop.done_by_hand(&format!(
        "UPDATE {{p}}audit SET holder = 'other' WHERE number = {first}"
    ))
    .await;
    let part = audit
        .verify()
        .from_batch(2)
        .to_batch(3)
        .run()
        .await
        .expect("it can be read");
    assert_eq!((part.batches, &part.divergence), (2, &None), "{part:?}");
    let part = audit
        .verify()
        .to_batch(2)
        .run()
        .await
        .expect("it can be read");
    assert_found(&part, DivergenceKind::Content, "the first batch");
}

/// Calls that end, fail, are dropped and taken over, beside purges and a sealer.
async fn a_storm_leaves_a_trail_that_holds<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    let sealer = audit.seal_every("5ms").expect("a duration");
    let mut tasks = Vec::new();
    for number in 0..240_u32 {
        let idem = shop.idem.clone();
        let task = tokio::spawn(async move {
            let key = format!("k{}", number % 17);
            let call = idem
                .call("payments.charge")
                .key(&key)
                .ttl("20ms")
                .release_errors();
            let body = async |_| {
                step("gateway", async |_| Ok::<_, Error>(3_u64))
                    .run()
                    .await?;
                match number % 5 {
                    0 => Err(Error::InvalidPolicy("no")),
                    _ => Ok(7_u64),
                }
            };
            let _it_may_fail = call.run(body).await;
        });
        if number % 7 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            task.abort();
        }
        if number % 40 == 39 {
            let _it_may_be_busy = shop.idem.purge().await;
        }
        tasks.push(task);
    }
    for task in tasks {
        let _it_may_be_dropped = task.await;
    }
    assert!(shop.idem.shutdown(Duration::from_secs(20)).await);
    let beside = report(&audit).await;
    assert_eq!(beside.divergence, None, "{beside:?}");
    drop(sealer);
    while audit.seal().await.expect("it seals") > 0 {}
    let whole = report(&audit).await;
    assert_eq!(whole.divergence, None, "{whole:?}");
    assert!(whole.entries > 100, "{whole:?}");
}

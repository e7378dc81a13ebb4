//! Each change of what was sealed is found by its kind.

use idempotent_audit::{Anchor, AuditError, DivergenceKind};

use crate::{
    harness::{Place, Shop},
    sealed::{assert_found, pay, report, sealed},
};

on_every_database![
    each_change_of_a_sealed_entry_is_found,
    each_change_of_a_seal_is_found,
    entries_that_were_removed_added_or_moved_are_found,
    a_tail_that_was_cut_off_is_found,
    a_chain_that_was_made_anew_is_found_by_an_anchor,
    an_entry_that_was_never_sealed_is_found,
    a_change_without_an_entry_is_found,
];

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
        entries_back(&shop).await;
        assert_eq!(report(&audit).await.divergence, None, "{change}");
    }
}

/// Puts entries back as they were.
pub(crate) async fn entries_back<DB: Place>(shop: &Shop<DB>) {
    let overriding = match DB::NAME {
        "PostgreSQL" => "OVERRIDING SYSTEM VALUE",
        _ => "",
    };
    shop.done_by_hand(&format!(
        "DELETE FROM {{p}}audit; INSERT INTO {{p}}audit {overriding} SELECT * FROM {{p}}kept; DROP TABLE {{p}}kept"
    ))
    .await;
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
    let other: Anchor = "idempotent-audit/other 1 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc= t"
        .parse()
        .expect("an anchor");
    let other = audit.verify().anchors([other]).run().await;
    assert!(
        matches!(other, Err(AuditError::OtherAnchor { .. })),
        "{other:?}"
    );
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
    let own = audit
        .anchor()
        .await
        .expect("it can be read")
        .expect("a chain");
    let later = own
        .to_string()
        .replacen(&format!(" {} ", own.size()), " 3 ", 1);
    for anchors in [
        vec![anchor.clone()],
        vec![later.parse().expect("an anchor"), anchor],
    ] {
        let anchored = audit.verify().anchors(anchors).run().await;
        let anchored = anchored.expect("it can be read");
        assert_found(&anchored, DivergenceKind::Remade, "another chain");
    }
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

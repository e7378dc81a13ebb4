//! Old entries are pruned, and the trail still holds. What is held stays.

use idempotent_audit::{Audit, AuditError, DivergenceKind, Hold, Pruned};
use idempotent_runtime::identity::RecordId;

use crate::{
    harness::{Place, Shop},
    sealed::{assert_found, pay, report, sealed, verified_by_script},
};

on_every_database![
    what_is_old_goes_and_the_chain_holds,
    outcomes_that_were_kept_go_with_their_entries,
    what_is_held_stays_until_it_is_released,
    an_operation_or_a_time_is_held,
    a_pruning_that_was_cut_off_leaves_a_trail_that_holds,
    what_goes_beyond_a_pruning_is_found,
    an_act_on_the_trail_needs_a_reason,
];

pub(crate) async fn prune(audit: &Audit) -> Pruned {
    let pruned = audit.prune().keep("0s").run().await;
    pruned.expect("the owner may prune")
}

async fn assert_holds(audit: &Audit, pruned: u64, when: &str) {
    let report = report(audit).await;
    assert_eq!(
        (&report.divergence, report.pruned),
        (&None, pruned),
        "{when}: {report:?}"
    );
}

/// The record of the first entry.
async fn first_record<DB: Place>(shop: &Shop<DB>) -> RecordId {
    let id = shop.entries().await[0].record.clone().expect("an id");
    RecordId::from_bytes(id.try_into().expect("32 bytes"))
}

/// Deletes the records of this operation, as a purge does when they have expired.
pub(crate) async fn forget<DB: Place>(shop: &Shop<DB>, operation: &str) {
    let expired = format!(
        "UPDATE {{p}}records SET expires = 0, purge_from = 0 WHERE operation = '{operation}'"
    );
    shop.done_by_hand(&expired).await;
    shop.idem.purge().await.expect("it forgets");
}

async fn what_is_old_goes_and_the_chain_holds<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let none = audit.prune().run().await.expect("it may");
    assert_eq!(none, Pruned::default(), "nothing is 400 days old");

    // Only the insert of each record has another entry behind it.
    let first = prune(&audit).await;
    assert_eq!((first.until, first.entries, first.batches), (3, 3, 0));
    assert_holds(&audit, 3, "records stand").await;
    let entries = shop.entries().await;
    let gone: Vec<_> = entries.iter().filter(|it| it.source == "pruned").collect();
    assert_eq!(gone.len(), 3);
    assert!(
        gone.iter()
            .all(|it| it.record.is_none() && it.operation.is_none() && it.written == 0)
    );

    pay(&shop, "d").await;
    audit.seal().await.expect("it seals");
    assert_holds(&audit, 3, "a call came").await;
    forget(&shop, "payments.charge").await;
    audit.seal().await.expect("it seals");
    assert_holds(&audit, 3, "the records went").await;
    let second = prune(&audit).await;
    assert!(second.batches >= 5, "{second:?}");
    let report = report(&audit).await;
    assert_eq!(report.divergence, None, "{report:?}");
    assert!(report.pruned >= 18, "{report:?}");
    let left = shop.entries().await;
    assert!(left.iter().all(|it| it.record.is_none()), "{left:?}");
    let part = audit.verify().from_batch(2).to_batch(3).run().await;
    let part = part.expect("it can be read");
    assert_eq!((part.divergence, part.pruned), (None, 6), "a part of it");
}

async fn outcomes_that_were_kept_go_with_their_entries<DB: Place>(shop: Shop<DB>) {
    let keeping = shop.audit().keep_outcomes();
    keeping.migrate().await.expect("the trail is made");
    let audit = keeping.connect().await.expect("it stands");
    pay(&shop, "k").await;
    audit.seal().await.expect("it seals");
    let count = async || {
        let rows = shop.by_hand("SELECT count(*) FROM {p}audit_outcomes").await;
        let rows = rows.expect("a count");
        idempotent_runtime::__audit::Row::number(&rows[0], 0).expect("a number")
    };
    let kept = count().await;
    assert!(kept >= Some(2), "of calls and steps: {kept:?}");
    forget(&shop, "payments.charge").await;
    audit.seal().await.expect("it seals");
    prune(&audit).await;
    assert_eq!(count().await, Some(0));
}

async fn what_is_held_stays_until_it_is_released<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let id = first_record(&shop).await;
    let hold = || Hold::Record(id);
    let held = audit.hold(hold()).by("anna").because("case 17");
    held.await.expect("it is held");
    let holds = audit.holds().await.expect("they can be read");
    assert_eq!(holds.len(), 1);
    let signed = &holds[0].signed;
    assert_eq!(
        (
            holds[0].hold.clone(),
            signed.by.as_deref(),
            &*signed.because
        ),
        (hold(), Some("anna"), "case 17")
    );
    assert_eq!(signed.db_user.is_none(), DB::IS_SQLITE, "{signed:?}");

    forget(&shop, "payments.charge").await;
    audit.seal().await.expect("it seals");
    prune(&audit).await;
    let kept = shop.entries().await;
    let kept: Vec<_> = kept
        .iter()
        .filter(|it| it.record.as_deref() == Some(id.as_bytes()))
        .collect();
    assert_eq!(
        kept.len(),
        5,
        "record and step, written and deleted: {kept:?}"
    );
    let report = report(&audit).await;
    assert_eq!(report.divergence, None, "{report:?}");
    verified_by_script(&audit).await;

    audit
        .release(holds[0].number)
        .because("the case is closed")
        .await
        .expect("it is released");
    assert_eq!(audit.holds().await, Ok(vec![]));
    prune(&audit).await;
    let left = shop.entries().await;
    assert!(left.iter().all(|it| it.record.is_none()), "{left:?}");
    let entries = left.iter().filter(|it| it.source == "event").count();
    assert!(entries > 0, "the acts are entries: {left:?}");
    assert_eq!(crate::sealed::report(&audit).await.divergence, None);
}

async fn an_operation_or_a_time_is_held<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let call = shop.idem.call("mails.send").key("k");
    call.run(async |_| Ok::<_, idempotent_runtime::Error>(7_u64))
        .await
        .expect("a call");
    let entries = shop.entries().await;
    let of_time = &entries[3];
    let time = idempotent_runtime::Time::from_micros(of_time.written);
    for hold in [
        Hold::Operation("mails.send".to_owned()),
        Hold::Times(time, time),
    ] {
        audit
            .hold(hold)
            .because("a case")
            .await
            .expect("it is held");
    }
    forget(&shop, "payments.charge").await;
    forget(&shop, "mails.send").await;
    audit.seal().await.expect("it seals");
    prune(&audit).await;
    let kept = shop.entries().await;
    let mails = kept
        .iter()
        .filter(|it| it.operation.as_deref() == Some("mails.send"));
    assert_eq!(mails.count(), 3);
    assert!(
        kept.iter()
            .any(|it| it.number == of_time.number && it.source != "pruned")
    );
    let report = report(&audit).await;
    assert_eq!(report.divergence, None, "{report:?}");
}

async fn a_pruning_that_was_cut_off_leaves_a_trail_that_holds<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = shop.audit().connect().await.expect("it stands");
    let mut cut = 0;
    for round in 0..25_u64 {
        pay(&shop, &round.to_string()).await;
        if round % 3 == 0 {
            forget(&shop, "payments.charge").await;
        }
        audit.seal().await.expect("it seals");
        let pruning = audit.prune().keep("0s").run();
        let most = std::time::Duration::from_micros(round * 1_500);
        cut += u32::from(tokio::time::timeout(most, pruning).await.is_err());
        let report = report(&audit).await;
        assert_eq!(report.divergence, None, "round {round}: {report:?}");
    }
    assert!(cut > 0, "some were cut off");
    forget(&shop, "payments.charge").await;
    audit.seal().await.expect("it seals");
    prune(&audit).await;
    assert_eq!(report(&audit).await.divergence, None);
    let left = shop.entries().await;
    assert!(left.iter().all(|it| it.record.is_none()), "{left:?}");
}

async fn what_goes_beyond_a_pruning_is_found<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let (id, entries) = (first_record(&shop).await, shop.entries().await);
    let hold = Hold::Record(id);
    audit
        .hold(hold)
        .because("a case")
        .await
        .expect("it is held");
    forget(&shop, "payments.charge").await;
    audit.seal().await.expect("it seals");
    prune(&audit).await;
    pay(&shop, "later").await;
    audit.seal().await.expect("it seals");
    assert_eq!(report(&audit).await.divergence, None);

    let kept = entries[0].number;
    let leaf = DB::bytes(&[7; 32]);
    for (change, kind) in [
        ("DELETE FROM {p}audit WHERE batch = 1".to_owned(), DivergenceKind::Pruned),
        (
            format!("UPDATE {{p}}audit SET source = 'pruned' WHERE number = {kept}"),
            DivergenceKind::Pruned,
        ),
        (
            format!("DELETE FROM {{p}}audit WHERE number = {kept}"),
            DivergenceKind::Gap,
        ),
        (
            "UPDATE {p}audit SET source = 'pruned' WHERE operation = 'payments.charge' AND batch = (SELECT max(batch) FROM {p}audit_seals)".to_owned(),
            DivergenceKind::Content,
        ),
        (
            format!("UPDATE {{p}}audit SET source = 'pruned', leaf = {leaf} WHERE number = {kept}"),
            DivergenceKind::Content,
        ),
        (
            "DELETE FROM {p}audit WHERE batch = (SELECT max(batch) FROM {p}audit_seals)".to_owned(),
            DivergenceKind::Gap,
        ),
        (
            "UPDATE {p}audit SET note = REPLACE(note, '\"to\":', '\"to\":7') WHERE source = 'pruning'".to_owned(),
            DivergenceKind::Content,
        ),
    ] {
        shop.done_by_hand("CREATE TABLE {p}kept AS SELECT * FROM {p}audit").await;
        shop.done_by_hand(&change).await;
        assert_found(&report(&audit).await, kind, &change);
        crate::tampered::entries_back(&shop).await;
        assert_eq!(report(&audit).await.divergence, None, "{change}");
    }
}

async fn an_act_on_the_trail_needs_a_reason<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    let before = shop.entries().await.len();
    let hold = || audit.hold(Hold::Operation("payments.charge".to_owned()));
    let long = "n".repeat(5_000);
    for refused in [
        hold().await,
        hold().because(" ").await,
        hold().because(long.as_str()).await,
        hold().by(long).because("r").await,
    ] {
        assert!(
            matches!(refused, Err(AuditError::InvalidAct(_))),
            "{refused:?}"
        );
    }
    let refused = audit.prune().keep("soon").run().await;
    assert!(
        matches!(refused, Err(AuditError::InvalidAct(_))),
        "{refused:?}"
    );
    assert_eq!(shop.entries().await.len(), before);
}

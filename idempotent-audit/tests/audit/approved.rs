//! Four eyes: a person ends an uncertain or parked record only with the approval of another one.

use idempotent_audit::{Audit, AuditBuilder, AuditError, DivergenceKind, Proposal};
use idempotent_runtime::{BoxError, Error, Idempotency, identity::RecordId};

use crate::{
    harness::{Place, Shop},
    sealed::report,
};

on_every_database![
    a_person_ends_a_record_only_as_another_one_approved,
    programs_end_records_by_themselves,
    an_approval_is_for_one_version_and_one_outcome,
    a_stream_that_is_parked_needs_approval_too,
    a_trail_without_its_guard_does_not_stand,
];

/// The user under whom the tests run on the servers.
const APPLICATION: &str = "idempotent";

fn guarded<DB: Place>(shop: &Shop<DB>) -> AuditBuilder {
    shop.audit().four_eyes(&[APPLICATION])
}

async fn eyes<DB: Place>(shop: Shop<DB>) -> (Shop<DB>, Audit) {
    guarded(&shop).migrate().await.expect("the trail is made");
    let audit = guarded(&shop).connect().await.expect("it stands");
    (shop, audit)
}

/// A call of which nobody knows whether it happened.
async fn uncertain<DB: Place>(shop: &Shop<DB>, key: &str) -> RecordId {
    let call = shop
        .idem
        .call("payments.charge")
        .key(key)
        .uncertain_errors();
    let failed = call
        .run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")))
        .await;
    failed.expect_err("it fails");
    id_of(&shop.idem, key).await
}

async fn id_of(idem: &Idempotency, key: &str) -> RecordId {
    let records = idem.records().operation("payments.charge").key(key);
    let page = records.page(1).await.expect("a page");
    page.rows[0].id
}

async fn settle<DB: Place>(shop: &Shop<DB>, id: RecordId, value: u64) -> Result<(), BoxError> {
    let settle = shop.idem.settle_id(id).await.expect("a record");
    settle
        .by("anna")
        .because("dashboard")
        .with_value(&value)
        .await
}

fn refused(ended: Result<(), BoxError>) -> Proposal {
    let refused = ended.expect_err("it is refused");
    let said = refused.to_string();
    assert!(!said.contains("writing the entry of the audit"), "{said}");
    Proposal::refused(&*refused).unwrap_or_else(|| panic!("{refused:?}"))
}

async fn approve(audit: &Audit, id: RecordId, proposal: &Proposal) {
    let propose = audit.propose(id, proposal.clone()).by("anna");
    propose.because("dashboard").await.expect("it is proposed");
    let number = audit.proposals().await.expect("they can be read");
    let number = number.last().expect("one").number;
    let approve = audit.approve(number, "ben").await.expect("another person");
    approve
        .because("I saw it, too")
        .await
        .expect("it is approved");
}

async fn a_person_ends_a_record_only_as_another_one_approved<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = eyes(shop).await;
    let id = uncertain(&shop, "k").await;
    let proposal = refused(settle(&shop, id, 7).await);
    assert_eq!(
        refused(settle(&shop, id, 7).await),
        proposal,
        "it is the same"
    );
    let version = shop.idem.explain(id).await.expect("a story").row.version;
    assert!(proposal.is_of(version), "{proposal}");
    let deleted = shop.by_hand("DELETE FROM {p}records").await;
    assert!(deleted.is_ok(), "the application may forget");

    let id = uncertain(&shop, "k").await;
    let proposal = refused(settle(&shop, id, 7).await);
    let propose = audit.propose(id, proposal.clone()).by("anna");
    propose.because("dashboard").await.expect("it is proposed");
    assert_eq!(
        refused(settle(&shop, id, 7).await),
        proposal,
        "nobody approved it"
    );

    let proposals = audit.proposals().await.expect("they can be read");
    let [proposed] = &proposals[..] else {
        panic!("{proposals:?}");
    };
    assert_eq!((proposed.record, &proposed.proposal), (id, &proposal));
    assert_eq!(
        (proposed.signed.by.as_deref(), &*proposed.signed.because),
        (Some("anna"), "dashboard")
    );
    let own = audit.approve(proposed.number, "anna").await;
    assert!(matches!(own, Err(AuditError::InvalidAct(_))), "{own:?}");
    let unknown = audit.approve(proposed.number + 77, "ben").await;
    assert!(
        matches!(unknown, Err(AuditError::InvalidAct(_))),
        "{unknown:?}"
    );
    // By hand, the same person is not another one.
    let by_hand = format!(
        "INSERT INTO {{p}}audit_events (event, detail, person) VALUES ('approve', '{proposal} {} r', 'anna')",
        id.to_hex()
    );
    shop.done_by_hand(&by_hand).await;
    assert_eq!(
        refused(settle(&shop, id, 7).await),
        proposal,
        "she did it herself"
    );

    let approve = audit
        .approve(proposed.number, "ben")
        .await
        .expect("another person");
    approve
        .because("I saw it, too")
        .await
        .expect("it is approved");
    settle(&shop, id, 7).await.expect("it is approved");
    let replayed = shop
        .idem
        .call("payments.charge")
        .key("k")
        .run(async |_| Ok::<_, Error>(8_u64));
    assert_eq!(replayed.await.expect("a replay"), 7);
    audit.seal().await.expect("it seals");
    assert_eq!(report(&audit).await.divergence, None);
    let acts = shop.entries().await;
    let acts = acts
        .iter()
        .filter(|it| matches!(it.label.as_deref(), Some("propose" | "approve")));
    assert_eq!(acts.count(), 3, "each act is an entry");
}

async fn programs_end_records_by_themselves<DB: Place>(shop: Shop<DB>) {
    let (shop, _) = eyes(shop).await;
    let id = uncertain(&shop, "k").await;
    // As another build would: an attempt that comes late, with no word of a person.
    let late = "UPDATE {p}records SET state = 2, version = version WHERE state = 4";
    shop.done_by_hand(late).await;
    let gone = shop.idem.explain(id).await.expect("a story").row;
    assert_eq!(gone.state, idempotent_runtime::operate::State::Done);
    // Beside a refusal, other calls are written.
    let other = uncertain(&shop, "other").await;
    let calls = (0..40).map(|key| {
        let idem = shop.idem.clone();
        tokio::spawn(async move {
            let call = idem.call("payments.charge").key(&format!("c{key}"));
            call.run(async |_| Ok::<_, Error>(7_u64)).await
        })
    });
    let calls: Vec<_> = calls.collect();
    for value in 0..10 {
        refused(settle(&shop, other, value).await);
    }
    for call in calls {
        assert_eq!(call.await.expect("it ends").expect("a call"), 7);
    }
}

async fn an_approval_is_for_one_version_and_one_outcome<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = eyes(shop).await;
    let id = uncertain(&shop, "k").await;
    let proposal = refused(settle(&shop, id, 7).await);
    approve(&audit, id, &proposal).await;
    let other = uncertain(&shop, "other").await;
    assert_ne!(
        refused(settle(&shop, other, 7).await),
        proposal,
        "another record"
    );
    let settling = || async { shop.idem.settle_id(id).await.expect("a record").by("anna") };
    let failed = settling().await.with_error(&7_u64).await;
    assert_ne!(refused(failed), proposal, "another kind");
    let undone = settling().await.undo(&7_u64).await;
    assert_ne!(refused(undone), proposal, "another state");
    if !DB::IS_SQLITE {
        assert_ne!(
            refused(settle(&shop, id, 8).await),
            proposal,
            "another outcome"
        );
    }
    shop.done_by_hand(&format!(
        "UPDATE {{p}}records SET version = {} WHERE state = 4",
        DB::bytes(&[7; 16])
    ))
    .await;
    assert_ne!(
        refused(settle(&shop, id, 7).await),
        proposal,
        "the record has moved"
    );
    let proposal = refused(settle(&shop, id, 7).await);
    approve(&audit, id, &proposal).await;
    let later = "UPDATE {p}audit_events SET written = written - 86400000001";
    assert!(shop.by_hand(later).await.is_err(), "events are only added");
    settle(&shop, id, 7).await.expect("it is approved");
}

async fn a_stream_that_is_parked_needs_approval_too<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = eyes(shop).await;
    let numbers = || shop.idem.sequence("ledger.apply", "eur").first(1);
    let failed = numbers()
        .number(1)
        .uncertain_errors()
        .run(async |_| Err::<u64, _>(Error::InvalidPolicy("no answer")))
        .await;
    failed.expect_err("it fails");
    let settle = || async { numbers().settle(1).by("anna").with_value(&7_u64).await };
    let proposal = refused(settle().await);
    let id = shop.entries().await[0].record.clone().expect("an id");
    let id = RecordId::from_bytes(id.try_into().expect("32 bytes"));
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    assert_eq!(
        refused(settle().await),
        proposal,
        "it does not change with time"
    );
    approve(&audit, id, &proposal).await;
    settle().await.expect("it is approved");
}

async fn a_trail_without_its_guard_does_not_stand<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let lacking = guarded(&shop).connect().await.map(drop);
    assert!(
        matches!(lacking, Err(AuditError::Broken { .. })),
        "{lacking:?}"
    );
    let (shop, audit) = eyes(shop).await;
    shop.audit().migrate().await.expect("an older build");
    audit.check().await.expect("the guard stays");
    let id = uncertain(&shop, "k").await;
    refused(settle(&shop, id, 7).await);
    let drop = match DB::NAME {
        "PostgreSQL" => "DROP TRIGGER {p}audit_record_guards ON {p}records",
        _ => "DROP TRIGGER {p}audit_record_guards_update",
    };
    shop.done_by_hand(drop).await;
    let broken = audit.check().await;
    assert!(
        matches!(broken, Err(AuditError::Broken { .. })),
        "{broken:?}"
    );
    shop.audit().connect().await.expect("it asks for no guard");
    let none = report(&audit).await.divergence.map(|it| it.kind);
    assert_ne!(
        none,
        Some(DivergenceKind::Unaudited),
        "it changes no record"
    );
}

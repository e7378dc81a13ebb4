//! A pruning beside verifications, holds, other prunings, open calls, and people who took more.

use std::time::Duration;

use idempotent_audit::{AuditError, DivergenceKind, Hold, Pruned};
use idempotent_runtime::identity::RecordId;

use crate::{
    harness::{Place, Shop},
    pruned::{forget, prune},
    sealed::{assert_found, pay, report, sealed},
};

on_every_database![
    a_verification_beside_prunings_holds,
    a_hold_that_was_answered_keeps_what_is_there,
    prunings_at_once_leave_a_trail_that_holds,
    a_pruning_waits_for_no_open_call,
    a_pruning_hides_nothing_that_another_one_took,
    a_longer_time_behind_a_shorter_one_holds,
    a_clock_that_went_wrong_makes_no_later_batch_old,
];

async fn a_verification_beside_prunings_holds<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = shop.audit().connect().await.expect("it stands");
    let verifying = tokio::spawn({
        let audit = audit.clone();
        async move {
            for round in 0..60 {
                let report = audit.verify().run().await.expect("it can be read");
                assert_eq!(report.divergence, None, "round {round}: {report:?}");
            }
        }
    });
    for round in 0.. {
        if verifying.is_finished() {
            break;
        }
        pay(&shop, &round.to_string()).await;
        audit.seal().await.expect("it seals");
        if round % 3 == 2 {
            forget(&shop, "payments.charge").await;
            audit.seal().await.expect("it seals");
            prune(&audit).await;
        }
    }
    verifying.await.expect("it holds");
}

async fn a_hold_that_was_answered_keeps_what_is_there<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = shop.audit().connect().await.expect("it stands");
    for round in 0..12_u64 {
        let key = round.to_string();
        pay(&shop, &key).await;
        let entries = shop.entries().await;
        let mut records = entries.iter().rev().filter_map(|it| it.record.clone());
        let id = records.next().expect("an id");
        forget(&shop, "payments.charge").await;
        audit.seal().await.expect("it seals");
        let pruning = tokio::spawn({
            let audit = audit.clone();
            async move { prune(&audit).await }
        });
        tokio::time::sleep(Duration::from_millis(round * 4)).await;
        let record = RecordId::from_bytes(id.clone().try_into().expect("32 bytes"));
        let hold = audit.hold(Hold::Record(record)).because("a case");
        hold.await.expect("it is held");
        let count = async || {
            let entries = shop.entries().await;
            let of_it = entries.iter().filter(|it| it.record.as_ref() == Some(&id));
            of_it.count()
        };
        let held = count().await;
        pruning.await.expect("it prunes");
        prune(&audit).await;
        assert_eq!(count().await, held, "round {round}");
    }
    audit.seal().await.expect("it seals");
    assert_eq!(report(&audit).await.divergence, None);
}

async fn prunings_at_once_leave_a_trail_that_holds<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    for round in 0..6 {
        pay(&shop, &format!("x{round}")).await;
        forget(&shop, "payments.charge").await;
        audit.seal().await.expect("it seals");
        let prunings = [(); 3].map(|()| {
            let audit = audit.clone();
            tokio::spawn(async move { audit.prune().keep("0s").run().await })
        });
        for pruning in prunings {
            let _a_database_may_be_busy = pruning.await.expect("it ends");
        }
        let report = report(&audit).await;
        assert_eq!(report.divergence, None, "round {round}: {report:?}");
    }
}

async fn a_pruning_waits_for_no_open_call<DB: Place>(shop: Shop<DB>) {
    if DB::IS_SQLITE {
        // It has one writer.
        return;
    }
    let (shop, audit) = sealed(shop).await;
    pay(&shop, "open").await;
    let mut open = shop.pool.begin().await.expect("a transaction");
    let touch = "UPDATE {p}records SET state = state, token = token + 1 WHERE call_key IS NOT NULL";
    let touch = touch.replace("{p}", &shop.prefix);
    DB::query(&mut open, touch, "calling")
        .await
        .expect("it is open");
    let pruned = tokio::time::timeout(Duration::from_secs(20), prune(&audit)).await;
    assert!(pruned.expect("it does not wait").entries > 0);
    open.rollback().await.expect("it ends");
    assert_eq!(report(&audit).await.divergence, None);
}

async fn a_pruning_hides_nothing_that_another_one_took<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    prune(&audit).await;
    let kept = shop.entries().await;
    let kept = kept
        .iter()
        .find(|it| it.source == "record")
        .expect("one is kept")
        .number;
    let take = format!("UPDATE {{p}}audit SET source = 'pruned' WHERE number = {kept}");
    shop.done_by_hand(&take).await;
    assert_found(&report(&audit).await, DivergenceKind::Pruned, &take);
    pay(&shop, "later").await;
    audit.seal().await.expect("it seals");
    let refused = audit.prune().keep("0s").run().await;
    assert!(matches!(refused, Err(AuditError::Store(_))), "{refused:?}");
    assert_found(&report(&audit).await, DivergenceKind::Pruned, "it stays");
    // A batch of one entry that is gone cannot be paid back by hand.
    let paid = "INSERT INTO {p}audit (written, source, kind, batch, place, leaf) SELECT 0, 'pruned', 'pruned', batch, 0, root FROM {p}audit_seals WHERE batch = 1";
    shop.done_by_hand(paid).await;
    assert!(report(&audit).await.divergence.is_some(), "{paid}");
}

async fn a_longer_time_behind_a_shorter_one_holds<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    forget(&shop, "payments.charge").await;
    audit.seal().await.expect("it seals");
    prune(&audit).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    pay(&shop, "d").await;
    audit.seal().await.expect("it seals");
    let longer = audit.prune().keep("15ms").run().await.expect("it may");
    assert!(longer.until > 0, "{longer:?}");
    let report = report(&audit).await;
    assert_eq!(report.divergence, None, "{report:?}");
    crate::sealed::verified_by_script(&audit).await;
}

async fn a_clock_that_went_wrong_makes_no_later_batch_old<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    shop.done_by_hand("UPDATE {p}audit_seals SET sealed = 7 WHERE batch = 3")
        .await;
    let pruned = audit.prune().run().await.expect("it may");
    assert_eq!(pruned, Pruned::default(), "the batches before it are young");
}

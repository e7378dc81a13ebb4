//! A trail is sealed beside calls, verified, and exported.

use std::time::Duration;

use idempotent_audit::{Audit, DivergenceKind, Report};
use idempotent_runtime::{Error, step};

use crate::harness::{Place, Shop};

on_every_database![
    a_trail_that_was_sealed_holds,
    two_sealers_seal_each_entry_once,
    sealers_that_are_killed_leave_no_batch_by_half,
    sealers_that_begin_at_once_make_one_chain,
    a_late_commit_falls_into_a_later_batch,
    a_part_of_a_trail_is_verified_alone,
    a_storm_leaves_a_trail_that_holds,
    an_export_is_verified_by_a_script_that_shares_no_code,
    calls_go_on_beside_a_sealer_that_sleeps,
];

pub(crate) async fn pay<DB: Place>(shop: &Shop<DB>, key: &str) {
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
pub(crate) async fn sealed<DB: Place>(shop: Shop<DB>) -> (Shop<DB>, Audit) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    for key in ["a", "b", "c"] {
        pay(&shop, key).await;
        assert_eq!(audit.seal().await, Ok(3));
    }
    (shop, audit)
}

pub(crate) async fn report(audit: &Audit) -> Report {
    audit.verify().run().await.expect("it can be read")
}

#[track_caller]
pub(crate) fn assert_found(report: &Report, kind: DivergenceKind, change: &str) {
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
    let owner = match DB::IS_SQLITE {
        true => "everyone who can write the file",
        false => "idempotent",
    };
    assert_eq!(whole.changeable_by.as_deref(), Some(owner));
    assert_eq!(audit.changeable_by().await, Ok(whole.changeable_by));
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

async fn two_sealers_seal_each_entry_once<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    let sealers = [(); 2].map(|()| audit.seal_every("1ms").expect("a duration"));
    // Each of them writes an entry first.
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
        (122, &None),
        "{whole:?}"
    );
}

/// A task is dropped at any await, also between the hash and the commit.
async fn sealers_that_are_killed_leave_no_batch_by_half<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    let mut sealed = 0;
    for round in 0..60_u64 {
        pay(&shop, &round.to_string()).await;
        let killed = tokio::time::timeout(Duration::from_micros(round * 60), audit.seal()).await;
        sealed += killed.map_or(0, |sealed| sealed.expect("it seals"));
        if round % 10 == 0 {
            assert_eq!(report(&audit).await.divergence, None, "round {round}");
        }
    }
    assert!(sealed < 180, "some were killed");
    // The connection of a killed one is cleaned before its lock is gone.
    while report(&audit).await.entries < 180 {
        audit.seal().await.expect("it seals");
    }
    let whole = report(&audit).await;
    assert_eq!(
        (whole.entries, &whole.divergence),
        (180, &None),
        "{whole:?}"
    );
}

async fn sealers_that_begin_at_once_make_one_chain<DB: Place>(shop: Shop<DB>) {
    let shop = shop.audited().await;
    let audit = connect(&shop).await;
    pay(&shop, "k").await;
    let sealers = [(); 5].map(|()| {
        let audit = audit.clone();
        tokio::spawn(async move { audit.seal().await })
    });
    let mut sealed = 0;
    for sealer in sealers {
        sealed += sealer.await.expect("it ends").expect("it seals");
    }
    sealed += audit.seal().await.expect("it seals");
    assert_eq!(sealed, 3);
    assert_eq!(report(&audit).await.divergence, None);
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
    let nothing = audit.verify().from_batch(9).run().await;
    assert_eq!(
        nothing.expect("it can be read").divergence,
        None,
        "no batch, no divergence"
    );
    let hidden =
        "INSERT INTO {p}audit (written, source, kind, batch) VALUES (7, 'event', 'event', 0)";
    shop.done_by_hand(hidden).await;
    let part_with_it = audit
        .verify()
        .from_batch(2)
        .run()
        .await
        .expect("it can be read");
    assert_found(&part_with_it, DivergenceKind::Gap, hidden);
    shop.done_by_hand("DELETE FROM {p}audit WHERE batch = 0")
        .await;
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

async fn an_export_is_verified_by_a_script_that_shares_no_code<DB: Place>(shop: Shop<DB>) {
    let (shop, audit) = sealed(shop).await;
    pay(&shop, "open").await;
    let mut lines = Vec::new();
    let manifest = audit
        .verify()
        .export(&mut lines)
        .await
        .expect("it is written");
    assert_eq!((manifest.batches, manifest.entries), (3, 9));
    let text = String::from_utf8(lines).expect("JSON");
    assert_eq!(text.lines().count(), 12, "entries and seals");
    let manifest = manifest.to_json();
    let holds = by_script(&text, &manifest);
    assert_eq!(holds, (true, "9 entries in 3 batches hold\n".to_owned()));
    let state = "\"state_after\":2";
    for (part, other, found) in [
        ("till-3", "till-4", "content of entry"),
        (state, "\"state_after\":3", "content of entry"),
        ("\"place\":1", "\"place\":7", "place of entry"),
        ("\"sealed\":1", "\"sealed\":2", "seal of batch 1"),
    ] {
        assert!(text.contains(part), "{part}");
        let (holds, said) = by_script(&text.replacen(part, other, 1), &manifest);
        assert!(!holds && said.contains(found), "{said}");
    }
    let without_an_entry: String = text.split_inclusive('\n').skip(1).collect();
    assert!(!by_script(&without_an_entry, &manifest).0);
    let without_the_end: String = text.split_inclusive('\n').take(8).collect();
    let (holds, said) = by_script(&without_the_end, &manifest);
    assert!(!holds && said.contains("another export"), "{said}");
}

/// Fails unless the script verifies an export of the trail.
pub(crate) async fn verified_by_script(audit: &Audit) {
    let mut lines = Vec::new();
    let exported = audit.verify().export(&mut lines).await;
    let manifest = exported.expect("it is written").to_json();
    let text = String::from_utf8(lines).expect("JSON");
    let (holds, said) = by_script(&text, &manifest);
    assert!(holds, "{said}");
    let other = text.replace("{\\\"to\\\":", "{\\\"no\\\":");
    assert!(
        other == text || !by_script(&other, &manifest).0,
        "no pruning may do that"
    );
}

/// The verdict of the script, and its words.
fn by_script(lines: &str, manifest: &str) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("lines", lines), ("manifest", manifest)].map(|(name, text)| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("it is written");
        file
    });
    let python = std::env::var("IDEMPOTENT_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/verify_export.py");
    let run = std::process::Command::new(python)
        .arg(script)
        .args(files)
        .output();
    let run = run.expect("`cargo xtask test` installs python3");
    let said = [run.stdout, run.stderr].concat();
    (
        run.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// A sealer that sleeps in its transaction has locked the entries that it seals, and no other.
async fn calls_go_on_beside_a_sealer_that_sleeps<DB: Place>(shop: Shop<DB>) {
    if DB::IS_SQLITE {
        // It has one writer, and a sealer writes for a moment.
        return;
    }
    let (shop, audit) = sealed(shop).await;
    pay(&shop, "open").await;
    let mut sealer = shop.pool.acquire().await.expect("a connection");
    let entries = shop.entries().await;
    let open = entries[9..].iter().map(|entry| entry.number.to_string());
    let (p, open) = (&shop.prefix, open.collect::<Vec<_>>().join(", "));
    let begin = match DB::NAME {
        "PostgreSQL" => "BEGIN",
        _ => "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION",
    };
    let asleep = format!(
        "{begin}; SELECT batch FROM {p}audit_seals WHERE batch = 3 FOR UPDATE;
         UPDATE {p}audit SET batch = 4 WHERE number IN ({open})"
    );
    let asleep = DB::query(&mut sealer, asleep, "sealing").await;
    asleep.expect("it is sealed");
    for key in 0..20 {
        pay(&shop, &key.to_string()).await;
    }
    assert_eq!(audit.seal().await, Ok(0), "another one is at it");
    let ended = DB::query(&mut sealer, "ROLLBACK".to_owned(), "sealing").await;
    ended.expect("it ends");
    assert_eq!(audit.seal().await, Ok(63));
    assert_eq!(report(&audit).await.divergence, None);
}

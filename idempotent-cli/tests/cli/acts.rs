//! `resume`, `invalidate`, `purge` and `migrate`.

use std::process::{Command, Stdio};

use expect_test::expect;
use idempotent_runtime::{Error, operate::State};
use sqlx::{AssertSqlSafe, PgPool};

use crate::shop::{Ran, Shop, on_every_store};

on_every_store! {
    what_is_parked_is_tried_again
    an_outcome_is_given_up
    a_record_that_moved_is_refused
    nothing_is_changed_without_an_answer
    what_has_expired_is_purged
    what_is_kept_for_an_audit_is_not_purged
    a_migration_twice_changes_nothing
}

const SIGNED: [&str; 3] = ["--reason", "the gateway is up again", "--yes"];

async fn what_is_parked_is_tried_again(shop: Shop) {
    let id = shop.charged("order-1").await;
    shop.put(id, State::Parked, None).await;
    let resumed = shop.run(&[&["resume", &id.to_hex()][..], &SIGNED].concat());
    assert_eq!(resumed.code, 0, "{}", resumed.all());
    let call = shop.idem.call("payments.charge").key("order-1");
    let again = call.run(async |_| Ok::<_, Error>("again".to_owned())).await;
    assert_eq!(again.as_deref(), Ok("again"));
}

async fn an_outcome_is_given_up(shop: Shop) {
    let id = shop.charged("order-1").await.to_hex();
    let act = [&["invalidate", &id][..], &SIGNED].concat();
    expect![[r#"
        RECORD
        id  a7ba5fc94c5f57f35a1bdf77107a7ebc7ce5315b143a7713cc865cf46645ade3
        operation  payments.charge
        key  "order-1"
        state  done
        attempt  1
        holder  till-3
        created  TIME (AGO)
        finished  TIME (AGO)
        lease end  TIME (SOON)
        expires  TIME (SOON)
        version  VERSION
        outcome  value, 20 bytes

        Its outcome will answer no call any more: the next call with its key RUNS ONCE MORE.
        By anna@HOST because: the gateway is up again
        Done: the next call runs once more.
        exit code 0
    "#]]
    .assert_eq(&shop.run(&act).all());
    let call = shop.idem.call("payments.charge").key("order-1");
    let again = call.run(async |_| Ok::<_, Error>("again".to_owned())).await;
    assert_eq!(again.as_deref(), Ok("again"));
}

async fn a_record_that_moved_is_refused(shop: Shop) {
    let id = shop.charged("order-1").await;
    let hex = id.to_hex();
    let version = shop.raw(&["show", &hex, "--json"]).0;
    let (_, version) = version.split_once(r#""version":""#).expect("a version");
    shop.put(id, State::Parked, Some(("bert", "I look at it")))
        .await;
    let act = ["resume", &hex, "--at-version", &version[..32]];
    expect![[r#"
        idempotent: the record has moved: it was written by bert, till-3 held it last, and its version is VERSION now
        exit code 4
    "#]]
    .assert_eq(&shop.run(&[&act[..], &SIGNED].concat()).all());
}

async fn nothing_is_changed_without_an_answer(shop: Shop) {
    let id = shop.charged("order-1").await.to_hex();
    expect![[r#"
        RECORD
        id  a7ba5fc94c5f57f35a1bdf77107a7ebc7ce5315b143a7713cc865cf46645ade3
        operation  payments.charge
        key  "order-1"
        state  done
        attempt  1
        holder  till-3
        created  TIME (AGO)
        finished  TIME (AGO)
        lease end  TIME (SOON)
        expires  TIME (SOON)
        version  VERSION
        outcome  value, 20 bytes

        Its outcome will answer no call any more: the next call with its key RUNS ONCE MORE.
        By anna@HOST because: r
        idempotent: no terminal can be asked: say `--yes` to act without a question
        exit code 2
    "#]]
    .assert_eq(&shop.run(&["invalidate", &id, "--reason", "r"]).all());
    let unsigned = shop.run(&["invalidate", &id, "--yes"]);
    assert_eq!(unsigned.code, 2, "{}", unsigned.all());
}

async fn what_has_expired_is_purged(shop: Shop) {
    let call = shop
        .idem
        .call("codes.send")
        .key("c")
        .ttl("150ms")
        .lease("100ms");
    call.run(async |_| Ok::<_, Error>(1))
        .await
        .expect("it runs");
    loop {
        let listed = shop.run(&["list", "--operation", "codes.send"]);
        if listed.code == 3 {
            return;
        }
        let purged = shop.run(&["purge", "--audit-retention", "0s"]);
        assert!(
            purged.out.ends_with(" records were deleted.\n"),
            "{}",
            purged.all()
        );
    }
}

async fn what_is_kept_for_an_audit_is_not_purged(shop: Shop) {
    let call = shop
        .idem
        .call("codes.send")
        .key("c")
        .ttl("150ms")
        .lease("100ms");
    call.run(async |_| Ok::<_, Error>(1))
        .await
        .expect("it runs");
    let kept = shop.run(&["purge", "--audit-retention", "1h"]);
    assert_eq!(kept.out, "0 records were deleted.\n", "{}", kept.all());
    let unsaid = shop.run(&["purge"]);
    assert_eq!(unsaid.code, 2, "{}", unsaid.all());
}

async fn a_migration_twice_changes_nothing(shop: Shop) {
    shop.charged("order-1").await;
    let (first, second) = (shop.run(&["migrate"]), shop.run(&["migrate"]));
    assert_eq!(first.all(), second.all());
    let ddl = shop.run(&["ddl", "--outbox"]);
    match first.code {
        0 => assert!(ddl.out.contains("CREATE TABLE"), "{}", ddl.all()),
        code => assert_eq!((code, ddl.code), (2, 2), "Redis has no tables"),
    }
    assert_eq!(shop.run(&["list"]).code, 0);
}

/// A command that waits for a lock ends at Ctrl-C, and the same command does the rest later.
#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn a_command_that_is_interrupted_ends_and_can_be_given_again() {
    let shop = Shop::postgres().await;
    let call = shop.idem.call("codes.send").key("c");
    let call = call.ttl("150ms").lease("100ms");
    let sent = call.run(async |_| Ok::<_, Error>(1)).await;
    sent.expect("it runs");
    let pool = PgPool::connect(shop.url()).await.expect("a server");
    let table = format!("{}records", shop.prefix().expect("a prefix"));
    let mut lock = pool.begin().await.expect("a transaction");
    let locks = format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
    sqlx::raw_sql(AssertSqlSafe(locks))
        .execute(&mut *lock)
        .await
        .expect("it is locked");
    let purge = ["purge", "--audit-retention", "0s"];
    for arguments in [&purge[..], &["list"]] {
        let began: String = sqlx::query_scalar("SELECT clock_timestamp()::text")
            .fetch_one(&pool)
            .await
            .expect("a time");
        let mut command = shop.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it runs");
        // Its own connection: a vacuum may wait for the table, too.
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'client backend'
             AND backend_start > $2::timestamptz AND wait_event_type = 'Lock' AND position($1 IN query) > 0)";
        while !sqlx::query_scalar::<_, bool>(waits)
            .bind(&table)
            .bind(&began)
            .fetch_one(&pool)
            .await
            .expect("an answer")
        {
            tokio::task::yield_now().await;
        }
        let interrupt = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(interrupt.expect("a signal").success());
        let ended = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, 1, "{}", ended.all());
        assert!(
            ended.err.starts_with("idempotent: stopped"),
            "{}",
            ended.all()
        );
    }
    lock.rollback().await.expect("the lock is free");
    loop {
        let rest = shop.run(&purge);
        match rest.out.as_str() {
            "0 records were deleted.\n" => {}
            out => break assert_eq!(out, "1 records were deleted.\n", "{}", rest.all()),
        }
    }
}

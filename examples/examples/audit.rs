//! Payments whose records somebody tampers with, and the audit that shows it.
//!
//! `cargo run --example audit` from the root. Three orders are paid, and one of them is settled by
//! hand, because its gateway did not answer. The database writes an entry for each change, and a
//! sealer chains them. Then somebody changes one row by plain SQL, behind the back of the triggers.
//! The program exits with 1 where the verification does not show it.
//!
//! With `-- --unprotected` there is no audit, and nothing shows it.

use std::{env, process::ExitCode};

use idempotent_audit::Audit;
use idempotent_runtime::{BoxError, Error, Idempotency, store::SqliteStore};
use sqlx::{
    Row, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let folder = tempfile::tempdir()?;
    let file = SqliteConnectOptions::new().filename(folder.path().join("shop.db"));
    let file = file
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePool::connect_with(file).await?;
    let store = SqliteStore::builder().pool(pool.clone())?;
    store.migrate().await?;

    let is_audited = !env::args().any(|argument| argument == "--unprotected");
    let audit = match is_audited {
        true => {
            let audit = Audit::sqlite(pool.clone());
            audit.migrate().await?;
            Some(audit.connect().await?)
        }
        false => None,
    };
    let idem = Idempotency::builder(store).holder_name("till-3");
    let idem = match &audit {
        Some(audit) => idem.audit(audit.clone()),
        None => idem,
    };
    let idem = idem.build()?;

    pay_and_settle(&idem).await?;
    if let Some(audit) = &audit {
        println!("{} entries are sealed.", audit.seal().await?);
        show(&pool).await?;
        let before = audit.verify().run().await?;
        if let Some(divergence) = before.divergence {
            println!("Nobody has tampered yet, and it diverges: {divergence:?}");
            return Ok(ExitCode::FAILURE);
        }
    }

    println!("\nSomebody turns an entry into another one, by plain SQL.");
    tamper(&pool, is_audited).await?;
    let Some(audit) = audit else {
        println!("There is no audit: nothing shows it.");
        return Ok(ExitCode::FAILURE);
    };
    match audit.verify().run().await?.divergence {
        Some(divergence) => {
            println!(
                "The verification shows it: {:?} of entry {:?}, in batch {:?}.",
                divergence.kind, divergence.number, divergence.batch
            );
            Ok(ExitCode::SUCCESS)
        }
        None => {
            println!("The verification does not show it.");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Pays three orders. The gateway does not answer for the last one, so a person finds out.
async fn pay_and_settle(idem: &Idempotency) -> Result<(), BoxError> {
    for order in ["order-1", "order-2"] {
        let call = idem.call("payments.charge").key(order);
        let receipt = call
            .run(async |_| Ok::<_, Error>(format!("receipt for {order}")))
            .await?;
        println!("{order}: {receipt}");
    }
    let silent = idem
        .call("payments.charge")
        .key("order-3")
        .uncertain_errors();
    let silent =
        silent.run(async |_| Err::<String, _>(Error::InvalidPolicy("the gateway is silent")));
    if let Err(error) = silent.await {
        println!("order-3: {error}");
    }
    let settle = idem.settle("payments.charge", None::<&str>, "order-3")?;
    let settle = settle.by("anna").because("row 7 of the gateway's log");
    settle.with_value(&"receipt for order-3").await
}

/// Shows the trail as it stands in the table.
async fn show(pool: &SqlitePool) -> Result<(), BoxError> {
    let entries = "SELECT number, kind, coalesce(label, operation) AS what, state_before, state_after, note_by, note
                   FROM idempotent_audit ORDER BY number";
    for entry in sqlx::query(entries).fetch_all(pool).await? {
        let (number, kind): (i64, String) = (entry.get("number"), entry.get("kind"));
        let what: Option<String> = entry.get("what");
        let states: (Option<i64>, Option<i64>) =
            (entry.get("state_before"), entry.get("state_after"));
        let person: Option<String> = entry.get("note_by");
        let person = person.map_or(String::new(), |person| format!(", by {person}"));
        println!(
            "{number:3} {kind:9} {} {states:?}{person}",
            what.unwrap_or_default()
        );
    }
    Ok(())
}

/// Another person is to have settled the order.
async fn tamper(pool: &SqlitePool, is_audited: bool) -> Result<(), BoxError> {
    let change = match is_audited {
        true => "UPDATE idempotent_audit SET note_by = 'bert' WHERE kind = 'operator'",
        false => "UPDATE idempotent_records SET note_by = 'bert' WHERE note_by IS NOT NULL",
    };
    let changed = sqlx::query(change).execute(pool).await?.rows_affected();
    assert_eq!(changed, 1, "one row is tampered with");
    Ok(())
}

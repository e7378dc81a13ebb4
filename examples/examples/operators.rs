//! Payments whose gateway did not answer, and an operator who finds out about each of them.
//!
//! `cargo run --example operators` from the root. The gateway writes its log into a file. It takes
//! four of six charges, and answers two. A caller that hears nothing must not charge again, so four
//! calls are uncertain. An operator lists them, reads the log, and settles each. Then every caller
//! asks once more, and gets its answer. The program counts the charges in the log.
//!
//! With `-- --unprotected` the callers do as they do without a record: they charge again.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use idempotent_runtime::{BoxError, Error, Idempotency, Verdict, store::SqliteStore};

/// The gateway's behaviour: whether it takes a charge, and whether it answers.
const GATEWAY: [(&str, bool, bool); 6] = [
    ("order-1", true, true),
    ("order-2", true, false),
    ("order-3", false, false),
    ("order-4", true, false),
    ("order-5", false, false),
    ("order-6", true, true),
];

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("gateway.log");
    fs::write(&log, "")?;
    if env::args().any(|argument| argument == "--unprotected") {
        for (order, takes, answers) in GATEWAY {
            if charge(&log, order, takes, answers).is_err() {
                charge(&log, order, true, true)?;
            }
        }
        return judge(&log, &[]);
    }
    let store = SqliteStore::open(folder.path().join("idempotency.db")).await?;
    let idem = Idempotency::new(store);
    for (order, takes, answers) in GATEWAY {
        let answer = pay(&idem, &log, order, takes, answers).await;
        let shown = answer.map_err(|error| error.to_string());
        println!("{order}: {shown:?}");
    }

    println!("\nWhat needs somebody:");
    let page = idem.records().attention().page(50).await?;
    for row in page.rows {
        let key = row.key.unwrap_or_default();
        let order = key.trim_matches('"');
        let settle = idem.settle_id(row.id).await?;
        let settle = settle.at_version(row.version).by("anna");
        match charges(&log, order)? {
            0 => {
                let settle = settle.because("it is not in the gateway's log");
                let refused = PaymentError::Refused("it was not charged".to_owned());
                settle.with_error(&refused).await?;
                println!("  {order} {:?}: it did not happen", row.state);
            }
            _ => {
                let settle = settle.because("it is in the gateway's log");
                settle.with_value(&format!("receipt of {order}")).await?;
                println!("  {order} {:?}: it happened", row.state);
            }
        }
    }
    let left = idem.records().attention().count().await?;
    println!("  {} are left\n\nThe callers ask once more:", left.records);
    let mut receipts = Vec::new();
    for (order, ..) in GATEWAY {
        let answer = pay(&idem, &log, order, true, true).await;
        println!("{order}: {answer:?}");
        receipts.extend(answer.is_ok().then_some(order));
    }
    judge(&log, &receipts)
}

/// Pays once, whoever asks how often.
async fn pay(
    idem: &Idempotency,
    log: &Path,
    order: &str,
    takes: bool,
    answers: bool,
) -> Result<String, PaymentError> {
    let log = PathBuf::from(log);
    let call = idem.call("payments.charge").key(order);
    // Without an answer, nobody knows whether the money has moved.
    let call = call.classify_errors(|_: &PaymentError| Verdict::Uncertain);
    call.run(async |_| charge(&log, order, takes, answers).map_err(PaymentError::Gateway))
        .await
}

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
enum PaymentError {
    #[error("{0}")]
    Gateway(String),
    #[error("{0}")]
    Refused(String),
}

impl From<Error> for PaymentError {
    fn from(error: Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// The gateway: a charge is a line in its log.
fn charge(log: &Path, order: &str, takes: bool, answers: bool) -> Result<String, String> {
    if takes {
        let charged = fs::read_to_string(log).map_err(|error| error.to_string())?;
        fs::write(log, format!("{charged}{order}\n")).map_err(|error| error.to_string())?;
    }
    match answers {
        true => Ok(format!("receipt of {order}")),
        false => Err("the gateway did not answer".to_owned()),
    }
}

/// How often the gateway has charged for this order.
fn charges(log: &Path, order: &str) -> Result<usize, BoxError> {
    Ok(fs::read_to_string(log)?
        .lines()
        .filter(|it| *it == order)
        .count())
}

/// Counts the charges where they are.
fn judge(log: &Path, receipts: &[&str]) -> Result<ExitCode, BoxError> {
    let mut wrong = 0;
    println!("\nThe gateway's log:");
    for (order, ..) in GATEWAY {
        let charged = charges(log, order)?;
        let promised = usize::from(receipts.contains(&order));
        let is_right = charged <= 1 && (receipts.is_empty() || charged == promised);
        wrong += usize::from(!is_right);
        println!(
            "  {order} {charged} charged{}",
            if is_right { "" } else { "   WRONG" }
        );
    }
    match wrong {
        0 => {
            println!("No order was charged twice, and each receipt has its charge.");
            Ok(ExitCode::SUCCESS)
        }
        wrong => {
            println!("WRONG: {wrong} orders.");
            Ok(ExitCode::FAILURE)
        }
    }
}

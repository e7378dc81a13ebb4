//! The worker: a process that applies what is delivered, and may be killed at any moment.

use std::{
    collections::VecDeque,
    io::{Write as _, stdin, stdout},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use idempotent_runtime::{Idempotency, store::SqliteStore};
use serde::{Deserialize, Serialize};

use super::{Failure, account, books, plan::Events};

/// The name of this process on its command line.
pub(super) const ROLE: &str = "--worker";

/// The deliveries that this process is to handle, each with the number of its event. They come by
/// standard input.
#[derive(Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) file: PathBuf,
    pub(super) protected: bool,
    pub(super) deliveries: VecDeque<(usize, u64)>,
}

/// Handles all of them in four tasks. It says `begin` and the delivery before each one, and `end`
/// after it. In between it says `gap` for each gap.
#[tokio::main]
pub(super) async fn run() -> Result<(), Failure> {
    let work: Work = serde_json::from_reader(stdin().lock())?;
    let pool = books::open(&work.file).await?;
    let idem = Idempotency::new(SqliteStore::open(&work.file).await?);
    let source = Arc::new(Events::plan());
    let deliveries = Arc::new(Mutex::new(work.deliveries));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (pool, stream) = (pool.clone(), account::stream(&idem));
        let (source, deliveries) = (Arc::clone(&source), Arc::clone(&deliveries));
        tasks.spawn(async move {
            let next = || {
                let mut deliveries = deliveries.lock().unwrap_or_else(PoisonError::into_inner);
                deliveries.pop_front()
            };
            while let Some((delivery, number)) = next() {
                say("begin", delivery)?;
                if work.protected {
                    let gaps = account::deliver(&pool, &stream, &source, number).await?;
                    (0..gaps).try_for_each(|_| say("gap", delivery))?;
                } else {
                    books::book_unprotected(&pool, source.read(number)).await?;
                }
                say("end", delivery)?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

fn say(word: &str, delivery: usize) -> Result<(), Failure> {
    let mut output = stdout().lock();
    writeln!(output, "{word} {delivery}")?;
    Ok(output.flush()?)
}

//! Sends the orders, starts two workers, and troubles them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::{self, ExitCode, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

use crate::{
    Failure, books,
    broker::Broker,
    network::between,
    orders::{Mishap, messages},
    report::report,
    server::Server,
    worker::{self, Work},
};

const WORKERS: usize = 2;

/// Longer than a message takes to come again.
const QUIET: Duration = Duration::from_secs(4);

const ROUNDS: u32 = 10;

/// A word of a worker, and the id of the message.
type Said = (String, String);

/// All that the workers have said.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) words: BTreeMap<String, u32>,
    settled: BTreeSet<String>,
}

pub(crate) fn run<B: Broker>(protected: bool) -> Result<ExitCode, Failure> {
    match Server::find::<B>()? {
        Some(server) => at::<B>(&server.url, protected),
        None => Ok(ExitCode::from(2)),
    }
}

#[tokio::main]
async fn at<B: Broker>(url: &str, protected: bool) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir()?;
    let work = Work {
        url: url.to_owned(),
        queue: format!("orders-{}", process::id()),
        file: folder.path().join("books.db"),
        protected,
    };
    let pool = books::create(&work.file).await?;
    let broker = B::connect(url, &work.queue).await?;
    let messages = messages()?;
    for message in &messages {
        broker.publish(&message.id, &message.body).await?;
    }
    let seen = consume(&work, messages.len(), &broker).await?;
    let invoices = books::invoices(&pool).await?;
    let dead_letters = broker.dead_letters().await?;
    broker.delete().await?;
    pool.close().await;
    Ok(report::<B>(messages.len(), &seen, &invoices, &dead_letters))
}

/// Has two workers compete for the messages until the broker has none. A worker may be killed
/// between an acknowledgement and its word.
async fn consume<B: Broker>(work: &Work, messages: usize, broker: &B) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    for _ in 0..ROUNDS {
        round(work, messages, &mut seen).await?;
        if seen.settled.len() == messages || broker.is_drained().await? {
            return Ok(seen);
        }
    }
    Err("the broker does not deliver everything".into())
}

/// Has them work until each message is settled, or nothing has happened for a while.
async fn round(work: &Work, messages: usize, seen: &mut Seen) -> Result<(), Failure> {
    let (tell, mut told) = mpsc::unbounded_channel();
    // They end with this.
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(trouble(work.clone(), tell.clone()));
    }
    while seen.settled.len() < messages {
        let said = tokio::select! {
            said = timeout(QUIET, told.recv()) => said,
            Some(ended) = workers.join_next() => {
                ended??;
                continue;
            }
        };
        let Ok(Some((word, id))) = said else {
            break;
        };
        if word == "settled" {
            seen.settled.insert(id);
        }
        *seen.words.entry(word).or_default() += 1;
    }
    Ok(())
}

/// Starts a worker whose connection can be cut, and starts it again after each kill.
async fn trouble(mut work: Work, tell: mpsc::UnboundedSender<Said>) -> Result<(), Failure> {
    let (proxy, url) = between(&work.url).await?;
    work.url = url;
    loop {
        let mut worker = Command::new(env::current_exe()?)
            .args([worker::ROLE, &serde_json::to_string(&work)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = worker.stdout.take().ok_or("the worker says nothing")?;
        let mut lines = BufReader::new(said).lines();
        let mut was_killed = false;
        while let Some(line) = lines.next_line().await? {
            // The last line of a process that was killed may be cut.
            let Some((word, id)) = line.split_once(' ') else {
                continue;
            };
            if word == Mishap::Kill.name() {
                worker.start_kill()?;
                was_killed = true;
            } else if word == Mishap::Cut.name() {
                proxy.cut_all();
            }
            let _ = tell.send((word.to_owned(), id.to_owned()));
        }
        let ended = worker.wait().await?;
        if !was_killed {
            return Err(format!("a worker failed: {ended}").into());
        }
    }
}

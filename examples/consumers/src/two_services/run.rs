//! Starts both services, kills them at random, and restarts the broker.

use std::{
    collections::{BTreeMap, VecDeque},
    env,
    process::{ExitCode, Stdio},
    time::Duration,
};

use idempotent_runtime::outbox::Outbox;
use sqlx::SqlitePool;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    plan::{Service, Work, committed},
    report::report,
    server::{Local, Server},
};
use crate::{Failure, books, server::is_installed};

/// How often each service is killed.
pub(super) const KILLS: u32 = 4;

/// Longer than a message takes to come again.
const QUIET: Duration = Duration::from_millis(1_500);

/// A run that is not over by then is a wrong one: a busy machine takes a minute at most.
const LONGEST: Duration = Duration::from_secs(300);

/// How often each word was said.
pub(super) type Words = BTreeMap<String, u32>;

pub(super) fn run<B: Local>(protected: bool) -> Result<ExitCode, Failure> {
    if is_installed(B::PROGRAM) {
        return at::<B>(protected);
    }
    eprintln!(
        "There is no `{0}` in the path. Install it (`apt-get install {0}`): this program starts a broker of its own, \
         to restart it.",
        B::PROGRAM
    );
    Ok(ExitCode::from(2))
}

#[tokio::main]
async fn at<B: Local>(protected: bool) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir()?;
    let server = Server::start::<B>(folder.path()).await?;
    let work = Work {
        url: server.url::<B>(),
        folder: folder.path().to_owned(),
        protected,
    };
    let orders = create(&work, Service::Orders).await?;
    let invoices = create(&work, Service::Invoices).await?;
    Outbox::sqlite(orders.clone()).migrate().await?;
    let words = watch::<B>(&work, server, [&orders, &invoices]).await?;
    for pool in [orders, invoices] {
        pool.close().await;
    }
    report::<B>(&work, &words).await
}

async fn create(work: &Work, service: Service) -> Result<SqlitePool, Failure> {
    let pool = books::open(&work.file(service)).await?;
    sqlx::raw_sql(service.table()).execute(&pool).await?;
    Ok(pool)
}

/// Has both services run until all is done and both have said nothing for a while.
async fn watch<B: Local>(
    work: &Work,
    mut server: Server,
    [orders, invoices]: [&SqlitePool; 2],
) -> Result<Words, Failure> {
    let (tell, mut told) = mpsc::unbounded_channel();
    // They end with this.
    let mut services = JoinSet::new();
    for (service, pool) in [(Service::Orders, orders), (Service::Invoices, invoices)] {
        let killer = Killer::new(service, pool.clone());
        services.spawn(keep(B::NAME, work.clone(), killer, tell.clone()));
    }
    let (mut words, began) = (Words::new(), Instant::now());
    let restarts_at = rand::random_range(committed() / 4..committed() / 2);
    while began.elapsed() < LONGEST {
        tokio::select! {
            word = timeout(QUIET, told.recv()) => match word {
                Ok(Some(word)) => *words.entry(word).or_default() += 1,
                _ if is_over(orders, invoices).await? => return Ok(words),
                _ => {}
            },
            Some(ended) = services.join_next() => ended??,
        }
        let settled = words.get(Service::Invoices.step()).copied();
        if settled >= Some(restarts_at) && !words.contains_key("restarted") {
            server.restart::<B>().await?;
            words.insert("restarted".to_owned(), 1);
        }
    }
    Ok(words)
}

/// Whether all orders are there, their messages are sent, and the invoices are written.
async fn is_over(orders: &SqlitePool, invoices: &SqlitePool) -> Result<bool, Failure> {
    let unsent = "SELECT count(*) FROM idempotent_outbox_messages";
    let unsent: u32 = sqlx::query_scalar(unsent).fetch_one(orders).await?;
    Ok(unsent == 0
        && Service::Orders.is_done(orders).await?
        && Service::Invoices.is_done(invoices).await?)
}

/// Kills a service at random points of its work.
struct Killer {
    service: Service,
    pool: SqlitePool,
    /// How many orders the service has handled.
    steps: u32,
    kills_at: VecDeque<u32>,
}

impl Killer {
    fn new(service: Service, pool: SqlitePool) -> Self {
        let part = committed() / (KILLS + 1);
        let kills_at = (0..KILLS).map(|kill| kill * part + rand::random_range(1..=part));
        Self {
            service,
            pool,
            steps: 0,
            kills_at: kills_at.collect(),
        }
    }

    /// Kills the process where a kill is due; whether it did. A kill counts only where the process
    /// lives and has work to do.
    async fn after_step(&mut self, process: &mut Child) -> Result<bool, Failure> {
        self.steps += 1;
        if self.kills_at.front().is_none_or(|at| self.steps < *at) {
            return Ok(false);
        }
        // Somewhere in what it does next.
        sleep(Duration::from_micros(rand::random_range(0..20_000))).await;
        if process.try_wait()?.is_some() || self.service.is_done(&self.pool).await? {
            return Ok(false);
        }
        process.start_kill()?;
        self.kills_at.pop_front();
        Ok(true)
    }
}

/// Starts a service, and starts it again after each kill.
async fn keep(
    broker: &'static str,
    work: Work,
    mut killer: Killer,
    tell: mpsc::UnboundedSender<String>,
) -> Result<(), Failure> {
    let service = killer.service;
    loop {
        let mut process = Command::new(env::current_exe()?)
            .args([broker, service.role(), &serde_json::to_string(&work)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = process.stdout.take().ok_or("the service says nothing")?;
        let mut lines = BufReader::new(said).lines();
        let mut was_killed = false;
        while let Some(line) = lines.next_line().await? {
            // The last line of a process that was killed may be cut.
            let Some((word, _)) = line.split_once(' ') else {
                continue;
            };
            let _ = tell.send(word.to_owned());
            if word == service.step() && !was_killed && killer.after_step(&mut process).await? {
                was_killed = true;
                let _ = tell.send(service.kill().to_owned());
            }
        }
        let ended = process.wait().await?;
        if !was_killed {
            return Err(format!("a service failed: {} {ended}", service.role()).into());
        }
    }
}

//! One ledger behind each broker: its consumers are killed and cut off at random, and each transfer
//! is applied once.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, process,
    time::Duration,
};

use broker_tests::{
    Work,
    database::Ledger,
    plan::{self, Plan},
};
use consumer_examples::{broker::Broker, nats::Nats, network::between, rabbitmq::RabbitMq};
use idempotent_runtime::testing::Proxy;
use rand::{RngExt, rngs::StdRng};
use sqlx::{MySql, Pool, Postgres};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

const CONSUMERS: usize = 3;

/// Longer than a message takes to come again.
const QUIET: Duration = Duration::from_secs(4);

/// Far more than a run takes.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test]
#[ignore = "needs a server"]
async fn on_nats_and_postgres_each_transfer_is_applied_once() {
    run::<Nats, Postgres>("NATS").await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn on_nats_and_mariadb_each_transfer_is_applied_once() {
    run::<Nats, MySql>("NATS").await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn on_rabbitmq_and_postgres_each_transfer_is_applied_once() {
    run::<RabbitMq, Postgres>("RABBITMQ").await;
}

#[tokio::test]
#[ignore = "needs a server"]
async fn on_rabbitmq_and_mariadb_each_transfer_is_applied_once() {
    run::<RabbitMq, MySql>("RABBITMQ").await;
}

/// A word of a consumer, and the id of the message.
type Said = (usize, String, String);

/// One consumer, which is killed and cut off.
struct Victim {
    process: Child,
    proxy: Proxy,
    work: Work,
    /// The messages that it has begun, and not ended.
    open: BTreeSet<String>,
}

struct Run {
    victims: Vec<Victim>,
    random: StdRng,
    tell: mpsc::UnboundedSender<Said>,
    told: mpsc::UnboundedReceiver<Said>,
    /// Kills that hit an open call.
    kills: u32,
    cuts: u32,
}

async fn run<B: Broker, DB: Ledger>(broker: &str) {
    // The long form kills about each second; the short one has little time.
    let (messages, pause) = match env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => (2_000, 600..1_400),
        _ => (1_500, 150..450),
    };
    let seed = env::var("IDEMPOTENT_TEST_SEED").map_or_else(|_| rand::random(), seed_of);
    println!("IDEMPOTENT_TEST_SEED={seed}");
    let mut random = plan::random(seed);
    let plan = Plan::draw(messages, &mut random);

    let database = Fresh::<DB>::create().await;
    let url = env::var(format!("IDEMPOTENT_TEST_{broker}_URL")).expect("a broker");
    let queue = format!("ledger-{}-{}", process::id(), &DB::NAME[..2]);
    let broker = B::connect(&url, &queue).await.expect("a connection");
    for (id, body) in &plan.sent {
        broker.publish(id, body).await.expect("the broker takes it");
    }
    let work = Work {
        broker: B::NAME.to_owned(),
        url,
        queue,
        database: database.url.clone(),
    };
    let run = drain(&work, &broker, random, pause).await;
    let dead_letters = broker.dead_letters().await.expect("dead letters");
    broker.delete().await.expect("the queues go");

    println!("{} kills of open calls, {} cuts", run.kills, run.cuts);
    assert!(run.kills >= 3, "only {} kills hit an open call", run.kills);
    let dead: BTreeSet<_> = dead_letters
        .into_iter()
        .map(|it| (it.id, it.reason))
        .collect();
    assert_eq!(dead, plan.dead);
    database.assert_holds(&plan).await;
}

fn seed_of(seed: String) -> u64 {
    seed.parse().expect("a seed is a number")
}

/// Has the consumers work until the broker has nothing left.
async fn drain<B: Broker>(
    work: &Work,
    broker: &B,
    random: StdRng,
    pause: std::ops::Range<u64>,
) -> Run {
    let (tell, told) = mpsc::unbounded_channel();
    let mut run = Run {
        victims: Vec::new(),
        random,
        tell,
        told,
        kills: 0,
        cuts: 0,
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        run.start(work).await;
        run.trouble(&pause).await;
        run.stop().await;
        if broker.is_drained().await.expect("the broker answers") {
            return run;
        }
    }
    panic!("the broker does not deliver everything");
}

impl Run {
    async fn start(&mut self, work: &Work) {
        for number in 0..CONSUMERS {
            let (proxy, url) = between(&work.url).await.expect("a proxy");
            let work = Work {
                url,
                ..work.clone()
            };
            let process = consumer(&work, number, &self.tell);
            self.victims.push(Victim {
                process,
                proxy,
                work,
                open: BTreeSet::new(),
            });
        }
    }

    async fn stop(&mut self) {
        for mut victim in self.victims.drain(..) {
            victim.process.kill().await.expect("it is killed");
        }
        while self.told.try_recv().is_ok() {}
    }

    /// Kills and cuts until nothing happens any more.
    async fn trouble(&mut self, pause: &std::ops::Range<u64>) {
        let mut next = self.moment(pause);
        let mut heard = Instant::now();
        while heard.elapsed() < QUIET {
            tokio::select! {
                Some(said) = self.told.recv() => {
                    if said.1 != "later" {
                        heard = Instant::now();
                    }
                    self.hear(said);
                }
                () = sleep_until(next) => {
                    self.strike().await;
                    next = self.moment(pause);
                }
            }
        }
    }

    fn moment(&mut self, pause: &std::ops::Range<u64>) -> Instant {
        let pause = self.random.random_range(pause.clone());
        Instant::now() + Duration::from_millis(pause)
    }

    fn hear(&mut self, (consumer, word, id): Said) {
        let victim = &mut self.victims[consumer];
        if word == "begin" {
            victim.open.insert(id);
        } else {
            victim.open.remove(&id);
        }
    }

    /// Kills a consumer, or cuts its connections.
    async fn strike(&mut self) {
        let number = self.random.random_range(0..CONSUMERS);
        let victim = &mut self.victims[number];
        if self.random.random_bool(0.3) {
            victim.proxy.cut_all();
            self.cuts += 1;
            return;
        }
        victim.process.kill().await.expect("it is killed");
        self.kills += u32::from(!victim.open.is_empty());
        victim.open.clear();
        victim.process = consumer(&victim.work, number, &self.tell);
    }
}

/// Starts a consumer, and hears it.
fn consumer(work: &Work, number: usize, tell: &mpsc::UnboundedSender<Said>) -> Child {
    let work = serde_json::to_string(work).expect("it is plain data");
    let mut process = Command::new(env!("CARGO_BIN_EXE_ledger-consumer"))
        .arg(work)
        .stdin(process::Stdio::piped())
        .stdout(process::Stdio::piped())
        .stderr(process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let said = process.stdout.take().expect("it is piped");
    let tell = tell.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(said).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            // The last line of a process that was killed may be cut.
            if let Some((word, id)) = line.split_once(' ') {
                let _ = tell.send((number, word.to_owned(), id.to_owned()));
            }
        }
    });
    process
}

/// A database of this run's own.
struct Fresh<DB: Ledger> {
    pool: Pool<DB>,
    server: Pool<DB>,
    name: String,
    url: String,
}

impl<DB: Ledger> Fresh<DB> {
    async fn create() -> Self {
        let server_url = env::var(DB::VARIABLE).expect("a database");
        let server = DB::open(&server_url).await.expect("a connection");
        let name = format!("brokers_{}_{}", process::id(), rand::random::<u32>());
        let mut connection = server.acquire().await.expect("a connection");
        let create = format!("CREATE DATABASE {name}");
        DB::run(&mut connection, create).await.expect("a database");
        let (before, _) = server_url.rsplit_once('/').expect("an address");
        let url = format!("{before}/{name}");
        let pool = DB::open(&url).await.expect("a connection");
        DB::create(&pool).await.expect("tables");
        drop(connection);
        Self {
            pool,
            server,
            name,
            url,
        }
    }

    /// Each transfer is applied once, and every account has what the plan says.
    async fn assert_holds(self, plan: &Plan) {
        let entries = "SELECT number, count(*) FROM entries GROUP BY number";
        let entries = DB::pairs(&self.pool, entries).await.expect("the entries");
        let twice: Vec<_> = entries.iter().filter(|(_, count)| *count != 2).collect();
        assert!(twice.is_empty(), "not applied once: {twice:?}");
        let applied: BTreeSet<i64> = entries.into_iter().map(|(number, _)| number).collect();
        let lost: Vec<_> = plan.applied.difference(&applied).collect();
        assert!(lost.is_empty(), "acknowledged and not applied: {lost:?}");
        assert_eq!(applied, plan.applied);
        let balances = "SELECT id, cents FROM accounts";
        let balances = DB::pairs(&self.pool, balances).await.expect("the balances");
        let balances: BTreeMap<i64, i64> = balances.into_iter().collect();
        assert_eq!(balances, plan.balances);
        self.pool.close().await;
        let drop = format!("DROP DATABASE {}", self.name);
        let mut connection = self.server.acquire().await.expect("a connection");
        // A consumer that was killed may still be known to the server.
        let _ = timeout(QUIET, DB::run(&mut connection, drop)).await;
    }
}

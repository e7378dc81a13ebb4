//! A partitioned log, such as Kafka, whose consumer keeps its offsets in the database.

mod app;
mod log;
mod producers;
mod recipe;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    future::{Future, poll_fn},
    path::Path,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use idempotent_runtime::consumer::Disposition;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sqlx::PgPool;
use tokio::time::timeout;

use self::{
    app::{App, Database, Message, Position, TOPIC},
    log::Log,
    recipe::{process, seek},
};
use super::assert_ack;

const MEMBERS: usize = 3;

/// The group of one round, and what it has met.
struct Round {
    seed: u64,
    database: Database,
    log: Log,
    fenced: AtomicUsize,
    kills: AtomicUsize,
    rebalances: AtomicUsize,
}

/// A member of the group goes on until everything is read.
async fn consume(round: &Round, app: &App, member: usize, rng: &mut StdRng) {
    let mut held: HashMap<i32, Position> = HashMap::new();
    let mut known = None;
    while !is_read(round, &app.pool).await {
        let (generation, assigned) = round.log.assigned(member);
        if known != Some(generation) {
            held.clear();
            known = Some(generation);
        }
        for partition in assigned {
            let at = match held.get(&partition) {
                Some(at) => *at,
                None => seek(app, TOPIC, partition).await.expect("a position"),
            };
            match read_some(round, app, (partition, at), rng).await {
                Some(at) => held.insert(partition, at),
                None => held.remove(&partition),
            };
        }
        tokio::task::yield_now().await;
    }
}

/// Works on the messages of one fetch, even if another member gets the partition meanwhile. Returns
/// the new position, or nothing if the consumer has to seek.
async fn read_some(
    round: &Round,
    app: &App,
    (partition, mut at): (i32, Position),
    rng: &mut StdRng,
) -> Option<Position> {
    for it in round.log.fetch(partition, at.next, rng.random_range(1..6)) {
        if rng.random_range(0..6) == 0 {
            round.log.rebalance(rng, MEMBERS);
            round.rebalances.fetch_add(1, Ordering::SeqCst);
        }
        match process(app, &it, at).await {
            Ok(Some(Disposition::Ack { .. } | Disposition::DeadLetter { .. })) => {
                at.next = it.offset + 1;
                at.delivery = 1;
            }
            Ok(None) => {
                round.fenced.fetch_add(1, Ordering::SeqCst);
                return None;
            }
            Ok(_) | Err(_) => return None,
        }
    }
    Some(at)
}

/// Whether all messages are settled. At every look, each offset stands right behind the last
/// settled message.
async fn is_read(round: &Round, pool: &PgPool) -> bool {
    let stand = "SELECT next, COALESCE((SELECT max(place) + 1 FROM
            (SELECT partition, place FROM bookings
             UNION ALL SELECT partition, place FROM dead_letters) AS settled
            WHERE settled.partition = offsets.partition), 0)
        FROM offsets ORDER BY partition";
    let stand: Vec<(i64, i64)> = sqlx::query_as(stand).fetch_all(pool).await.expect("rows");
    for (next, behind) in &stand {
        assert_eq!(
            next, behind,
            "seed {}: an offset and the effects have parted",
            round.seed
        );
    }
    let next: Vec<_> = stand.into_iter().map(|(next, _)| next).collect();
    next == round.log.ends()
}

/// Polls a future so many times at most. Returns nothing if it was dropped before its end.
async fn killed_after<F: Future>(mut polls: u32, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| match polls.checked_sub(1) {
        None => Poll::Ready(None),
        Some(left) => {
            polls = left;
            work.as_mut().poll(cx).map(Some)
        }
    })
    .await
}

/// A member that is killed at any point, and starts again.
async fn live(round: Arc<Round>, member: usize, mut rng: StdRng) {
    loop {
        let app = round.database.start().await;
        let polls = rng.random_range(1..400);
        let consumed = consume(&round, &app, member, &mut rng);
        match killed_after(polls, consumed).await {
            Some(()) => return,
            None => round.kills.fetch_add(1, Ordering::SeqCst),
        };
    }
}

/// Asserts that all is booked or put aside, once, when all is read.
async fn assert_booked_once(round: &Round) {
    let pool = round.database.pool().await;
    let bookings = "SELECT partition, place FROM bookings ORDER BY number";
    let bookings: Vec<(i32, i64)> = sqlx::query_as(bookings)
        .fetch_all(&pool)
        .await
        .expect("rows");
    let is_poison = |it: &&Message| it.failures.load(Ordering::SeqCst) > u32::MAX / 2;
    let mut expected: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for it in round.log.messages().filter(|it| !is_poison(it)) {
        expected.entry(it.partition).or_default().push(it.offset);
    }
    let mut booked: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for (partition, offset) in bookings {
        booked.entry(partition).or_default().push(offset);
    }
    let seed = round.seed;
    assert_eq!(booked, expected, "seed {seed}: each once and in order");

    let total: i64 = sqlx::query_scalar("SELECT cents FROM total")
        .fetch_one(&pool)
        .await
        .expect("a sum");
    let good = round.log.messages().filter(|it| !is_poison(it));
    let sum: i64 = good.map(|it| it.order).sum();
    assert_eq!(total, sum, "seed {seed}");

    let dead = "SELECT partition, place, reason FROM dead_letters ORDER BY partition";
    let dead: Vec<(i32, i64, String)> = sqlx::query_as(dead).fetch_all(&pool).await.expect("rows");
    let poison = round.log.messages().filter(is_poison);
    let poison = poison.map(|it| (it.partition, it.offset, "exhausted".to_owned()));
    assert_eq!(dead, poison.collect::<Vec<_>>(), "seed {seed}");
}

/// Plays one round, and tells what the group has met in it.
async fn play(seed: u64) -> [usize; 3] {
    const PARTITIONS: i32 = 4;
    let mut rng = StdRng::seed_from_u64(seed);
    let round = Arc::new(Round {
        seed,
        database: Database::new(PARTITIONS).await,
        log: Log::draw(&mut rng, PARTITIONS, 25),
        fenced: AtomicUsize::new(0),
        kills: AtomicUsize::new(0),
        rebalances: AtomicUsize::new(0),
    });
    let members = (0..MEMBERS).map(|member| {
        let rng = StdRng::seed_from_u64(rng.random());
        tokio::spawn(live(Arc::clone(&round), member, rng))
    });
    for member in members.collect::<Vec<_>>() {
        member.await.expect("it reads to the end");
    }
    assert_booked_once(&round).await;
    let Round {
        fenced,
        kills,
        rebalances,
        ..
    } = &*round;
    [fenced, kills, rebalances].map(|met| met.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_log_that_rebalances_is_booked_once_and_in_order() {
    let rounds = match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => 100,
        _ => 3,
    };
    let mut met = [0; 3];
    for seed in 0..rounds {
        let played = timeout(Duration::from_secs(60), play(seed)).await;
        let played = played.unwrap_or_else(|_| panic!("seed {seed} never ends"));
        for (met, more) in met.iter_mut().zip(played) {
            *met += more;
        }
    }
    let all = met.iter().all(|met| *met > 0);
    assert!(all, "fenced, kills, rebalances: {met:?}");
}

/// The record answers when the offset does not.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_offset_that_is_set_back_books_nothing_again() {
    let app = Database::new(1).await.start().await;
    let log = Log::draw(&mut StdRng::seed_from_u64(0), 1, 5);
    for replayed in [false, true] {
        let mut at = seek(&app, TOPIC, 0).await.expect("a position");
        for it in log.fetch(0, 0, 5) {
            it.failures.store(0, Ordering::SeqCst);
            let disposition = process(&app, &it, at).await.expect("it is answered");
            assert_ack(disposition.expect("nobody else moves it"), replayed);
            at.next = it.offset + 1;
        }
        let back = sqlx::query("UPDATE offsets SET next = 0").execute(&app.pool);
        back.await.expect("it is set back");
    }
    let booked = sqlx::query_scalar("SELECT count(*) FROM bookings");
    let booked: i64 = booked.fetch_one(&app.pool).await.expect("a count");
    assert_eq!(booked, 5);
}

/// An offset moves only if the consumer's position is the one in the database.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_consumer_that_lost_its_partition_moves_no_offset() {
    let database = Database::new(1).await;
    let (zombie, owner) = (database.start().await, database.start().await);
    let log = Log::draw(&mut StdRng::seed_from_u64(0), 1, 2);
    let messages = log.fetch(0, 0, 2);
    let stale = seek(&zombie, TOPIC, 0).await.expect("a position");
    let mut at = seek(&owner, TOPIC, 0).await.expect("a position");
    assert_eq!((stale.next, at.next, at.delivery), (0, 0, 2));
    for it in &messages {
        it.failures.store(0, Ordering::SeqCst);
        let booked = process(&owner, it, at).await.expect("it is answered");
        assert_ack(booked.expect("it has the partition"), false);
        at.next = it.offset + 1;
    }
    let fenced = process(&zombie, &messages[0], stale).await;
    assert!(fenced.expect("it is answered").is_none());
    let there = seek(&zombie, TOPIC, 0).await.expect("a position");
    assert_eq!((there.next, there.delivery), (at.next, 1));
}

/// A listing without the marks of a module, and without the breaks of its lines.
fn plain(source: &str) -> String {
    let source = source.replace("pub(super) ", "");
    let source: String = source.split_whitespace().collect();
    source.replace(",)", ")")
}

#[test]
fn the_listings_of_the_page_on_kafka_are_those_of_the_recipe() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = here.join("../../idempotent-runtime/src/guide/kafka.md");
    let page = fs::read_to_string(page).expect("the page");
    let recipe = plain(include_str!("recipe.rs")) + &plain(include_str!("producers.rs"));
    let blocks = page.split("```").skip(1).step_by(2);
    let listings = blocks.filter_map(|block| block.strip_prefix("no_run\n"));
    let mut shown = 0;
    for listing in listings {
        let lines = listing.lines().filter(|line| !line.starts_with("# "));
        let code = plain(&lines.collect::<Vec<_>>().join("\n"));
        assert!(recipe.contains(&code), "{listing}");
        shown += 1;
    }
    assert_eq!(shown, 3);
}

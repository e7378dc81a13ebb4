use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// Gives each connection the next number.
#[derive(Clone, Default)]
struct CountedServer(Arc<AtomicU32>);

impl Server for CountedServer {
    type Connection = u32;

    async fn open(&self, _: &'static str) -> Result<u32, StoreError> {
        Ok(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The number of the connection that is lent, and goes back with this answer after so many seconds.
async fn lent(
    pool: &ConnectionPool<CountedServer>,
    answer: Result<(), StoreErrorKind>,
    after: u64,
) -> u32 {
    let lent = pool.acquire("testing").await.expect("there is room");
    let number = *lent;
    let answer = answer.map_err(|kind| StoreError::new(kind, "testing"));
    let passed_on = lent.release_at(answer.clone(), in_seconds(after));
    assert_eq!(passed_on, answer);
    number
}

/// Connections 0 and 1 have come back.
async fn with_two_idle() -> ConnectionPool<CountedServer> {
    let pool = ConnectionPool::new(CountedServer::default(), Limits::default());
    let both = [
        pool.acquire("testing").await.expect("there is room"),
        pool.acquire("testing").await.expect("there is room"),
    ];
    for one in both {
        one.release(Ok(())).expect("it is passed on");
    }
    pool
}

fn in_seconds(seconds: u64) -> Moment {
    Moment::now().plus(Duration::from_secs(seconds))
}

#[track_caller]
fn fails_as<T: std::fmt::Debug + PartialEq>(answer: Result<T, StoreError>, kind: StoreErrorKind) {
    assert_eq!(answer.map_err(|error| error.kind()), Err(kind));
}

#[tokio::test]
async fn a_connection_is_used_again_unless_it_is_broken() {
    let pool = ConnectionPool::new(CountedServer::default(), Limits::default());
    for (number, answer) in [
        (0, Ok(())),
        (0, Err(StoreErrorKind::Busy)),
        (0, Err(StoreErrorKind::Unavailable)),
        (1, Err(StoreErrorKind::Full)),
        (1, Ok(())),
    ] {
        assert_eq!(lent(&pool, answer, 0).await, number, "{answer:?}");
    }
    drop(pool.acquire("testing").await);
    let next = lent(&pool, Ok(()), 0).await;
    assert_eq!(next, 2, "nobody knows what is on its way");
}

#[tokio::test]
async fn what_may_be_done_twice_is_done_again_over_a_new_connection_where_one_broke() {
    for (kind, expected) in [
        (StoreErrorKind::Unavailable, Ok(1)),
        (StoreErrorKind::Busy, Err(StoreErrorKind::Busy)),
    ] {
        let pool = ConnectionPool::new(CountedServer::default(), Limits::default());
        let breaks = async |number: &mut u32| match *number {
            0 => Err(StoreError::new(kind, "testing")),
            number => Ok(number),
        };
        let answer = pool.run_again("testing", breaks).await;
        assert_eq!(answer.map_err(|error| error.kind()), expected);
    }
}

#[tokio::test]
async fn it_is_not_done_again_over_one_that_lies_idle_and_broke_with_the_first() {
    let pool = with_two_idle().await;
    let breaks = async |number: &mut u32| match *number {
        0 | 1 => Err(StoreError::new(StoreErrorKind::Unavailable, "testing")),
        number => Ok(number),
    };
    assert_eq!(pool.run_again("testing", breaks).await, Ok(2));
}

#[tokio::test]
async fn it_is_done_twice_at_most() {
    let numbered = CountedServer::default();
    let pool = ConnectionPool::new(numbered.clone(), Limits::default());
    let breaks =
        async |_: &mut u32| Err::<(), _>(StoreError::new(StoreErrorKind::Unavailable, "testing"));
    let answer = pool.run_again("testing", breaks).await;
    fails_as(answer, StoreErrorKind::Unavailable);
    assert_eq!(numbered.0.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn what_took_too_long_is_not_done_again() {
    let numbered = CountedServer::default();
    let pool = ConnectionPool::new(numbered.clone(), Limits::default());
    let hangs = async |_: &mut u32| std::future::pending::<Result<(), _>>().await;
    let answer = pool.run_again("testing", hangs).await;
    fails_as(answer, StoreErrorKind::Unavailable);
    assert_eq!(numbered.0.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_statement_is_not_awaited_for_longer_than_it_may_take() {
    let pool = ConnectionPool::new(CountedServer::default(), Limits::default());
    let hangs = async |_: &mut u32| std::future::pending::<Result<(), _>>().await;
    let began = tokio::time::Instant::now();
    let answer = pool.run("testing", hangs).await;
    fails_as(answer, StoreErrorKind::Unavailable);
    assert_eq!(began.elapsed(), Limits::default().answer);
    let next = lent(&pool, Ok(()), 0).await;
    assert_eq!(next, 1, "nobody knows what is on its way");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_connection_is_told_in_time_that_all_are_in_use() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let pool = ConnectionPool::new(CountedServer::default(), limits);
    let _in_use = pool.acquire("testing").await.expect("there is room");
    let began = tokio::time::Instant::now();
    let refused = pool.acquire("testing").await.map(drop);
    fails_as(refused, StoreErrorKind::Busy);
    assert_eq!(began.elapsed(), limits.connect);
}

/// Where nobody answers.
#[derive(Clone)]
struct Silent;

impl Server for Silent {
    type Connection = ();

    async fn open(&self, _: &'static str) -> Result<(), StoreError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_awaited_for_longer_than_a_connection_may_take() {
    let pool = ConnectionPool::new(Silent, Limits::default());
    let began = tokio::time::Instant::now();
    let refused = pool.acquire("testing").await.map(drop);
    fails_as(refused, StoreErrorKind::Unavailable);
    assert_eq!(began.elapsed(), Limits::default().connect);
}

/// As where a primary was demoted, and its name leads to another server now, or what is wrong is
/// the session's alone.
#[tokio::test]
async fn a_server_that_may_not_be_written_is_looked_for_anew_and_not_again_and_again() {
    for kind in [
        StoreErrorKind::Denied,
        StoreErrorKind::Configuration,
        StoreErrorKind::Schema,
        StoreErrorKind::Other,
    ] {
        let pool = ConnectionPool::new(CountedServer::default(), Limits::default());
        for (number, after) in [(0, 0), (0, 9), (0, 10), (1, 0), (1, 11), (2, 0)] {
            let lent = lent(&pool, Err(kind), after).await;
            assert_eq!(lent, number, "{kind:?} after {after} s");
        }
    }
}

#[tokio::test]
async fn a_connection_that_has_lain_idle_for_long_is_not_used_again() {
    let pool = with_two_idle().await;
    assert_eq!(lent(&pool, Ok(()), 0).await, 1, "the last one");

    assert!(pool.take(in_seconds(181)).is_none());

    assert_eq!(lent(&pool, Ok(()), 0).await, 2, "nor is the other one");
}

#[test]
fn mend_17_a_connection_is_lent_to_the_runtime_that_opened_it() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let pool = ConnectionPool::new(CountedServer::default(), limits);
    let [one, other] = [(), ()].map(|()| {
        let runtime = runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime")
    });
    let lend = |runtime: &runtime::Runtime| runtime.block_on(lent(&pool, Ok(()), 0));
    let numbers = [lend(&one), lend(&other), lend(&one), lend(&other)];
    assert_eq!(numbers, [0, 1, 0, 1]);

    // No more than two are open, whoever has opened them.
    let both = one.block_on(async {
        let first = pool.acquire("testing").await.expect("there is room");
        let second = pool.acquire("testing").await.expect("there is room");
        let both = [*first, *second];
        first.release(Ok(())).expect("it is passed on");
        second.release(Ok(())).expect("it is passed on");
        both
    });
    assert_eq!(both, [0, 2]);
    assert_eq!(
        [lend(&other), lend(&one)],
        [3, 2],
        "the oldest one is closed"
    );
}

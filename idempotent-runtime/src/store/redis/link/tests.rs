use std::{
    pin::{Pin, pin},
    task::{Context, Waker},
    time::Duration,
};

use redis::{Client, aio::ConnectionManagerConfig};

use super::*;

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(10),
    answer: Duration::from_secs(10),
};

fn client() -> Client {
    let url = std::env::var("IDEMPOTENT_TEST_REDIS_URL");
    let url = url.expect("`cargo xtask test` says where Redis is");
    Client::open(url).expect("a URL")
}

/// Polls it once, which is not enough.
fn begin(waits: Pin<&mut impl Future>) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.poll(&mut context).is_pending());
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_that_has_lain_idle_for_long_is_not_used_again() {
    let link = Link::new(Source::Server(client()), LIMITS);
    let begun = Moment::now();
    let mut numbers = Vec::new();
    for second in [0, 179, 358, 538, 540] {
        let now = begun.plus(Duration::from_secs(second));
        let (_, number) = link.line(now, "testing").await.expect("a connection");
        numbers.push(number);
    }
    assert_eq!(numbers, [1, 1, 1, 2, 2]);

    let (line, _) = link.line(begun, "testing").await.expect("a connection");
    let given = Link::new(Source::Given(line), LIMITS);
    for second in [0, 3600] {
        let now = begun.plus(Duration::from_secs(second));
        let (_, number) = given.line(now, "testing").await.expect("a connection");
        assert_eq!(number, 1, "it is not ours to replace");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_call_that_nobody_polls_while_it_connects_keeps_no_other_one_waiting() {
    let link = Link::new(Source::Server(client()), LIMITS);
    let now = Moment::now();
    let mut alone = pin!(link.line(now, "testing"));
    begin(alone.as_mut());

    let (_, number) = link.line(now, "testing").await.expect("a connection");

    assert_eq!(number, 1);
    let (_, number) = alone.await.expect("a connection");
    assert_eq!(number, 1, "it is the same");
}

/// Else a caller with less patience than it takes would never get one.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_that_its_caller_does_not_wait_for_is_made_for_the_next() {
    let link = Link::new(Source::Server(client()), LIMITS);
    let now = Moment::now();
    begin(pin!(link.line(now, "testing")));

    let made = async {
        while !link.open.has_line(now) {
            tokio::task::yield_now().await;
        }
    };
    let made = timeout(LIMITS.connect, made).await;
    made.expect("it is made without anybody who waits");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_that_is_silent_is_left_by_those_who_give_up_on_it_soon() {
    let link = Link::new(Source::Server(client()), LIMITS);
    let list = format!("idempotent-{:032x}", rand::random::<u128>());
    // The server answers nothing behind it.
    let mut pops = redis::cmd("BLPOP");
    let pops = pops.arg(&list).arg(0);
    let soon = NOT_SILENT / 4;
    let popped = timeout(soon, link.send(pops, &Node::Only, "testing")).await;
    assert!(popped.is_err(), "nobody pushes");

    let pings = redis::cmd("PING");
    let answered = async {
        while timeout(soon, link.send(&pings, &Node::Only, "testing"))
            .await
            .is_err()
        {}
    };
    let answered = timeout(LIMITS.answer * 2, answered).await;
    answered.expect("another one is made");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_connection_that_answers_is_kept_by_those_who_give_up_on_it() {
    let link = Link::new(Source::Server(client()), LIMITS);
    let pings = redis::cmd("PING");
    let (_, first) = link.line(Moment::now(), "testing").await.expect("one");
    for _ in 0..2 {
        begin(pin!(link.send(&pings, &Node::Only, "testing")));
        link.open.let_time_pass(NOT_SILENT);
        let answer = link.send(&pings, &Node::Only, "testing").await;
        answer.expect("an answer");
    }
    let (_, last) = link.line(Moment::now(), "testing").await.expect("one");
    assert_eq!(last, first);
}

/// A connection of the application's has a time limit of its own, which the driver tells as a
/// failure of the connection.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn what_took_too_long_for_the_driver_is_not_asked_again() {
    let short = ConnectionManagerConfig::new();
    let short = short.set_response_timeout(Some(Duration::from_millis(500)));
    let manager = client().get_connection_manager_with_config(short).await;
    let manager = manager.expect("a connection");
    let link = Link::new(Source::Given(Line::Managed(manager)), LIMITS);
    let list = format!("idempotent-{:032x}", rand::random::<u128>());
    let of_list = |name: &str| redis::cmd(name).arg(&list).clone();

    // The server answers once a value is pushed.
    let mut pops = of_list("BLPOP");
    let answer = link.send(pops.arg(0), &Node::Only, "testing").await;

    let kind = answer.expect_err("nobody pushes").kind();
    assert_eq!(kind, StoreErrorKind::Unavailable);
    let mut other = client().get_multiplexed_async_connection().await;
    let other = other.as_mut().expect("a connection");
    let pushed = of_list("RPUSH")
        .arg(&["one", "two"])
        .query_async(other)
        .await;
    let () = pushed.expect("an answer");
    // Behind everything that was asked over this connection before.
    let left = link.send(&of_list("LLEN"), &Node::Only, "testing").await;
    assert_eq!(left.expect("an answer"), Value::Int(1), "popped once");
    let deleted = of_list("DEL").query_async(other).await;
    let () = deleted.expect("an answer");
}

//! Calls that are dropped with their thread, their runtime or their attempt.

use std::cell::RefCell;

use idempotent_runtime::{RawEnding, RawOutcome, idempotent, testing::Gate, try_current};
use tokio::runtime::Handle;
use tracing_subscriber::fmt::format::FmtSpan;

use super::*;

type Kept = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

#[test]
fn a_call_that_a_thread_keeps_to_its_end_is_dropped_without_a_panic() {
    is_dropped_with_its_thread(|| ());
}

/// A subscriber keeps things of its own for the thread, which may be gone by then.
#[test]
fn mend_40_a_call_that_a_thread_keeps_to_its_end_is_dropped_though_a_subscriber_listens() {
    is_dropped_with_its_thread(|| {
        let listens = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_writer(std::io::sink);
        tracing::subscriber::set_default(listens.finish())
    });
}

/// A call is dropped among the last things of its thread, when nothing else of it may be there any
/// more.
fn is_dropped_with_its_thread<L>(listen: impl FnOnce() -> L + Send + 'static) {
    let (asks, answer) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        KEPT.set(None);
        let _listens = listen();
        let idem = Idempotency::memory();
        let dropped = idem.call("tests.kept").key("k").run(|_| async {
            let _dropped_last = Asks(Some(asks));
            std::future::pending().await
        });
        let mut call: Kept = Box::pin(dropped);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        KEPT.set(Some(call));
    });
    thread.join().expect("no panic");
    let _whatever_it_knew = answer.blocking_recv().expect("the body is dropped");
}

type Waits = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// The answer to a call that waits on a blocking thread of a runtime which ends: the runtime waits
/// for its threads.
fn told_where_the_runtime_ends(
    call: impl FnOnce(Gate) -> Waits + Send + 'static,
) -> Result<(), Error> {
    let (ended, has_ended) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let (answer, answered) = mpsc::channel();
        let gate = Gate::new();
        let call = call(gate.clone());
        runtime.spawn_blocking(move || answer.send(Handle::current().block_on(call)));
        runtime.block_on(gate.arrived(1));
        drop(runtime);
        ended.send(answered.recv())
    });
    let answer = has_ended.recv_timeout(Duration::from_secs(60));
    answer.expect("the runtime ends").expect("it is answered")
}

#[test]
fn a_detached_call_is_answered_where_its_runtime_ends() {
    let call = || Idempotency::memory().call("tests.detached").key("k");
    let typed = told_where_the_runtime_ends(move |gate| {
        let call = call().run_detached(|_| async move {
            gate.pass().await;
            Ok(())
        });
        Box::pin(call)
    });
    let raw = told_where_the_runtime_ends(move |gate| {
        let call = call().run_raw_detached(|_| async move {
            gate.pass().await;
            RawEnding::Record(RawOutcome::value("never"))
        });
        Box::pin(async { call.await.map(drop) })
    });
    for answer in [typed, raw] {
        assert!(matches!(answer, Err(Error::Stopped { .. })), "{answer:?}");
    }
}

/// Asks, when it is dropped, which attempt runs there.
struct Asks(Option<oneshot::Sender<Option<u32>>>);

impl Drop for Asks {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            let attempt = try_current().map(|attempt| attempt.number());
            answer.send(attempt).expect("somebody listens");
        }
    }
}

#[idempotent(name = "tests.asks", key = key, skip(idem, asks), handle = idem)]
async fn never_ends(idem: &Idempotency, key: u32, asks: Asks) -> Result<(), Error> {
    let _dropped_last = asks;
    std::future::pending().await
}

#[tokio::test]
async fn a_body_that_is_dropped_is_dropped_as_a_part_of_its_attempt() {
    let idem = Idempotency::memory();
    for key in [1, 2] {
        let (asks, answer) = oneshot::channel();
        let asks = Asks(Some(asks));
        let mut call: Pin<Box<dyn Future<Output = Result<(), Error>>>> = match key {
            1 => Box::pin(never_ends(&idem, key, asks)),
            _ => Box::pin(idem.call("tests.asks.method").key(&key).run(|_| async {
                let _dropped_last = asks;
                std::future::pending().await
            })),
        };
        assert_eq!(polled(&mut call, 1).await, None);

        drop(call);

        assert_eq!(answer.await, Ok(Some(1)), "call {key}");
    }
}

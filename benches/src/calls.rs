//! The call with which every store is measured, ours and by hand.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use idempotent_runtime::{Error, Idempotency, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::Ratios;

/// The value of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The order that was paid.
    pub id: u64,
    /// The text that is printed on it.
    pub text: String,
}

impl Receipt {
    /// The body of the call.
    #[must_use]
    pub fn of(order: u64) -> Self {
        Self {
            id: order,
            text: format!("{} bytes", MEMO.len()),
        }
    }

    /// As it stands in a store.
    ///
    /// # Panics
    ///
    /// Never: numbers and texts are JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }

    /// Reads one from the bytes in a store.
    ///
    /// # Panics
    ///
    /// When it is no receipt.
    #[must_use]
    pub fn from_json(json: &[u8]) -> Self {
        serde_json::from_slice(json).expect("a receipt")
    }
}

/// An argument of the call, beside the order.
pub const MEMO: &str =
    "a memo as it may stand in an order: leave the parcel with the neighbour on the left";

/// The arguments of the call, as code written by hand would keep them.
///
/// # Panics
///
/// Never: numbers and texts are JSON.
#[must_use]
pub fn arguments(order: u64) -> String {
    serde_json::to_string(&(order, MEMO)).expect("numbers and texts are JSON")
}

/// A call written by hand, to the same end.
pub trait ByHand: Clone + Send + Sync + 'static {
    /// Claims, runs the body, and records.
    fn first(&self, task: usize, order: u64) -> impl Future<Output = ()> + Send;
    /// Reads what was recorded.
    fn replay(&self, task: usize, order: u64) -> impl Future<Output = ()> + Send;
}

/// A call written by hand, by an author who knows that a holder may vanish, or be slow. A claim has
/// a holder, a lease, an expiry that a purge finds, and a fencing token under which the outcome is
/// recorded.
pub trait Leased: ByHand {
    /// Claims, runs the body, and records.
    fn first_leased(&self, task: usize, order: u64) -> impl Future<Output = ()> + Send;
}

/// One call of ours.
///
/// # Panics
///
/// When it is not answered.
pub async fn ours(idem: &Idempotency, order: u64) {
    let result: Result<Receipt, Error> = idem
        .call("bench.charge")
        .key(&order)
        .arguments(&(order, MEMO))
        .run(|_| async move { Ok(Receipt::of(order)) })
        .await;
    result.expect("an answer");
}

/// Two handles, each over a store of its own, as two processes have them.
///
/// # Panics
///
/// If the server does not answer.
pub async fn two_processes<S: Store>(
    connect: impl AsyncFn() -> Result<S, StoreError>,
) -> [Idempotency; 2] {
    let process = async || Idempotency::new(connect().await.expect("the server answers"));
    [process().await, process().await]
}

/// Prints how a store on a server compares, if this run measures and `variable` says where the
/// server is. It is set up with two handles, as two processes have them: the second one replays the
/// calls of the first one.
///
/// # Panics
///
/// When there is no runtime to be had.
pub fn compare_on_server<S: Leased>(
    product: &'static str,
    variable: &str,
    set_up: impl AsyncFnOnce(&str) -> ([Idempotency; 2], S),
    times: (u32, u32),
) {
    let Some(url) = crate::server(variable) else {
        return;
    };
    let runtime = Runtime::new().expect("a runtime");
    let ([idem, elsewhere], by_hand) = runtime.block_on(set_up(&url));
    let mut ratios = Ratios::new(product, "by hand");
    let sides = (&idem, &by_hand);
    compare(&runtime, &mut ratios, "", sides, &AT_ONCE, times);
    let (_, times) = times;
    for tasks in AT_ONCE {
        ratios.time(
            format!("first call, beside one with a lease, {tasks} at once"),
            times,
            first_calls(&runtime, tasks, &idem),
            spread(&runtime, tasks, &by_hand, |by_hand, task| async move {
                by_hand.first_leased(task, fresh()).await;
            }),
        );
    }
    distinct_replays(&runtime, &mut ratios, sides, times);
    for tasks in AT_ONCE {
        let mut make = spread(&runtime, 16, &idem, each_of(tasks));
        make(times * Ratios::TURNS);
        ratios.time(
            format!("replay of another process's call, {tasks} at once"),
            times,
            spread(&runtime, tasks, &elsewhere, each_of(tasks)),
            spread(&runtime, tasks, &by_hand, |by_hand, task| async move {
                by_hand.replay(task, 1).await;
            }),
        );
    }
    ratios.print();
}

/// Adds replays of many calls, in turn, which were made here.
fn distinct_replays(
    runtime: &Runtime,
    ratios: &mut Ratios,
    (idem, by_hand): (&Idempotency, &impl ByHand),
    times: u32,
) {
    const MADE: u64 = 2_048;
    let orders = || {
        let next = AtomicU64::new(0);
        move || 7_000_000_000 + next.fetch_add(1, Ordering::Relaxed) % MADE
    };
    let made = u32::try_from(MADE).unwrap_or(u32::MAX);
    let order = orders();
    spread(runtime, 16, idem, move |idem, _| {
        let order = order();
        async move { ours(&idem, order).await }
    })(made);
    let order = orders();
    spread(runtime, 16, by_hand, move |by_hand, task| {
        let order = order();
        async move { by_hand.first(task, order).await }
    })(made);
    for tasks in AT_ONCE {
        let (own, other) = (orders(), orders());
        ratios.time(
            format!("replay of {MADE} calls in turn, {tasks} at once"),
            3 * times,
            spread(runtime, tasks, idem, move |idem, _| {
                let order = own();
                async move { ours(&idem, order).await }
            }),
            spread(runtime, tasks, by_hand, move |by_hand, task| {
                let order = other();
                async move { by_hand.replay(task, order).await }
            }),
        );
    }
}

/// How many tasks call a server at once.
const AT_ONCE: [usize; 3] = [1, 16, MOST_AT_ONCE as usize];

/// The most tasks that call a server at once.
pub const MOST_AT_ONCE: u32 = 64;

/// Adds replays and first calls to a table, so many `at_once`. Each is measured by so many of them
/// a round.
pub fn compare(
    runtime: &Runtime,
    ratios: &mut Ratios,
    named: &str,
    (idem, by_hand): (&Idempotency, &impl ByHand),
    at_once: &[usize],
    (replays, firsts): (u32, u32),
) {
    runtime.block_on(async {
        ours(idem, 1).await;
        by_hand.first(0, 1).await;
    });
    for &tasks in at_once {
        ratios.time(
            format!("{named}replay, {tasks} at once"),
            replays,
            spread(runtime, tasks, idem, |idem, _| async move {
                ours(&idem, 1).await;
            }),
            spread(runtime, tasks, by_hand, |by_hand, task| async move {
                by_hand.replay(task, 1).await;
            }),
        );
    }
    for &tasks in at_once {
        ratios.time(
            format!("{named}first call, {tasks} at once"),
            firsts,
            first_calls(runtime, tasks, idem),
            spread(runtime, tasks, by_hand, |by_hand, task| async move {
                by_hand.first(task, fresh()).await;
            }),
        );
    }
}

fn first_calls(runtime: &Runtime, tasks: usize, idem: &Idempotency) -> impl FnMut(u32) {
    spread(runtime, tasks, idem, |idem, _| async move {
        ours(&idem, fresh()).await;
    })
}

/// A number that no earlier call has had.
pub fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Calls for the orders of a row, each once, in the same sequence every time this is asked for.
fn each_of(
    row: usize,
) -> impl Fn(Idempotency, usize) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync {
    let next = AtomicU64::new(1_000_000_000 * row as u64);
    move |idem, _| {
        let order = next.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { ours(&idem, order).await })
    }
}

/// Does the work so many times, `tasks` at once.
pub fn spread<S, F>(
    runtime: &Runtime,
    tasks: usize,
    side: &S,
    work: impl Fn(S, usize) -> F + Send + Sync + 'static,
) -> impl FnMut(u32)
where
    S: Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let work = Arc::new(work);
    move |times| {
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        let mut running = JoinSet::new();
        for task in 0..tasks {
            let (side, work) = (side.clone(), Arc::clone(&work));
            let share = times / tasks + usize::from(task < times % tasks);
            let calls = async move {
                for _ in 0..share {
                    work(side.clone(), task).await;
                }
            };
            running.spawn_on(calls, runtime.handle());
        }
        runtime.block_on(running.join_all());
    }
}

//! The expansion when it runs: each shape replays, and keeps calls apart.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use idempotent_runtime::{Error, Idempotency, KeyPart, MemoryStore, Reconciled, idempotent};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    id: u64,
    amount: u64,
}

pub struct Shop {
    tenant: String,
    runs: AtomicU32,
}

pub struct Wrapped<T>(T);

impl Shop {
    #[idempotent(name = "shop.method", key = order.id, scope = self.tenant)]
    async fn method(&self, order: &Order) -> Result<u32, Error> {
        Ok(self.runs.fetch_add(1, SeqCst))
    }

    #[idempotent(name = "shop.detached", key = (&self.tenant, order.id), on_cancel = detach)]
    async fn detached(self: Arc<Self>, order: Order) -> Result<u32, Error> {
        tokio::task::yield_now().await;
        Ok(self.runs.fetch_add(1, SeqCst))
    }
}

#[async_trait::async_trait]
trait Pay {
    async fn pay(&self, wrapped: Wrapped<Order>) -> Result<u32, Error>;
}

#[async_trait::async_trait]
impl Pay for Shop {
    #[tracing::instrument(skip_all)]
    #[idempotent(name = "shop.pay", key = (&self.tenant, order.id))]
    async fn pay(&self, Wrapped(order): Wrapped<Order>) -> Result<u32, Error> {
        if order.amount == 0 {
            return Ok(0);
        }
        Ok(self.runs.fetch_add(1, SeqCst))
    }
}

#[idempotent(key = "{order.id}", skip(runs), on_crash = reconcile(never_asked))]
async fn template(order: Order, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

#[idempotent(key = id, skip(runs), on_crash = reconcile(never_asked_either))]
async fn alternatives((Ok(id) | Err(id)): Result<u64, u64>, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

async fn never_asked_either(_: &u64, _: &AtomicU32) -> Reconciled<u32, Error> {
    unreachable!("nothing has crashed")
}

async fn never_asked(_: &Order, _: &AtomicU32) -> Reconciled<u32, Error> {
    unreachable!("nothing has crashed")
}

#[idempotent(key_from_arguments, skip(runs))]
async fn arguments(a: u8, b: &str, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

#[idempotent(key = lookup(id)?, skip(runs))]
async fn failing_key(id: u64, runs: &AtomicU32) -> Result<u32, KeyError> {
    Ok(runs.fetch_add(1, SeqCst))
}

fn lookup(id: u64) -> Result<u64, KeyError> {
    id.checked_sub(1).ok_or(KeyError("no key".to_owned()))
}

/// Notes its end, as a lock does that is given back.
pub struct Held(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Held {
    fn looked_at(&self) {}
}

impl Drop for Held {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

pub struct Pair {
    mentioned: Held,
    #[allow(dead_code)]
    other: Held,
}

#[idempotent(key = id, skip(first, second, pair, _unmentioned))]
async fn holding(id: u64, first: Held, second: Held, pair: Pair, _unmentioned: Held) -> Result<(), Error> {
    let _last = Held("body", Arc::clone(&first.1));
    first.looked_at();
    pair.mentioned.looked_at();
    tokio::task::yield_now().await;
    second.looked_at();
    Ok(())
}

impl Pair {
    fn map<T>(&self, of: impl Fn(&Held) -> T) -> T {
        of(&self.mentioned)
    }
}

#[idempotent(
    key = match pair { Pair { ref mentioned, .. } => mentioned.0 },
    scope = pair.map(|held| held.0),
    skip(pair)
)]
async fn holding_what_the_key_looks_at(pair: Pair) -> Result<(), Error> {
    let _last = Held("body", Arc::clone(&pair.other.1));
    Ok(())
}

#[idempotent(key = (id, str::len(_unmentioned.0)), on_cancel = detach, skip(pair, _unmentioned, gates))]
async fn holding_on(id: u64, pair: Pair, _unmentioned: Held, gates: Arc<[Notify; 2]>) -> Result<(), Error> {
    gates[0].notify_one();
    gates[1].notified().await;
    let _last = Held("body", Arc::clone(&pair.mentioned.1));
    Ok(())
}

#[idempotent(name = "carts.add", key = "{cart}/{seq}", also_accept = "{(cart, seq)}")]
async fn rolled_out(cart: u64, seq: u64) -> Result<u64, Error> {
    unreachable!("{cart}/{seq} has been answered before the roll-out")
}

#[derive(Clone, Copy, Serialize, KeyPart)]
struct LineId {
    order: u64,
    line: u64,
}

#[derive(Clone, Copy, Serialize, KeyPart)]
struct Line(LineId);

#[idempotent(name = "lines.add", key = (line, part), also_accept = "{line}")]
async fn taken_apart(line: Line, part: u64) -> Result<u64, Error> {
    unreachable!("{part} of {} has been answered before the roll-out", line.0.line)
}

#[idempotent(name = "lines.count", key = (id, ("{line}")), scope = ("{tenant}"), skip(runs))]
async fn in_parentheses(tenant: &str, id: u64, line: u64, runs: &AtomicU32) -> Result<u32, Error> {
    Ok(runs.fetch_add(1, SeqCst))
}

macro_rules! scoped {
    ($name:ident($tenant:ident), $scope:expr) => {
        #[idempotent(key = id, scope = ($scope), skip(runs, $tenant))]
        async fn $name($tenant: &str, id: u64, runs: &AtomicU32) -> Result<u32, Error> {
            Ok(runs.fetch_add(1, SeqCst))
        }
    };
}

scoped!(scoped_by_a_macro(tenant), "{tenant}");

async fn parentheses_around_text_say_nothing() {
    let runs = AtomicU32::new(0);
    for (tenant, id, line, run) in [("ours", 1, 1, 0), ("ours", 1, 2, 1), ("theirs", 1, 1, 2), ("ours", 1, 1, 0)] {
        assert_eq!(in_parentheses(tenant, id, line, &runs).await.unwrap(), run);
    }

    assert_eq!(scoped_by_a_macro("ours", 1, &runs).await.unwrap(), 3);
    assert_eq!(scoped_by_a_macro("theirs", 1, &runs).await.unwrap(), 4);
    assert_eq!(scoped_by_a_macro("ours", 1, &runs).await.unwrap(), 3);
}

async fn an_old_key_that_was_a_tuple_is_found(idem: &Idempotency) {
    let old = idem.call("carts.add").key(&(1, 2)).argument("cart", &1).argument("seq", &2);
    old.run(|_| async { Ok::<u64, Error>(9) }).await.unwrap();

    assert_eq!(rolled_out(1, 2).await.unwrap(), 9);
}

async fn an_old_key_that_was_a_newtype_is_found(idem: &Idempotency) {
    let line = Line(LineId { order: 1, line: 2 });
    let old = idem.call("lines.add").key(&line).argument("line", &line).argument("part", &1);
    old.run(|_| async { Ok::<u64, Error>(9) }).await.unwrap();

    assert_eq!(taken_apart(line, 1).await.unwrap(), 9);
}

async fn arguments_are_dropped_as_those_of_any_function() {
    let dropped = Arc::default();
    let held = |name| Held(name, Arc::clone(&dropped));
    let pair = || Pair { mentioned: held("mentioned"), other: held("other") };

    holding(1, held("first"), held("second"), pair(), held("unmentioned")).await.unwrap();

    let expected = ["body", "unmentioned", "mentioned", "other", "second", "first"];
    assert_eq!(std::mem::take(&mut *dropped.lock().unwrap()), expected);

    holding_what_the_key_looks_at(pair()).await.unwrap();

    assert_eq!(*dropped.lock().unwrap(), ["body", "mentioned", "other"]);
}

async fn a_call_that_runs_on_keeps_all_its_arguments() {
    let dropped = Arc::default();
    let held = |name| Held(name, Arc::clone(&dropped));
    let pair = Pair { mentioned: held("mentioned"), other: held("other") };
    let gates = Arc::<[Notify; 2]>::default();

    tokio::select! {
        _ = holding_on(1, pair, held("unmentioned"), Arc::clone(&gates)) => unreachable!("it waits"),
        () = gates[0].notified() => {}
    }
    assert_eq!(*dropped.lock().unwrap(), [""; 0], "the caller is gone, and the body runs");
    gates[1].notify_one();
    let again = Pair { mentioned: held("again"), other: held("again") };
    holding_on(1, again, held("unmentioned"), gates).await.unwrap();

    let expected = ["body", "unmentioned", "mentioned", "other"];
    assert_eq!(dropped.lock().unwrap()[..4], expected);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyError(String);

impl From<Error> for KeyError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_replay_and_are_kept_apart() {
    let idem = Idempotency::new(MemoryStore::new());
    idem.enter(every_shape()).await;
    idem.enter(parentheses_around_text_say_nothing()).await;
    idem.enter(an_old_key_that_was_a_tuple_is_found(&idem)).await;
    idem.enter(an_old_key_that_was_a_newtype_is_found(&idem)).await;
    idem.enter(arguments_are_dropped_as_those_of_any_function()).await;
    idem.enter(a_call_that_runs_on_keeps_all_its_arguments()).await;
}

async fn every_shape() {
    let order = Order { id: 1, amount: 5 };
    let other = Order { id: 2, amount: 5 };
    let shop = Arc::new(Shop { tenant: "t".to_owned(), runs: AtomicU32::new(0) });

    assert_eq!(shop.method(&order).await.unwrap(), 0);
    assert_eq!(shop.method(&order).await.unwrap(), 0);
    assert_eq!(shop.method(&other).await.unwrap(), 1);
    let changed = shop.method(&Order { id: 1, amount: 6 }).await;
    assert!(matches!(changed, Err(Error::KeyReused { .. })));

    assert_eq!(shop.clone().detached(order.clone()).await.unwrap(), 2);
    assert_eq!(shop.clone().detached(order.clone()).await.unwrap(), 2);

    assert_eq!(shop.pay(Wrapped(order.clone())).await.unwrap(), 3);
    assert_eq!(shop.pay(Wrapped(order.clone())).await.unwrap(), 3);

    let runs = AtomicU32::new(0);
    assert_eq!(template(order.clone(), &runs).await.unwrap(), 0);
    assert_eq!(template(order.clone(), &runs).await.unwrap(), 0);
    assert_eq!(arguments(1, "x", &runs).await.unwrap(), 1);
    assert_eq!(arguments(1, "x", &runs).await.unwrap(), 1);
    assert_eq!(arguments(1, "y", &runs).await.unwrap(), 2);
    assert_eq!(alternatives(Ok(1), &runs).await.unwrap(), 3);
    assert_eq!(alternatives(Err(1), &runs).await.unwrap(), 3);
    assert_eq!(failing_key(0, &runs).await.unwrap_err(), KeyError("no key".to_owned()));
    assert_eq!(failing_key(1, &runs).await.unwrap(), 4);
    assert_eq!(failing_key(1, &runs).await.unwrap(), 4);
}

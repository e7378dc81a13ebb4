//! The death of a process, at every point of a call.

mod mortal;

use std::{fmt, future::poll_fn, pin::pin, sync::Arc, thread, time::Duration};

use tokio::{
    runtime::{self, Handle, Runtime},
    sync::oneshot,
};

use self::mortal::{End, Life, Mortal};
use crate::{
    Builder, Idempotency,
    clock::Clock,
    record::State,
    store::{MemoryStore, Store},
    testing::{ManualClock, StoreOperation},
    value::opaque,
};

/// Lets the process that runs a call die at every point of it, one after the other, and another
/// process call again; a call in a transaction (`tx`, `run_in`, `transact`, `step_in`) it cannot
/// drive.
///
/// Its store is the memory, and such a call needs the database that has its rows, too. It is
/// refused, as over every store without transactions. To have it die on its way, lead its pool
/// through a [`Proxy`](crate::testing::Proxy), and cut the connection at each message in turn: a
/// server that loses a connection rolls back, as it does where a process dies.
///
/// One kind of point is before and after each write and look of the store. Among them is the one
/// that hurts most, between the effect of a call, a step or an undo and its record. The other kind
/// is where the call gives way because something it awaits is not ready. The work of a body between
/// two points is done as a whole. The same holds for work that a thread has begun by then
/// (`spawn_blocking`); a second is waited for it. If a body runs in a task of its own (`on_cancel =
/// detach`), only the store's points are met. A call that is dropped on its way, by a `select!` or
/// a timeout, is released beside the work that goes on. The points of that release come now here,
/// now there, or not at all.
///
/// A process is a handle and a runtime of its own over a memory store that both share. When the
/// first one dies, its calls and tasks are dropped where they are, and nothing that it still does
/// reaches the store, neither a heartbeat nor a release. Destructors run, unlike those of a process
/// that is killed. Then time goes on until its leases are over, and the second process makes the
/// same call, to its end. The effects outside the store stay: a check looks at them.
///
/// # Examples
///
/// A charge that forwards no key: a crash after the effect, and before its record, charges twice.
///
/// ```
/// use idempotent_runtime::{Error, idempotent, testing::{CrashPoints, EffectLog}};
///
/// #[idempotent(name = "payments.charge", key = order, skip(gateway))]
/// async fn charge(gateway: &EffectLog, order: &str) -> Result<(), Error> {
///     gateway.record(order, 1, "charged").expect("memory takes it");
///     tokio::task::yield_now().await;
///     Ok(())
/// }
///
/// let mut twice = Vec::new();
/// CrashPoints::new().run(
///     async || EffectLog::new(),
///     async |_, gateway| charge(gateway, "order-1").await,
///     async |point, gateway, answer| {
///         assert!(answer.is_ok(), "{point}");
///         if gateway.count("order-1").unwrap() > 1 {
///             twice.push(point.to_string());
///         }
///     },
/// );
/// assert_eq!(twice, ["before the ending is written", "where the call gives way for the 1st time"]);
/// ```
pub struct CrashPoints {
    set_up: Box<dyn Fn(Builder) -> Builder>,
}

/// The point where a process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CrashPoint {
    /// Before this call of the store took effect.
    Before(StoreOperation),
    /// After it took effect, and before the process learned of it.
    After(StoreOperation),
    /// The call gave way for this time, counted from 1.
    Await(usize),
    /// After the call was answered.
    Answered,
}

impl CrashPoints {
    /// Begins with handles that have the builder's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            set_up: Box::new(|builder| builder),
        }
    }

    /// Sets up the handle of every process. Its timer is the kit's own.
    #[must_use]
    pub fn set_up(mut self, set_up: impl Fn(Builder) -> Builder + 'static) -> Self {
        self.set_up = Box::new(set_up);
        self
    }

    /// Runs `call` in a process that dies, and again in one that lives, for each point that there
    /// is, and returns the points.
    ///
    /// `world` makes what outlives the processes, anew for each death: a gateway, a database. It
    /// has a runtime of its own, in which it may leave tasks. `call` runs with the handle that it
    /// is given, which is also that of the task; a function whose `handle` is another one has no
    /// points of the store. `check` gets the world, and what the second process was told. The
    /// requests of a call to the store must depend only on its world, so that every run meets the
    /// same points.
    ///
    /// # Panics
    ///
    /// It panics in an async context, because it runs runtimes of its own: call it in a plain
    /// `#[test]`. It panics if `set_up` makes a handle that cannot be built. When `world`, `call`
    /// or `check` panics, so does this; if the first process had died by then, its point is written
    /// to the standard error.
    pub fn run<W, T>(
        &self,
        world: impl AsyncFn() -> W,
        call: impl AsyncFn(&Idempotency, &W) -> T,
        mut check: impl AsyncFnMut(CrashPoint, &W, T),
    ) -> Vec<CrashPoint> {
        let ground = Ground::new();
        // A world may need a runtime when it is dropped, too.
        let _on_the_ground = ground.runtime.enter();
        let mut points = Vec::new();
        let mut end = End::Store(1);
        loop {
            let world = ground.runtime.block_on(world());
            let clock = ManualClock::new();
            let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(clock.clone()));
            let life = Arc::new(Life::until(end));
            let mortal = Mortal::new(Arc::clone(&store), Arc::clone(&life));
            let point = self.die(&ground, mortal, &life, async |idem| {
                call(idem, &world).await
            });
            if point == CrashPoint::Answered && matches!(end, End::Store(_)) {
                end = End::Await(1);
                continue;
            }
            end = end.next();
            let _said = Said(point);
            points.push(point);

            ground.runtime.block_on(leases_end(&*store, &clock));
            let living = self.builder(store, &clock).build();
            let living = living.expect("the set-up is sound");
            let answer = process().block_on(living.enter(call(&living, &world)));

            ground.runtime.block_on(check(point, &world, answer));
            if point == CrashPoint::Answered {
                return points;
            }
        }
    }

    /// Runs a call in a process until that dies.
    fn die<T>(
        &self,
        ground: &Ground,
        store: Mortal,
        life: &Life,
        call: impl AsyncFnOnce(&Idempotency) -> T,
    ) -> CrashPoint {
        let timer = ManualClock::new();
        // Its time stands still while it lives, so this only tells when it gives up afterwards.
        let builder = self.builder(store, &timer).max_run_time("24h");
        let idem = builder.build().expect("the set-up is sound");
        let process = process();
        let point = process.block_on(async {
            let mut call = pin!(idem.enter(call(&idem)));
            poll_fn(|cx| life.poll(call.as_mut(), cx)).await
        });
        life.leave();
        process.shutdown_timeout(A_WHILE);
        ground.runtime.block_on(buried(&idem, &timer));
        point
    }

    fn builder(&self, store: impl Store, timer: &ManualClock) -> Builder {
        (self.set_up)(Idempotency::builder(store)).timer(timer.clone())
    }
}

impl Default for CrashPoints {
    fn default() -> Self {
        Self::new()
    }
}

opaque!(CrashPoints);

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrashPoint::Before(operation) => write!(f, "before {}", said(*operation)),
            CrashPoint::After(operation) => write!(f, "after {}", said(*operation)),
            CrashPoint::Await(number) => {
                let ending = match (number % 100, number % 10) {
                    (11..=13, _) => "th",
                    (_, 1) => "st",
                    (_, 2) => "nd",
                    (_, 3) => "rd",
                    _ => "th",
                };
                write!(f, "where the call gives way for the {number}{ending} time")
            }
            CrashPoint::Answered => f.write_str("after the call is answered"),
        }
    }
}

fn said(operation: StoreOperation) -> &'static str {
    match operation {
        StoreOperation::Claim => "the claim is written",
        StoreOperation::Heartbeat => "a heartbeat is written",
        StoreOperation::Ending => "the ending is written",
        StoreOperation::Load => "a record is looked at",
        StoreOperation::Wait => "a wait",
        StoreOperation::LoadSteps => "steps are looked at",
        StoreOperation::WriteStep => "a step is written",
        _ => "a call of the store",
    }
}

/// A runtime of a process. Tasks that are spawned there end with it.
fn process() -> Runtime {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

/// Moves the time on to where no lease goes on.
async fn leases_end(store: &dyn Store, clock: &ManualClock) {
    let records = store.scan(None, u32::MAX).await;
    let records = records.expect("memory can be listed");
    let running = records
        .iter()
        .filter(|(_, record)| matches!(record.state, State::Running | State::Undoing));
    if let Some(end) = running.map(|(_, record)| record.lease_end).max() {
        clock.advance(end.since(clock.now()));
    }
}

/// How long threads that a process leaves behind are waited for. Those that wait for it themselves
/// never end, and do nothing any more.
const A_WHILE: Duration = Duration::from_secs(1);

/// Waits until the heartbeat thread of a process that has died has given up, unless one of its
/// calls waits in a thread, and so for ever.
async fn buried(idem: &Idempotency, timer: &ManualClock) {
    const LONG: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

    let mut at_rest = pin!(tokio::time::timeout(A_WHILE, idem.shutdown(Duration::MAX)));
    loop {
        tokio::select! {
            biased;
            _ = &mut at_rest => return,
            () = timer.await_sleepers(1) => timer.advance(LONG),
        }
        tokio::task::yield_now().await;
    }
}

/// The place of the world that outlives the processes: a runtime that goes on while they run
/// theirs.
struct Ground {
    runtime: Handle,
    _until_dropped: oneshot::Sender<()>,
}

impl Ground {
    fn new() -> Self {
        let runtime = process();
        let handle = runtime.handle().clone();
        let (until_dropped, ended) = oneshot::channel();
        thread::spawn(move || {
            let _ended = runtime.block_on(ended);
            runtime.shutdown_background();
        });
        Self {
            runtime: handle,
            _until_dropped: until_dropped,
        }
    }
}

/// Tells where a process had died when something panics after that.
struct Said(CrashPoint);

impl Drop for Said {
    #[expect(
        clippy::print_stderr,
        reason = "the message of the panic is the application's own, and does not say where"
    )]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the process had died {}", self.0);
        }
    }
}

//! Faults around the commit of a transaction of the library's: the connection is cut or falls
//! silent, and the caller calls again.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, InFlight,
    testing::{Disconnect, Proxy},
    transaction::SqlDatabase,
};
use sqlx::Connection as _;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Connection, Placed, conflicts::accounts, ours};
use crate::transactions::shop::{MariaDbShop, PostgresShop, Remote, Shop};

/// How long a call waits for the database to tell.
const PATIENCE: Duration = Duration::from_millis(400);

/// How long a caller waits for a call whose body may hear nothing for ever.
const CALLER: Duration = Duration::from_millis(300);

/// How long a caller waits for any other call: one that takes longer hangs.
const HANGS: Duration = Duration::from_secs(45);

/// So many banks have their faults at once.
const LANES: usize = 7;

/// How many messages find a commit out at most, those that open a connection included.
const TO_FIND_OUT: u64 = 12;

/// The message that meets a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    FirstLeg,
    SecondLeg,
    Record,
    Commit,
    AfterCommit,
    /// The commit. After it no connection reaches the server until the call has its answer.
    LastCommit,
    /// The commit has no answer, and this message after it meets the fault.
    FindingOut(u64),
}

const SPOTS: [Spot; 6] = [
    Spot::FirstLeg,
    Spot::SecondLeg,
    Spot::Record,
    Spot::Commit,
    Spot::AfterCommit,
    Spot::LastCommit,
];

const CUTS: [Disconnect; 3] = [
    Disconnect::BeforeRequest,
    Disconnect::BeforeAnswer,
    Disconnect::Silence,
];

#[derive(Clone, Copy, Debug)]
struct Fault {
    spot: Spot,
    cut: Disconnect,
}

impl Fault {
    /// Whether the caller has to leave: nothing ends a statement of the body that has no answer.
    fn can_hang(self) -> bool {
        let is_early = matches!(self.spot, Spot::FirstLeg | Spot::SecondLeg | Spot::Record);
        is_early && self.cut == Disconnect::Silence
    }

    /// Whether the transaction of the first run commits.
    fn commits(self) -> bool {
        match self.spot {
            Spot::FirstLeg | Spot::SecondLeg | Spot::Record => false,
            Spot::Commit | Spot::LastCommit => self.cut != Disconnect::BeforeRequest,
            Spot::AfterCommit | Spot::FindingOut(_) => true,
        }
    }

    /// Each of them, as often as it happens.
    fn all() -> Vec<Self> {
        let (often, now_and_then) = match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
            Ok("full") => (200, 20),
            _ => (2, 1),
        };
        let around = SPOTS.into_iter().map(|spot| (spot, often));
        let behind = (0..TO_FIND_OUT).map(|message| (Spot::FindingOut(message), now_and_then));
        around
            .chain(behind)
            .flat_map(|(spot, rounds)| CUTS.map(|cut| (rounds, Self { spot, cut })))
            .flat_map(|(rounds, fault)| std::iter::repeat_n(fault, rounds))
            .collect()
    }
}

/// An application whose connections go through a proxy.
struct Bank<S> {
    server: SocketAddr,
    proxy: Arc<Proxy>,
    shop: S,
    idem: Idempotency,
    /// Takes connections, and says nothing.
    nowhere: TcpListener,
    /// How many messages come between the body and the commit.
    commit: u64,
}

impl<S: Remote + Shop<Database: SqlDatabase>> Bank<S> {
    async fn open() -> Self {
        let server = crate::servers::address(&crate::servers::url(S::URL));
        let proxy = Proxy::to(server).await.expect("a proxy");
        let shop = S::through(proxy.address()).await;
        accounts(&shop).await;
        let idem = Idempotency::new(shop.store());
        let nowhere = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self {
            server,
            proxy: Arc::new(proxy),
            shop,
            idem,
            nowhere,
            commit: 0,
        }
    }

    /// The body runs again where any message before the commit is cut. Tells how many transfers
    /// that took.
    async fn find_commit(&mut self, beside: &mut Connection<S>) -> i64 {
        let fault = Fault {
            spot: Spot::Commit,
            cut: Disconnect::BeforeAnswer,
        };
        let mut number = 0;
        loop {
            number += 1;
            self.close_idle().await;
            let runs = AtomicI64::new(0);
            let (answer, _) = self.ask(number, &runs, fault).await;
            self.heal();
            self.assert_stands(number, answer, beside).await;
            if runs.into_inner() == 1 {
                return number;
            }
            self.commit += 1;
        }
    }

    /// Moves a cent in a call, and tells which run of its body did.
    async fn transfer(&self, number: i64, runs: &AtomicI64, fault: Fault) -> Result<i64, Error> {
        let prefix = self.shop.prefix();
        let call = self.idem.call("bank.transfer").key(&number);
        let call = call.arguments(&number).in_flight(InFlight::Wait(PATIENCE));
        let moved: Placed = call
            .transact(self.shop.pool(), async |tx| {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                let fault = Some(fault).filter(|_| run == 1);
                for (id, change, spot) in [(0, -1, Spot::FirstLeg), (1, 1, Spot::SecondLeg)] {
                    self.arm(fault.filter(|fault| fault.spot == spot));
                    let update = format!(
                        "UPDATE {prefix}accounts SET cents = cents + {change} WHERE id = {id}"
                    );
                    S::run(tx, update).await?;
                }
                let moved = number * 100 + run;
                self.shop.order(tx, moved).await?;
                let is_late = |spot| !matches!(spot, Spot::FirstLeg | Spot::SecondLeg);
                self.arm(fault.filter(|fault| is_late(fault.spot)));
                Ok(moved)
            })
            .await;
        ours(moved)
    }

    fn arm(&self, fault: Option<Fault>) {
        let Some(Fault { spot, cut }) = fault else {
            return;
        };
        let (before, cut) = match spot {
            Spot::FirstLeg | Spot::SecondLeg | Spot::Record => (0, cut),
            Spot::Commit | Spot::LastCommit => (self.commit, cut),
            Spot::AfterCommit => (self.commit + 1, cut),
            Spot::FindingOut(message) => {
                self.arm_after_commit(message, cut);
                (self.commit, Disconnect::Silence)
            }
        };
        if spot == Spot::LastCommit {
            let nowhere = self.nowhere.local_addr().expect("an address");
            self.proxy.move_to(nowhere);
        }
        self.proxy.cut_after(before, cut);
    }

    /// A proxy takes one fault at a time.
    fn arm_after_commit(&self, message: u64, cut: Disconnect) {
        let proxy = Arc::clone(&self.proxy);
        let met = proxy.round_trips() + self.commit + 1;
        tokio::spawn(async move {
            while proxy.round_trips() < met {
                sleep(Duration::from_millis(5)).await;
            }
            sleep(Duration::from_millis(20)).await;
            proxy.cut_after(message, cut);
        });
    }

    /// Ends every fault.
    fn heal(&self) {
        self.proxy.move_to(self.server);
        self.proxy.cancel_cut();
        self.proxy.cut_all();
    }

    /// A connection comes back a moment after its call, and one that is open already goes by no new
    /// address.
    async fn close_idle(&self) {
        while self.shop.pool().size() > 0 {
            match self.shop.pool().try_acquire() {
                // A farewell would count as a message.
                Some(idle) => drop(idle.detach().close_hard().await),
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// A caller that calls again while it may.
    async fn ask(&self, number: i64, runs: &AtomicI64, fault: Fault) -> (i64, usize) {
        let limit = if fault.can_hang() { CALLER } else { HANGS };
        let mut unknown = 0;
        for _ in 0..100 {
            let called = timeout(limit, self.transfer(number, runs, fault)).await;
            match called {
                Ok(Ok(moved)) => return (moved, unknown),
                Ok(Err(error)) => {
                    assert!(error.is_retryable(), "{fault:?}: {error:?}");
                    unknown += usize::from(matches!(error, Error::CommitUnknown { .. }));
                }
                Err(_) => assert!(fault.can_hang(), "{fault:?}: a call hangs"),
            }
            if fault.spot == Spot::LastCommit {
                self.heal();
            }
        }
        panic!("{fault:?}: there is no answer")
    }

    /// One transfer that meets a fault; `moved` are those before it.
    async fn suffer(&self, moved: i64, fault: Fault, beside: &mut Connection<S>) {
        self.close_idle().await;
        let (number, runs) = (moved + 1, AtomicI64::new(0));
        let (answer, unknown) = self.ask(number, &runs, fault).await;
        self.heal();
        self.assert_stands(number, answer, beside).await;
        let is_first = answer == number * 100 + 1;
        assert_eq!(is_first, fault.commits(), "{fault:?}");
        match fault.spot {
            Spot::LastCommit => assert!(unknown > 0, "{fault:?}"),
            Spot::Commit | Spot::FindingOut(_) => {}
            _ => assert_eq!(unknown, 0, "{fault:?}"),
        }
        let (again, _) = self.ask(number, &runs, fault).await;
        assert_eq!(again, answer, "{fault:?}");
        self.assert_stands(number, answer, beside).await;
    }

    /// Each transfer was made once, and the last one by the run that the caller heard of.
    async fn assert_stands(&self, number: i64, answer: i64, beside: &mut Connection<S>) {
        let prefix = self.shop.prefix();
        let (from, below) = (number * 100, number * 100 + 100);
        let query =
            format!("SELECT item FROM {prefix}orders WHERE item >= {from} AND item < {below}");
        let made = S::numbers(beside, query).await;
        assert_eq!(made.expect("the transfers are read"), [answer]);
        let query = format!("SELECT cents FROM {prefix}accounts WHERE id < 2 ORDER BY id");
        let cents = S::numbers(beside, query).await;
        let cents = cents.expect("the accounts are read");
        assert_eq!(cents, [100 - number, 100 + number]);
    }
}

async fn every_fault_is_found_out<S: Remote + Shop<Database: SqlDatabase>>() {
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        lanes.spawn(async move {
            let mut bank = Bank::<S>::open().await;
            let url = crate::servers::url(S::URL);
            let mut beside = Connection::<S>::connect(&url).await.expect("a connection");
            let moved = bank.find_commit(&mut beside).await;
            let mine = Fault::all().into_iter().skip(lane).step_by(LANES);
            for (moved, fault) in (moved..).zip(mine) {
                bank.suffer(moved, fault, &mut beside).await;
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_every_fault_around_a_commit_of_postgres_is_found_out() {
    every_fault_is_found_out::<PostgresShop>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g10_i14_every_fault_around_a_commit_of_mariadb_is_found_out() {
    every_fault_is_found_out::<MariaDbShop>().await;
}

//! Many bodies at once, and callers who leave in crowds, in a process that is some way off from the
//! server: no lease is lost for their number.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency, Observer, RecordChange, RecordEvent, store::Store, testing::Gate,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use super::{Server, on_every_server};

on_every_server![
    mend_16_no_lease_is_lost_by_the_number_of_bodies,
    mend_16_no_lease_is_lost_beside_a_crowd_that_leaves,
];

/// How far the server is away, there and back.
const ROUND_TRIP: Duration = Duration::from_millis(30);

/// How many bodies run at once, and how long their leases are. Over two connections, one write
/// after the other takes longer than a lease.
fn bodies() -> (usize, Duration) {
    match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => (5_000, Duration::from_secs(30)),
        _ => (600, Duration::from_secs(3)),
    }
}

/// How many callers leave at once.
const CROWD: usize = 800;

/// Passes everything on to a server, later by half of [`ROUND_TRIP`] each way once it is far away.
/// Unlike a proxy that is slow, it keeps nothing waiting for anything else.
#[derive(Clone)]
struct Distance {
    is_far: watch::Sender<bool>,
    address: SocketAddr,
}

impl Distance {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let distance = Self {
            is_far: watch::Sender::new(false),
            address: listener.local_addr().expect("an address"),
        };
        let between = distance.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let between = between.clone();
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await.expect("the server");
                    for one in [&client, &server] {
                        one.set_nodelay(true).expect("an option of a socket");
                    }
                    let (client, server) = (client.into_split(), server.into_split());
                    tokio::spawn(between.clone().pass(client.0, server.1));
                    between.pass(server.0, client.1).await;
                });
            }
        });
        distance
    }

    async fn pass(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (sent, mut under_way) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
        tokio::spawn(async move {
            while let Some((arrives, bytes)) = under_way.recv().await {
                tokio::time::sleep_until(arrives).await;
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            let _ = to.shutdown().await;
        });
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            let late = if *self.is_far.borrow() {
                ROUND_TRIP / 2
            } else {
                Duration::ZERO
            };
            if sent
                .send((Instant::now() + late, bytes[..read].to_vec()))
                .is_err()
            {
                return;
            }
        }
    }

    fn set_far(&self, is_far: bool) {
        self.is_far.send_replace(is_far);
    }
}

/// Counts what happens to records.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<watch::Sender<Counted>>);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) heartbeats: usize,
    pub(crate) lost: usize,
    pub(crate) ended: usize,
}

impl Observer for Counts {
    fn transition(&self, event: &RecordEvent<'_>) {
        self.0.send_modify(|counted| match event.change {
            RecordChange::Heartbeat => counted.heartbeats += 1,
            RecordChange::LeaseLost => counted.lost += 1,
            RecordChange::Stopped => counted.ended += 1,
            _ => {}
        });
    }
}

impl Counts {
    pub(crate) fn now(&self) -> Counted {
        *self.0.borrow()
    }

    /// Waits until so much has happened, or a lease is lost.
    pub(crate) async fn until(&self, enough: impl Fn(&Counted) -> bool) {
        let is_over = |counted: &Counted| counted.lost > 0 || enough(counted);
        let counted = self.0.subscribe().wait_for(is_over).await.map(|it| *it);
        counted.expect("the sender lives in `self`");
    }
}

/// A process with bodies that wait at a gate.
pub(crate) struct Process {
    pub(crate) counts: Counts,
    pub(crate) runs: Arc<AtomicU64>,
    idem: Idempotency,
}

impl Process {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let counts = Counts::default();
        let builder = Idempotency::builder(store).observer(counts.clone());
        Self {
            counts,
            runs: Arc::default(),
            idem: builder.build().expect("the set-up is sound"),
        }
    }

    /// One that is some way off from the server.
    async fn far_from(server: &impl Server) -> (Self, Distance) {
        let distance = Distance::to(server.address()).await;
        let store = server.at(distance.address, 10).await;
        (Self::new(store), distance)
    }

    pub(crate) async fn call(
        &self,
        key: String,
        lease: Duration,
        gate: &Gate,
    ) -> JoinSet<Result<u64, Error>> {
        self.calls([key], lease, gate).await
    }

    /// Begins calls, whose bodies have all arrived at the gate when this returns.
    pub(crate) async fn calls(
        &self,
        keys: impl IntoIterator<Item = String>,
        lease: Duration,
        gate: &Gate,
    ) -> JoinSet<Result<u64, Error>> {
        let mut running = JoinSet::new();
        for key in keys {
            let (idem, runs, gate) = (self.idem.clone(), Arc::clone(&self.runs), gate.clone());
            running.spawn(async move {
                let call = idem.call("far").key(&key).lease(lease);
                call.run(async |_| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    gate.pass().await;
                    Ok(1)
                })
                .await
            });
        }
        gate.arrived(running.len()).await;
        running
    }
}

/// Keeps so many bodies at a gate until each has had three heartbeats.
pub(crate) async fn no_lease_is_lost(
    process: &Process,
    (bodies, lease): (usize, Duration),
    begun: impl Fn(bool),
) {
    let gate = Gate::new();
    let keys = (0..bodies).map(|number| format!("k{number}"));
    let running = process.calls(keys, lease, &gate).await;

    begun(true);
    let enough = process.counts.now().heartbeats + 3 * bodies;
    process
        .counts
        .until(|counted| counted.heartbeats >= enough)
        .await;
    begun(false);
    gate.open();

    for answer in running.join_all().await {
        assert_eq!(answer, Ok(1));
    }
    assert_eq!(process.counts.now().lost, 0);
    assert_eq!(process.runs.load(Ordering::SeqCst), bodies as u64);
}

async fn mend_16_no_lease_is_lost_by_the_number_of_bodies<S: Server>(server: S) {
    let (process, distance) = Process::far_from(&server).await;
    no_lease_is_lost(&process, bodies(), |begun| distance.set_far(begun)).await;
}

/// Keeps one long body while all callers of many others leave.
pub(crate) async fn no_lease_is_lost_beside_a_crowd(process: &Process, begun: impl Fn(bool)) {
    let (gate, stays) = (Gate::new(), Gate::new());
    let lease = Duration::from_secs(2);
    let long = process.call("long".into(), lease, &stays).await;
    let keys = (0..CROWD).map(|number| format!("k{number}"));
    let mut crowd = process.calls(keys, Duration::from_secs(60), &gate).await;

    begun(true);
    crowd.shutdown().await;
    process.counts.until(|counted| counted.ended == CROWD).await;
    stays.open();

    for answer in long.join_all().await {
        assert_eq!(answer, Ok(1));
    }
    let counted = process.counts.now();
    assert_eq!((counted.lost, counted.ended), (0, CROWD));
    assert_eq!(process.runs.load(Ordering::SeqCst), CROWD as u64 + 1);
}

async fn mend_16_no_lease_is_lost_beside_a_crowd_that_leaves<S: Server>(server: S) {
    let (process, distance) = Process::far_from(&server).await;
    no_lease_is_lost_beside_a_crowd(&process, |begun| distance.set_far(begun)).await;
}

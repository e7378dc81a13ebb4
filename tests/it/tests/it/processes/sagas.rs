//! SIGKILL at every point of a call with steps and undos, and SIGSTOP past the lease in a step and
//! between two.

use std::{collections::HashSet, path::PathBuf, process, sync::Arc, time::Duration};

use idempotent_runtime::{
    BoxError, Error, Idempotency, InFlight, Status, StepContext, step,
    testing::{EffectLog, Fault, FaultyStore, Gate, On, StoreOperation},
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{
    child::{Role, say},
    death::at_most,
    place::Place,
    process::Process,
};
use crate::booking::{BookError, verdict};

const LEASE: Duration = Duration::from_millis(400);

everywhere![
    a_saga_that_is_killed_anywhere_is_undone_and_never_runs_forward,
    a_step_at_most_once_that_is_killed_is_uncertain,
    a_holder_that_wakes_in_a_step_begins_nothing_more,
];

/// The point at which a call stops. A call writes each of its two steps twice, and each undo once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Spot {
    /// Its n-th write of a step is about to be sent.
    BeforeWrite(u64),
    /// The write stands, and the call has not heard of it.
    AfterWrite(u64),
    /// The decision that it has failed, or its outcome, is about to be sent.
    BeforeEnding(u64),
    AfterEnding(u64),
    /// The effect of a step has happened.
    InStep,
    /// Between two steps.
    BetweenSteps,
}

/// One call: two processes that are given the same make duplicates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Saga {
    folder: PathBuf,
    place: Place,
    key: String,
    spot: Spot,
    /// Whether its steps run at most once, have no undo, and end well.
    at_most_once: bool,
}

impl Saga {
    /// Makes the call in this process, stops, and says so. Told to go on, it reports the result.
    pub(super) async fn stop(&self, parent: &mut tokio::sync::mpsc::UnboundedReceiver<String>) {
        let (store, gate) = (
            FaultyStore::new(self.place.open(&self.folder).await),
            Gate::new(),
        );
        let (operation, call, fault) = match self.spot {
            Spot::BeforeWrite(number) => (
                StoreOperation::WriteStep,
                number,
                Fault::Delay(gate.clone()),
            ),
            Spot::AfterWrite(number) => (
                StoreOperation::WriteStep,
                number,
                Fault::DelayAnswer(gate.clone()),
            ),
            Spot::BeforeEnding(number) => {
                (StoreOperation::Ending, number, Fault::Delay(gate.clone()))
            }
            Spot::AfterEnding(number) => (
                StoreOperation::Ending,
                number,
                Fault::DelayAnswer(gate.clone()),
            ),
            Spot::InStep | Spot::BetweenSteps => (StoreOperation::Purge, 1, Fault::Panic),
        };
        store.fault(operation, On::Call(call), fault);
        let idem = Idempotency::new(store);
        let (saga, held) = (self.clone(), gate.clone());
        let call = tokio::spawn(async move { saga.call(&idem, Some(&held)).await });
        gate.arrived(1).await;
        say(&"stopped");
        parent.recv().await;
        gate.open();
        let came = call.await.expect("no panic");
        say(&came.map_err(|error| error.to_string()));
    }

    async fn call(&self, idem: &Idempotency, gate: Option<&Gate>) -> Result<(), BookError> {
        // The process that is stopped loses its lease soon, and the survivor does not.
        let lease = gate.map_or(Duration::from_secs(30), |_| LEASE);
        let call = idem.call("processes.trip").key(&self.key).lease(lease);
        let call = call.in_flight(InFlight::Wait(Duration::from_secs(20)));
        call.classify_errors(verdict)
            .run(async |_| {
                for name in ["flight", "hotel"] {
                    self.book(name, gate).await?;
                    self.at(Spot::BetweenSteps, name, gate).await;
                }
                self.happens("the end", "");
                match self.at_most_once {
                    true => Ok(()),
                    false => Err(BookError::Refused),
                }
            })
            .await
    }

    async fn book(&self, name: &'static str, gate: Option<&Gate>) -> Result<(), BookError> {
        let body = async |s: StepContext| {
            self.happens(name, &s.key());
            self.at(Spot::InStep, name, gate).await;
            Ok::<_, BookError>(())
        };
        if self.at_most_once {
            return step(name, body).at_most_once().run().await;
        }
        let saga = self.clone();
        let step = step(name, body).undo(move |undo| {
            saga.happens(&format!("undo {name}"), &undo.key());
            async { Ok::<_, BoxError>(()) }
        });
        step.run().await
    }

    /// Stops in, or behind, the first step.
    async fn at(&self, spot: Spot, name: &str, gate: Option<&Gate>) {
        if let Some(gate) = gate.filter(|_| self.spot == spot && name == "flight") {
            gate.pass().await;
        }
    }

    fn log(&self) -> EffectLog {
        let file = self.folder.join(format!("{}.effects", self.key));
        EffectLog::on_disk(file).expect("the log opens")
    }

    /// A gateway. It takes a request with a known key for a repeated one.
    fn happens(&self, what: &str, key: &str) {
        let written = self.log().record(what, 1, key);
        written.expect("the log is written");
    }

    /// How often it was asked, and how many different keys there were.
    fn requests(&self, what: &str) -> (usize, usize) {
        let entries = self.log().entries().expect("the log is read");
        let of_it: Vec<_> = entries.iter().filter(|it| it.key == what).collect();
        let keys: HashSet<_> = of_it.iter().map(|effect| &effect.value).collect();
        (of_it.len(), keys.len())
    }

    /// The effects of a process, in its order.
    fn of_process(&self, id: u32) -> Vec<String> {
        let entries = self.log().entries().expect("the log is read");
        let of_it = entries.into_iter().filter(|effect| effect.process == id);
        of_it.map(|effect| effect.key).collect()
    }
}

/// The process that lives on, and calls after each kill.
struct Survivor {
    folder: TempDir,
    place: Place,
    idem: Idempotency,
}

impl Survivor {
    async fn open(place: Place) -> Arc<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let idem = Idempotency::new(place.open(folder.path()).await);
        Arc::new(Self {
            folder,
            place,
            idem,
        })
    }

    fn saga(&self, spot: Spot, at_most_once: bool) -> Saga {
        Saga {
            folder: self.folder.path().to_owned(),
            place: self.place.clone(),
            key: format!("key-{:016x}", rand::random::<u64>()),
            spot,
            at_most_once,
        }
    }
}

async fn a_saga_that_is_killed_anywhere_is_undone_and_never_runs_forward(place: Place) {
    let survivor = Survivor::open(place).await;
    let writes = (1..=6).flat_map(|number| [Spot::BeforeWrite(number), Spot::AfterWrite(number)]);
    let endings = [1, 2].map(|number| [Spot::BeforeEnding(number), Spot::AfterEnding(number)]);
    let spots: Vec<_> = writes.chain(endings.into_iter().flatten()).collect();
    let twice = spots.iter().chain(&spots).copied();
    at_most(5, twice, |spot| {
        let survivor = Arc::clone(&survivor);
        async move { undone_after_kill(&survivor, spot).await }
    })
    .await;
}

async fn undone_after_kill(survivor: &Survivor, spot: Spot) {
    let saga = survivor.saga(spot, false);
    let child = Process::stopped(&Role::Saga(saga.clone())).await;
    let had_decided = matches!(
        spot,
        Spot::BeforeWrite(5..) | Spot::AfterWrite(5..) | Spot::AfterEnding(2)
    );
    child.kill().await;
    // A heartbeat may have moved the record, so that the ending that was seen first is refused.
    let key = &saga.key;
    let status = survivor.idem.lookup("processes.trip", None::<&str>, key);
    let stands = status.await.expect("the store answers");
    let stands = matches!(stands, Status::Undoing { .. } | Status::Failed(_));
    assert!(stands || !had_decided, "{spot:?}");
    for _ in 0..2 {
        let answer = saga.call(&survivor.idem, None).await;
        assert_eq!(answer, Err(BookError::Refused), "{spot:?}");
    }
    for name in ["flight", "hotel"] {
        let (asked, effects) = saga.requests(name);
        assert_eq!(effects, 1, "{spot:?}: {name}");
        assert!(asked <= 2, "{spot:?}: {name}: one more for the kill");
        let (asked, effects) = saga.requests(&format!("undo {name}"));
        assert_eq!(effects, 1, "{spot:?}: {name} is undone");
        assert!(asked <= 2, "{spot:?}: {name}: one more for the kill");
    }
    let forward = saga.of_process(process::id());
    if stands {
        let only_undos = forward.iter().all(|what| what.starts_with("undo "));
        assert!(only_undos, "{spot:?}: {forward:?}");
    }
}

async fn a_step_at_most_once_that_is_killed_is_uncertain(place: Place) {
    let survivor = Survivor::open(place).await;
    // The first step writes its beginning, and then its outcome.
    for spot in [Spot::AfterWrite(1), Spot::InStep, Spot::BeforeWrite(2)] {
        for _ in 0..2 {
            let saga = survivor.saga(spot, true);
            Process::stopped(&Role::Saga(saga.clone()))
                .await
                .kill()
                .await;
            let answer = saga.call(&survivor.idem, None).await;
            let is_uncertain = matches!(answer, Err(BookError::Ours(Error::Uncertain { .. })));
            assert!(is_uncertain, "{spot:?}: {answer:?}");
            assert!(saga.requests("flight").0 <= 1, "{spot:?}");
        }
    }
}

async fn a_holder_that_wakes_in_a_step_begins_nothing_more(place: Place) {
    let survivor = Survivor::open(place).await;
    for spot in [
        Spot::InStep,
        Spot::BetweenSteps,
        Spot::InStep,
        Spot::BetweenSteps,
    ] {
        let saga = survivor.saga(spot, false);
        let mut holder = Process::stopped(&Role::Saga(saga.clone())).await;
        holder.freeze();
        // Stopped during the write of a heartbeat, it would keep the file of SQLite locked.
        while survivor
            .idem
            .store()
            .purge(0, Duration::ZERO)
            .await
            .is_err()
        {
            holder.wake();
            holder.freeze();
        }
        let answer = saga.call(&survivor.idem, None).await;
        assert_eq!(answer, Err(BookError::Refused), "{spot:?}");
        holder.go_on().await;
        holder.wake();
        let came: Result<(), String> = holder.hear().await;
        assert!(came.is_err(), "{spot:?}: {came:?}");
        assert_eq!(saga.of_process(holder.id()), ["flight"], "{spot:?}");
        for name in ["flight", "hotel"] {
            assert_eq!(saga.requests(name).1, 1, "{spot:?}: {name}");
            assert_eq!(
                saga.requests(&format!("undo {name}")),
                (1, 1),
                "{spot:?}: {name}"
            );
        }
    }
}

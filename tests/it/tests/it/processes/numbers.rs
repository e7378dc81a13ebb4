//! Four processes that deliver the numbers of one stream out of order and in copies, while they are
//! killed and cut off from the server.

use std::{path::PathBuf, sync::Arc, time::Duration};

use idempotent_runtime::{
    Idempotency, OnCrash,
    testing::{Disconnect, EffectLog, Proxy},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{
    child::{Role, say},
    place::Place,
    process::Process,
};
use crate::sequences::plan::{KILLS, Worker, assert_in_order};

everywhere![
    numbers_from_four_processes_are_applied_in_order,
    uncertain_numbers_from_four_processes_are_settled_and_applied_once,
];

/// One of the processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Numbers {
    folder: PathBuf,
    place: Place,
    seed: u64,
    is_strict: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum Said {
    Ready,
    /// The body of this number stands still.
    Held(u64),
    /// It has delivered all numbers, and applied these.
    Applied(Vec<u64>),
}

impl Numbers {
    fn effects(&self) -> EffectLog {
        EffectLog::on_disk(self.folder.join("numbers.effects")).expect("the log opens")
    }

    fn on_crash(&self) -> OnCrash {
        match self.is_strict {
            true => OnCrash::Uncertain,
            false => OnCrash::Rerun,
        }
    }

    /// Delivers all numbers in this process.
    pub(super) async fn deliver(&self) {
        let worker = Worker {
            idem: Idempotency::new(self.place.open(&self.folder).await),
            effects: Arc::new(self.effects()),
            seed: self.seed,
            on_crash: self.on_crash(),
        };
        say(&Said::Ready);
        let applied = worker.deliver(&|number| say(&Said::Held(number))).await;
        say(&Said::Applied(applied));
    }

    /// Begins a process, and a way to its server that is cut again and again. It is killed where a
    /// body stands still, and another one takes its place.
    async fn oversee(mut self) -> (Vec<u64>, usize) {
        let mut killed = 0;
        loop {
            let (mut process, proxy) = self.start().await;
            assert!(matches!(process.hear().await, Said::Ready));
            let cutting = tokio::spawn(cut(proxy, self.seed));
            let said = process.hear().await;
            cutting.abort();
            match said {
                Said::Applied(numbers) => return (numbers, killed),
                Said::Held(_) => process.kill().await,
                Said::Ready => panic!("it is ready once"),
            }
            killed += 1;
            self.seed += 4;
        }
    }

    async fn start(&self) -> (Process, Option<Proxy>) {
        let role = Role::Numbers(self.clone());
        let Some((name, url)) = self.place.server() else {
            return (Process::start(&role), None);
        };
        let server = crate::servers::address(&url);
        let proxy = Proxy::to(server).await.expect("a proxy");
        let url = crate::servers::url_at(&url, proxy.address());
        (Process::behind(&role, name, &url), Some(proxy))
    }
}

/// Cuts connections where a client cannot tell what the server did.
async fn cut(proxy: Option<Proxy>, seed: u64) {
    const CUTS: [Disconnect; 4] = [
        Disconnect::BeforeRequest,
        Disconnect::InRequest,
        Disconnect::BeforeAnswer,
        Disconnect::InAnswer,
    ];
    let Some(proxy) = proxy else { return };
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..200))).await;
        proxy.cut_next(CUTS[rng.random_range(0..CUTS.len())]);
    }
}

async fn deliver(place: Place, is_strict: bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let numbers = |seed| Numbers {
        folder: folder.path().to_owned(),
        place: place.clone(),
        seed,
        is_strict,
    };
    let mut processes = JoinSet::new();
    for seed in 0..4 {
        processes.spawn(numbers(seed).oversee());
    }
    let (applied, killed): (Vec<_>, Vec<_>) = processes.join_all().await.into_iter().unzip();
    assert_eq!(killed.iter().sum::<usize>(), KILLS.len());
    let numbers = numbers(0);
    assert_in_order(&numbers.effects(), &applied, numbers.on_crash());
}

async fn numbers_from_four_processes_are_applied_in_order(place: Place) {
    deliver(place, false).await;
}

async fn uncertain_numbers_from_four_processes_are_settled_and_applied_once(place: Place) {
    deliver(place, true).await;
}

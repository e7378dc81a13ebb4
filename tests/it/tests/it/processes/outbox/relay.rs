//! A publisher that writes what it is given into a log on disk, and has a fate.

use std::{
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use idempotent_runtime::{
    outbox::{Envelope, PublishError, Publisher},
    testing::EffectLog,
};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use super::{super::child::say, plan::Arrival};

/// How a relay ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// By SIGKILL at any time after its first batch.
    IsKilled,
    /// By SIGKILL when it has published a batch, and has confirmed nothing of it.
    DiesBehindABatch,
    /// By SIGKILL when it has published a half of a batch.
    DiesInABatch,
    /// It stands still past its lease, when it is about to publish a batch.
    IsStopped,
}

pub(super) const FATES: [End; 4] = [
    End::IsKilled,
    End::DiesBehindABatch,
    End::DiesInABatch,
    End::IsStopped,
];

pub(super) struct Logging {
    log: EffectLog,
    fate: Option<End>,
    /// The batch at which its fate comes.
    fatal: u32,
    batches: AtomicU32,
    folder: PathBuf,
}

impl Logging {
    /// `fate` comes with how many relays had it before.
    pub(super) fn new(log: EffectLog, fate: Option<(End, u32)>, folder: PathBuf) -> Self {
        Self {
            log,
            fate: fate.map(|(fate, _)| fate),
            fatal: fate.map_or(0, |(_, before)| before % 3),
            batches: AtomicU32::new(0),
            folder,
        }
    }

    fn write(&self, batch: &[Envelope]) {
        for envelope in batch {
            let Envelope {
                id, key, number, ..
            } = envelope.clone();
            let arrival = Arrival {
                id,
                key: key.expect("each has a key"),
                number: number.expect("each has a number"),
                order: serde_json::from_slice(&envelope.payload).expect("an order"),
            };
            let line = serde_json::to_string(&arrival).expect("JSON");
            let written = self.log.record(&*arrival.key, 1, line);
            written.expect("the log is written");
        }
    }

    /// Blocks the thread, so that nothing of this process goes on, and no lease is prolonged.
    fn hold(&self, batch: &[Envelope]) {
        let ids: Vec<_> = batch.iter().map(|it| &it.id).collect();
        say(&ids);
        let goes_on = self.folder.join(process::id().to_string());
        while !goes_on.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn die() {
    kill_process(getpid(), Signal::KILL).expect("the process may kill itself");
}

impl Publisher for Logging {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let number = self.batches.fetch_add(1, Ordering::SeqCst);
        let fate = self.fate.filter(|_| number == self.fatal);
        match fate {
            Some(End::DiesInABatch) => {
                self.write(&batch[..batch.len() / 2]);
                die();
            }
            Some(End::DiesBehindABatch) => {
                self.write(batch);
                die();
            }
            Some(End::IsStopped) => self.hold(batch),
            Some(End::IsKilled) | None => {}
        }
        self.write(batch);
        if fate.is_some() {
            say(&"published");
        }
        vec![Ok(()); batch.len()]
    }
}

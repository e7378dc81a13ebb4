//! The overview: it is read once in five seconds, however many browsers ask.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, Time,
    operate::{Health, State},
};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    limit::in_time,
    outbox::{AnyOutbox, Topic},
};

/// How old an overview may be.
const FRESH: Duration = Duration::from_secs(5);

/// How many records that need a person are looked at.
const MOST: u32 = 5_000;

/// The records that need a person, of one operation in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needy {
    pub(crate) state: State,
    pub(crate) operation: String,
    pub(crate) is_stream: bool,
    pub(crate) count: u64,
    pub(crate) oldest: Time,
}

/// All that the overview shows.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    pub(crate) needy: Result<Vec<Needy>, String>,
    /// Whether there are more than were looked at.
    pub(crate) is_capped: bool,
    /// The time by the store's clock.
    pub(crate) now: Option<Time>,
    pub(crate) topics: Result<Vec<Topic>, String>,
    pub(crate) health: Result<Health, String>,
}

/// The overview that was read last.
#[derive(Default)]
pub(crate) struct Cache(Arc<Mutex<Last>>);

type Last = Option<(Instant, Arc<Overview>)>;

impl Cache {
    /// Returns an overview that is not older than five seconds. Those who come while it is read
    /// wait for it, and read nothing. It is read to its end, also for a browser that leaves.
    pub(crate) async fn get(
        &self,
        idem: &Idempotency,
        outbox: Option<&Arc<dyn AnyOutbox>>,
    ) -> Arc<Overview> {
        let (last, idem, outbox) = (Arc::clone(&self.0), idem.clone(), outbox.cloned());
        let reading = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((read, overview)) = &*last
                && read.elapsed() < FRESH
            {
                return Arc::clone(overview);
            }
            let overview = Arc::new(Overview::read(&idem, outbox.as_deref()).await);
            *last = Some((Instant::now(), Arc::clone(&overview)));
            overview
        });
        match reading.await {
            Ok(overview) => overview,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Overview {
    async fn read(idem: &Idempotency, outbox: Option<&dyn AnyOutbox>) -> Self {
        let needy = idem.records().attention();
        let topics = async {
            match outbox {
                Some(outbox) => in_time(outbox.topics()).await,
                None => Ok(Vec::new()),
            }
        };
        let health = in_time(async { Ok::<_, Error>(idem.health().await) });
        let (page, health, topics) = tokio::join!(in_time(needy.page(MOST)), health, topics);
        let (health, topics) = (
            health.map_err(|error| error.to_string()),
            topics.map_err(|error| error.to_string()),
        );
        let (is_capped, now) = match &page {
            Ok(page) => (page.next.is_some(), Some(page.now)),
            Err(_) => (false, None),
        };
        let needy = page.map_err(|error| error.to_string()).map(|page| {
            let mut all = BTreeMap::new();
            for row in &page.rows {
                let since = row.finished.unwrap_or(row.created);
                let name = (row.state.code(), row.operation.to_string(), row.is_stream);
                let one = all.entry(name).or_insert_with(|| Needy {
                    state: row.state,
                    operation: row.operation.to_string(),
                    is_stream: row.is_stream,
                    count: 0,
                    oldest: since,
                });
                one.count += 1;
                one.oldest = one.oldest.min(since);
            }
            all.into_values().collect()
        });
        Self {
            needy,
            is_capped,
            now,
            topics,
            health,
        }
    }
}

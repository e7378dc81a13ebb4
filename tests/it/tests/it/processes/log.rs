//! The events of one key's bodies, on disk.

use std::path::Path;

use idempotent_runtime::testing::EffectLog;
use serde::{Deserialize, Serialize};

/// The log of one key.
#[derive(Clone, Debug)]
pub(super) struct Log {
    key: String,
    effects: EffectLog,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Event {
    /// A body was polled: this is the effect that counts.
    Began { token: u64 },
    /// It came to its end.
    Ended { token: u64 },
    /// The reconciling function was asked.
    Asked,
    /// This process is dead: no body of it lives.
    Killed { process: u32 },
}

impl Log {
    pub(super) fn open(folder: &Path, key: &str) -> Self {
        let effects =
            EffectLog::on_disk(folder.join(format!("{key}.effects"))).expect("the log opens");
        Self {
            key: key.to_owned(),
            effects,
        }
    }

    pub(super) fn write(&self, attempt: u32, event: &Event) {
        let event = serde_json::to_string(event).expect("an event is JSON");
        self.effects
            .record(&*self.key, attempt, event)
            .expect("the log is written");
    }

    /// Every event, oldest first, with the process that it happened in.
    pub(super) fn events(&self) -> Vec<(u32, Event)> {
        let entries = self.effects.entries().expect("the log is read");
        entries
            .into_iter()
            .map(|entry| {
                let event = serde_json::from_str(&entry.value).expect("an event is JSON");
                (entry.process, event)
            })
            .collect()
    }

    /// How many bodies were polled.
    pub(super) fn bodies(&self) -> usize {
        self.count(|event| matches!(event, Event::Began { .. }))
    }

    pub(super) fn count(&self, counts: impl Fn(&Event) -> bool) -> usize {
        self.events()
            .iter()
            .filter(|(_, event)| counts(event))
            .count()
    }

    /// V1 and V4: no body began while another one lived, and each had a higher token than the one
    /// before.
    pub(super) fn assert_one_body_at_a_time(&self) {
        let events = self.events();
        let (mut live, mut highest) = (None, 0);
        for (process, event) in &events {
            match *event {
                Event::Began { token } => {
                    assert_eq!(live, None, "two bodies lived at once: {events:?}");
                    assert!(token > highest, "a token did not grow: {events:?}");
                    (live, highest) = (Some((*process, token)), token);
                }
                Event::Ended { token } => {
                    assert_eq!(
                        live,
                        Some((*process, token)),
                        "a dead body went on: {events:?}"
                    );
                    live = None;
                }
                Event::Killed { process } => {
                    live = live.filter(|(lives_in, _)| *lives_in != process);
                }
                Event::Asked => {}
            }
        }
        assert_eq!(live, None, "a body is left: {events:?}");
    }
}

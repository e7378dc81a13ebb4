//! Events in the journal while a call is being made.

use std::time::Duration;

use async_trait::async_trait;
use idempotent_client::{
    ClientCall, ClientError, ClientJournal, MemoryJournal, StopReason,
    journal::{CorruptEntry, Ending as CallSummary, Entry, EntryId},
};
use idempotent_runtime::{
    StoreError, StoreErrorKind, clock::Timer as _, record::Time, testing::ManualClock,
};

use crate::{
    journal::process_with,
    kit::{Ending, Pauses, Process, Server, Step, answer, builder, nobody, patient, wish},
    sharing::refusals,
};

/// A journal in which something happens while a call is being made.
#[derive(Debug)]
struct Meanwhile {
    journal: MemoryJournal,
    happens: Happens,
}

#[derive(Debug)]
enum Happens {
    /// It takes no call.
    IsFull,
    /// While a call is taken up, its first caller is told that nothing came of it.
    Withdrawn,
    /// While a call is taken up, more time passes than it has.
    Waits(Pauses),
    /// It takes calls, and then cannot be told anything.
    Fails,
    /// It writes a call, and no answer tells of that.
    IsCut,
    /// It does not say what stands in it.
    IsBusy,
}

impl Meanwhile {
    fn of(happens: Happens) -> Self {
        Self {
            journal: MemoryJournal::new(),
            happens,
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        match self.happens {
            Happens::Fails => Err(StoreError::new(StoreErrorKind::Full, "writing")),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl ClientJournal for Meanwhile {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        if matches!(self.happens, Happens::IsFull) {
            return Err(StoreError::new(StoreErrorKind::Full, "writing"));
        }
        let standing = self.journal.begin(entry).await;
        match self.happens {
            Happens::IsCut => Err(StoreError::new(StoreErrorKind::Unavailable, "writing")),
            Happens::IsBusy if standing != Ok(None) => {
                Err(StoreError::new(StoreErrorKind::Busy, "writing"))
            }
            _ => standing,
        }
    }

    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        self.journal.find(id).await
    }

    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError> {
        match (&self.happens, seen) {
            (Happens::Withdrawn, Some(seen)) => {
                self.journal.withdraw(id, Some(seen)).await?;
            }
            (Happens::Withdrawn, None) => unreachable!("it was begun"),
            (Happens::Waits(pauses), _) => pauses.sleep(Duration::from_secs(60)).await,
            _ => {}
        }
        self.journal.take_up(id, seen, begun).await
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &CallSummary,
    ) -> Result<(), StoreError> {
        self.check()?;
        self.journal.finish(id, caller, ending).await
    }

    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError> {
        self.check()?;
        self.journal.withdraw(id, begun).await
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        self.journal.forget(id).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError> {
        self.journal.unfinished(limit).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        self.journal.purge(before, limit).await
    }
}

async fn ask(
    process: &Process,
    server: &Server,
    wish: ClientCall,
) -> reqwest_middleware::Result<reqwest::Response> {
    process.post(server).with_extension(wish).send().await
}

#[tokio::test]
async fn cl09_where_the_journal_fails_nothing_is_sent() {
    let server = Server::doing([answer(201)]).await;
    let process = process_with(Meanwhile::of(Happens::IsFull), &ManualClock::new());
    let ended = ask(&process, &server, ClientCall::new()).await;
    assert!(matches!(ended.ending(), ClientError::Journal { .. }));
    assert!(server.seen().is_empty());
}

/// A call that is sent stands in the journal, though another process took it out when it was looked
/// for.
#[tokio::test]
async fn cl09_a_call_that_was_withdrawn_while_it_was_taken_up_is_written_anew() {
    let server = Server::doing([Step::Cut, Step::Cut]).await;
    let process = process_with(Meanwhile::of(Happens::Withdrawn), &ManualClock::new());
    for sent in 1..=2 {
        let ended = ask(&process, &server, wish()).await;
        ended.unknown();
        assert_eq!(server.seen().len(), sent);
        assert_eq!(process.open().await, 1, "it may have been carried out");
    }
}

/// The process before this one may have done what it sent, whether there is time for another
/// attempt or not.
#[tokio::test]
async fn cl29_a_call_that_was_taken_up_too_late_stays_open() {
    let server = Server::doing([Step::Cut]).await;
    let pauses = Pauses::default();
    let journal = Meanwhile::of(Happens::Waits(pauses.clone()));
    let keys = builder(&pauses)
        .limits(patient().attempts(1))
        .journal(journal)
        .clock(ManualClock::new());
    let process = Process::of(keys);
    drop(ask(&process, &server, wish()).await);

    let short = wish().deadline(Duration::from_secs(30));
    let ended = ask(&process, &server, short).await;

    assert_eq!(ended.unknown().0, StopReason::Deadline);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(process.open().await, 1, "it may have been carried out");
}

/// It stands there as one to be sent, so the next caller that resumes it will send it.
#[tokio::test]
async fn cl39_nobody_is_told_that_a_call_did_nothing_that_the_journal_still_holds() {
    for refusal in refusals() {
        let server = Server::doing([refusal.clone()]).await;
        let process = process_with(Meanwhile::of(Happens::Fails), &ManualClock::new());

        let ended = ask(&process, &server, wish()).await;

        assert_eq!(ended.unknown().0, StopReason::Journal, "{refusal:?}");
        assert_eq!(process.open().await, 1);
    }
    let process = process_with(Meanwhile::of(Happens::Fails), &ManualClock::new());
    let unheard = process
        .client
        .post(format!("http://{}/pay", nobody().await));
    let ended = unheard.body("pay").send().await;
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Journal);
    assert!(call.failure.is_some());
}

/// A caller that is told that nothing was sent does something else, so the call is not sent from
/// there.
#[tokio::test]
async fn cl39_a_call_that_the_journal_wrote_and_did_not_say_so_is_taken_out_again() {
    let server = Server::doing([Step::Cut]).await;
    let process = process_with(Meanwhile::of(Happens::IsCut), &ManualClock::new());

    let ended = ask(&process, &server, wish()).await;

    let ended = ended.ending();
    assert!(matches!(ended, ClientError::Journal { .. }), "{ended:?}");
    assert!(server.seen().is_empty());
    assert_eq!(process.open().await, 0);
}

/// A middleware outside that retries hands on the last error.
#[tokio::test]
async fn cl39_nobody_is_told_that_nothing_was_sent_of_what_an_earlier_pass_sent() {
    let server = Server::doing([Step::Cut]).await;
    let process = process_with(Meanwhile::of(Happens::IsBusy), &ManualClock::new());
    let extensions = &mut http::Extensions::new();
    let mut pass = async || {
        let call = process.post(&server).build().expect("a request");
        let call = process.client.execute_with_extensions(call, extensions);
        call.await
    };
    assert!(pass().await.is_err());

    let ended = pass().await;

    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Journal);
    assert!(call.failure.is_some());
    assert_eq!(server.seen().len(), 1);
}

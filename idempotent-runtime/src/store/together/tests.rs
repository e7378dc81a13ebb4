//! The order in which writes go, and the answer that each caller gets.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::{
    record::{
        Moment, TokenRule,
        draft::tests::{claim, completion},
    },
    store::MemoryStore,
};

const MINUTE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(20);

/// A store whose batches wait until a test lets them pass.
#[derive(Debug)]
struct Gated {
    records: MemoryStore,
    /// The ids of each batch that was sent, and of each write that went alone.
    sent: Mutex<Vec<Vec<RecordId>>>,
    passes: Semaphore,
    /// Leaves all out of a batch.
    leaves_out: AtomicBool,
    panics: AtomicBool,
}

impl Gated {
    async fn passes(&self, sent: Vec<RecordId>) {
        self.sent.lock().expect("no panic here").push(sent);
        let permit = self.passes.acquire().await;
        permit.expect("it is never closed").forget();
        assert!(!self.panics.load(Ordering::SeqCst), "the store panics");
    }
}

#[async_trait]
impl Store for Gated {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.records.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.passes(vec![*id]).await;
        self.records.swap(id, seen, next).await
    }

    async fn wait(&self, id: &RecordId, seen: Version, most: Duration) -> Result<(), StoreError> {
        self.records.wait(id, seen, most).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.records.purge(limit, keep).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.records.scan(after, limit).await
    }
}

impl WriteTogether for Gated {
    async fn write_together(&self, writes: &[Write]) -> Vec<WriteAnswer> {
        if self.leaves_out.load(Ordering::SeqCst) {
            return writes.iter().map(|_| None).collect();
        }
        self.passes(writes.iter().map(|write| write.id).collect())
            .await;
        let mut answers = Vec::new();
        for Write { id, seen, next } in writes {
            answers.push(Some(self.records.swap(id, Some(*seen), next).await));
        }
        answers
    }
}

type Writing = JoinHandle<Result<Swap, StoreError>>;

struct Bench {
    store: Arc<Together<Gated>>,
}

impl Bench {
    fn new() -> Self {
        let gated = Gated {
            records: MemoryStore::new(),
            sent: Mutex::default(),
            passes: Semaphore::new(0),
            leaves_out: AtomicBool::new(false),
            panics: AtomicBool::new(false),
        };
        Self {
            store: Arc::new(Together::new(gated)),
        }
    }

    fn gated(&self) -> &Gated {
        &self.store.0.store
    }

    async fn begin(&self, number: usize) -> Draft {
        let draft = claim(b"key");
        let begun = self.gated().records.swap(&id(number), None, &draft).await;
        assert!(matches!(begun, Ok(Swap::Applied(_))));
        draft
    }

    fn write(&self, number: usize, seen: Version, next: Draft) -> Writing {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move { store.swap(&id(number), Some(seen), &next).await })
    }

    async fn renew(&self, number: usize, lease: Duration) -> Writing {
        let begun = self.begin(number).await;
        self.write(number, begun.version, renewal(&begun, lease))
    }

    async fn end(&self, number: usize) -> Writing {
        let begun = self.begin(number).await;
        self.write(number, begun.version, completion(&begun, "value"))
    }

    fn sent(&self) -> Vec<Vec<RecordId>> {
        self.gated().sent.lock().expect("no panic here").clone()
    }

    /// Waits until so many batches have been sent, and returns the last one.
    async fn sent_as(&self, number: usize) -> Vec<RecordId> {
        until(|| self.sent().len() >= number).await;
        let sent = self.sent();
        assert_eq!(sent.len(), number, "{sent:?}");
        sent.last().cloned().unwrap_or_default()
    }

    async fn waits(&self, number: usize) {
        until(|| lock(&self.store.0.waiting).queue.len() == number).await;
    }

    fn pass(&self, batches: usize) {
        self.gated().passes.add_permits(batches);
    }

    /// Keeps both places with renewals. They have the numbers 1 and 2.
    async fn keep_busy(&self) -> [Writing; 2] {
        let first = self.renew(1, MINUTE).await;
        self.sent_as(1).await;
        let second = self.renew(2, MINUTE).await;
        self.sent_as(2).await;
        [first, second]
    }
}

fn id(number: usize) -> RecordId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    RecordId::from_bytes(bytes)
}

fn renewal(of: &Draft, lease: Duration) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        token: TokenRule::Keep,
        lease: Moment::In(lease),
        ..of.clone()
    }
}

async fn until(enough: impl Fn() -> bool) {
    let looks = async {
        while !enough() {
            yield_now().await;
        }
    };
    timeout(PATIENCE, looks).await.expect("it happens");
}

async fn assert_applied(writing: impl IntoIterator<Item = Writing>) {
    for writing in writing {
        let swap = writing.await.expect("no panic");
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    }
}

async fn assert_unanswered(writing: Writing) {
    let swap = writing.await.expect("no panic");
    let kind = swap.err().map(|error| error.kind());
    assert_eq!(kind, Some(StoreErrorKind::Unavailable));
}

#[tokio::test]
async fn mend_16_a_renewal_goes_before_ends_that_came_first() {
    let bench = Bench::new();
    let busy = bench.keep_busy().await;
    let mut ends = Vec::new();
    for number in 10..20 {
        ends.push(bench.end(number).await);
    }
    bench.waits(10).await;
    let renewal = bench.renew(3, MINUTE).await;
    bench.waits(11).await;

    bench.pass(1);
    assert_eq!(bench.sent_as(3).await, [id(3)]);

    bench.pass(3);
    assert_applied(busy).await;
    assert_applied([renewal]).await;
    assert_applied(ends).await;
}

#[tokio::test]
async fn mend_16_one_place_is_kept_for_renewals() {
    let bench = Bench::new();
    let mut ends = vec![bench.end(10).await];
    bench.sent_as(1).await;
    for number in 11..20 {
        ends.push(bench.end(number).await);
    }
    bench.waits(9).await;

    let renewal = bench.renew(1, MINUTE).await;
    assert_eq!(bench.sent_as(2).await, [id(1)]);

    bench.pass(3);
    assert_applied([renewal]).await;
    assert_applied(ends).await;
}

#[tokio::test]
async fn mend_16_of_many_renewals_the_shortest_leases_go_first() {
    let bench = Bench::new();
    let busy = bench.keep_busy().await;
    let mut renewals = Vec::new();
    for number in 10..310 {
        renewals.push(bench.renew(number, MINUTE).await);
    }
    bench.waits(300).await;
    renewals.push(bench.renew(999, Duration::from_secs(2)).await);
    bench.waits(301).await;

    bench.pass(1);
    let sent = bench.sent_as(3).await;
    assert_eq!((sent.len(), sent.last()), (256, Some(&id(999))));

    bench.pass(3);
    assert_applied(busy).await;
    assert_applied(renewals).await;
}

#[tokio::test]
async fn mend_16_a_renewal_goes_alone_beside_an_end_that_hangs() {
    let bench = Bench::new();
    bench.gated().leaves_out.store(true, Ordering::SeqCst);
    let ends = [bench.end(10).await, bench.end(11).await];
    bench.sent_as(1).await;
    let renewal = bench.renew(1, MINUTE).await;
    assert_eq!(bench.sent_as(2).await, [id(1)]);

    bench.pass(3);
    assert_applied([renewal]).await;
    assert_applied(ends).await;
}

#[tokio::test]
async fn mend_16_two_writes_of_one_record_go_one_after_the_other() {
    let bench = Bench::new();
    let busy = bench.keep_busy().await;
    let begun = bench.begin(3).await;
    let [one, other] = [(); 2].map(|()| renewal(&begun, MINUTE));
    let one = bench.write(3, begun.version, one);
    bench.waits(1).await;
    let other = bench.write(3, begun.version, other);
    bench.waits(2).await;

    bench.pass(1);
    assert_eq!(bench.sent_as(3).await, [id(3)]);
    bench.pass(1);
    assert_eq!(bench.sent_as(4).await, [id(3)]);

    bench.pass(2);
    assert_applied(busy).await;
    assert_applied([one]).await;
    let refused = other.await.expect("no panic");
    assert!(matches!(refused, Ok(Swap::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn mend_16_a_caller_that_leaves_takes_its_write_along_until_it_is_sent() {
    let bench = Bench::new();
    let [first, second] = bench.keep_busy().await;
    let left = bench.renew(3, MINUTE).await;
    let stays = bench.renew(4, MINUTE).await;
    bench.waits(2).await;
    left.abort();
    bench.waits(1).await;
    bench.pass(1);
    assert_eq!(bench.sent_as(3).await, [id(4)]);

    // All callers of a batch leave: the next one begins.
    stays.abort();
    second.abort();
    let next = bench.renew(5, MINUTE).await;
    bench.sent_as(4).await;
    bench.pass(1);
    assert_applied([first, next]).await;
}

#[tokio::test]
async fn mend_16_a_caller_that_leaves_a_batch_changes_nothing_for_the_others() {
    let bench = Bench::new();
    let busy = bench.keep_busy().await;
    let (left, stays) = (bench.renew(3, MINUTE).await, bench.renew(4, MINUTE).await);
    bench.waits(2).await;
    bench.pass(1);
    assert_eq!(bench.sent_as(3).await, [id(3), id(4)]);

    left.abort();
    assert!(left.await.is_err_and(|left| left.is_cancelled()));
    bench.pass(2);

    assert_applied(busy).await;
    assert_applied([stays]).await;
}

#[tokio::test]
async fn mend_16_a_store_that_panics_in_a_batch_answers_nobody_and_goes_on() {
    let bench = Bench::new();
    let [first, second] = bench.keep_busy().await;
    let waits = bench.renew(3, MINUTE).await;
    bench.waits(1).await;

    bench.gated().panics.store(true, Ordering::SeqCst);
    bench.pass(1);
    assert_unanswered(first).await;
    assert_unanswered(waits).await;
    bench.gated().panics.store(false, Ordering::SeqCst);

    let after = bench.renew(4, MINUTE).await;
    assert_eq!(bench.sent_as(3).await, [id(4)]);
    bench.pass(2);
    assert_applied([second, after]).await;
}

#[tokio::test(start_paused = true)]
async fn mend_16_a_batch_that_hangs_is_given_up_in_time_for_another_try() {
    let bench = Bench::new();
    let begun = tokio::time::Instant::now();
    let hangs = bench.renew(1, MINUTE).await;
    assert_unanswered(hangs).await;
    assert!(begun.elapsed() <= MINUTE / 2);
}

#[test]
fn mend_16_callers_learn_that_the_runtime_of_a_batch_has_ended() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let (one, other, bench) = (runtime(), runtime(), Bench::new());
    let _busy = one.block_on(bench.keep_busy());
    let waits = other.block_on(bench.renew(3, MINUTE));
    other.block_on(bench.waits(1));
    drop(one);
    other.block_on(assert_unanswered(waits));

    other.block_on(async {
        let after = bench.renew(4, MINUTE).await;
        bench.pass(1);
        assert_applied([after]).await;
    });
}

//! Every argument in every form, and the outcomes that go with them.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use idempotent_runtime::{Error, Idempotency, Reconciled, Stored, Unrecorded, Verdict, idempotent};
use serde::{Deserialize, Serialize};

const LEASE: Duration = Duration::from_secs(20);

pub struct App {
    idempotency: Idempotency,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Receipt {
    id: u64,
}

pub struct Unstorable(u64);

#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub enum PayError {
    #[error("declined")]
    Declined,
    #[error(transparent)]
    Idempotency(#[from] Error),
}

#[derive(Debug, thiserror::Error)]
pub enum BareError {
    #[error(transparent)]
    Idempotency(#[from] Error),
}

fn classify(error: &PayError) -> Verdict {
    match error {
        PayError::Declined => Verdict::Replay,
        PayError::Idempotency(_) => Verdict::Release,
    }
}

fn forget(_: &BareError) -> Unrecorded {
    Unrecorded::Release
}

fn forget_any(_: &anyhow::Error) -> Unrecorded {
    Unrecorded::Uncertain
}

fn read_old(stored: Stored) -> Result<Receipt, Box<dyn std::error::Error + Send + Sync>> {
    stored.decode().map(|id| Receipt { id })
}

async fn load(id: u64) -> Result<Unstorable, std::io::Error> {
    Ok(Unstorable(id))
}

async fn ask(id: &u64) -> Reconciled<Receipt, PayError> {
    Reconciled::Happened(Receipt { id: *id })
}

#[idempotent(name = "a", key = id, ttl = "24h", lease = "30s", in_flight = wait("10s"))]
pub async fn literal_durations(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, ttl = Duration::from_secs(60 * id), lease = LEASE, in_flight = wait(LEASE / 2))]
pub async fn computed_durations(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, in_flight = reject, on_error = replay, on_crash = rerun, on_cancel = stop)]
pub async fn words(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = release, on_crash = uncertain, on_cancel = detach, on_outage = open)]
pub async fn other_words(id: u64) -> Result<Receipt, BareError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = uncertain, on_outage = closed)]
pub async fn uncertain(id: u64) -> Result<Receipt, BareError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = classify, on_outage = read_only)]
pub async fn classified(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = self::forget)]
pub async fn classified_without_serde(id: u64) -> Result<Receipt, BareError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = |_: &BareError| Unrecorded::Release)]
pub async fn classified_in_place(id: u64) -> Result<Receipt, BareError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, skip(strict), on_error = |_: &BareError| strict.verdict())]
pub async fn classified_by_an_argument(id: u64, strict: Strict) -> Result<Receipt, BareError> {
    Ok(Receipt { id })
}

pub struct Strict;

impl Strict {
    fn verdict(&self) -> Unrecorded {
        Unrecorded::Uncertain
    }
}

#[idempotent(key = id, skip(strict), version = 2, upgrade = |stored: Stored| { strict.verdict(); read_old(stored) })]
pub async fn upgraded_by_an_argument(id: u64, strict: Strict) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = release)]
pub async fn any_error(id: u64) -> anyhow::Result<Receipt> {
    anyhow::ensure!(id > 0, "zero");
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = forget_any)]
pub async fn any_error_classified(id: u64) -> anyhow::Result<Receipt> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_error = release)]
pub async fn boxed_error(id: u64) -> Result<Receipt, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_crash = reconcile(ask))]
pub async fn reconciled(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, on_crash = reconcile(|id: &u64| { let id = *id; async move { ask(&id).await } }))]
pub async fn reconciled_in_place(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, handle = app.idempotency, skip(app))]
pub async fn with_a_handle(app: &App, id: u64) -> Result<Receipt, PayError> {
    let _ = app;
    Ok(Receipt { id })
}

#[idempotent(key = id, handle = &app.idempotency, skip(app))]
pub async fn with_a_borrowed_handle(app: &App, id: u64) -> Result<Receipt, PayError> {
    let _ = app;
    Ok(Receipt { id })
}

#[idempotent(key = id, handle = idempotency, skip(idempotency))]
pub async fn with_a_handle_argument(idempotency: &Idempotency, id: u64) -> Result<Receipt, PayError> {
    let _ = idempotency;
    Ok(Receipt { id })
}

static IDEMPOTENCY: LazyLock<Idempotency> = LazyLock::new(Idempotency::memory);

#[idempotent(key = id, handle = IDEMPOTENCY)]
pub async fn with_a_static_handle(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(key = id, fingerprint = (id, note.len()))]
pub async fn with_a_fingerprint(id: u64, note: &mut String) -> Result<Receipt, PayError> {
    note.clear();
    Ok(Receipt { id })
}

#[idempotent(key = id, version = 3, upgrade = read_old)]
pub async fn upgraded(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

pub struct Kept(Vec<u64>);

impl Kept {
    async fn load(&self, id: u64) -> Result<Unstorable, std::io::Error> {
        Ok(Unstorable(id + self.0.len() as u64))
    }

    #[idempotent(name = "kept.by_its_own", key = id, outcome = reference(|value: &Unstorable| value.0, |id| self.load(id)))]
    pub async fn by_its_own_reference(self, id: u64) -> Result<Unstorable, PayError> {
        Ok(Unstorable(id))
    }
}

#[idempotent(
    key = id,
    skip(kept),
    outcome = reference(|value: &Unstorable| value.0, |id| kept.load(id)),
)]
pub async fn by_a_reference_that_owns(kept: Kept, id: u64) -> Result<Unstorable, PayError> {
    Ok(Unstorable(id))
}

#[idempotent(
    key = id,
    skip(kept),
    on_cancel = detach,
    outcome = reference(|value: &Unstorable| value.0, { let kept = Arc::clone(&kept); move |id| async move { kept.load(id).await } }),
)]
pub async fn by_a_reference_beside_a_body_that_owns(kept: Arc<Kept>, id: u64) -> Result<Unstorable, PayError> {
    Ok(Unstorable(id + kept.0.len() as u64))
}

#[idempotent(key = id, outcome = reference(|value: &Unstorable| value.0, load))]
pub async fn by_reference(id: u64) -> Result<Unstorable, PayError> {
    Ok(Unstorable(id))
}

#[idempotent(key = id, also_accept = "old.name")]
pub async fn renamed(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

#[idempotent(name = "v2", key = order, also_accept = concat!("order"))]
pub async fn renamed_from_what_an_argument_is_called(order: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id: order })
}

#[idempotent(key = (id, note), also_accept = "{id}-{note}")]
pub async fn with_another_key(id: u64, note: &str) -> Result<Receipt, PayError> {
    let _ = note;
    Ok(Receipt { id })
}

mod inner {
    pub(crate) use idempotent_runtime as protection;
}

#[inner::protection::idempotent(key = id, crate = crate::policies::inner::protection,)]
pub async fn through_another_path(id: u64) -> Result<Receipt, PayError> {
    Ok(Receipt { id })
}

ui::protected!(made_by_a_macro_of_another_crate(id: u64) -> Result<Receipt, PayError>, (id, "v1"), classify, ask, {
    Ok(Receipt { id })
});

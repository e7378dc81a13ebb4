//! How an undo is told what its step gave.

use std::{
    future::{Ready, ready},
    sync::{Arc, Mutex},
};

use idempotent_runtime::{BoxError, Error, Stored, Undo, step, testing::Gate};

use super::{BookError, not_undone, successor, verdict};
use crate::harness::{Owner, World, while_time_goes_on};

on_every_store![
    j18_an_undo_is_given_what_a_reference_leads_to,
    j18_an_undo_is_given_what_an_older_version_stored,
    j22_an_undo_that_cannot_read_its_value_is_parked,
];

/// The values that undos were given.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Option<String>>>>);

impl Told {
    fn note(&self, undo: Undo<String>) -> Ready<Result<(), BoxError>> {
        let mut told = self.0.lock().expect("nobody panicked");
        told.push(undo.into_value());
        ready(Ok(()))
    }

    #[track_caller]
    fn assert_is(&self, expected: &str) {
        let told = self.0.lock().expect("nobody panicked");
        assert_eq!(*told, [Some(expected.to_owned())]);
    }
}

/// A call that fails for good behind this body.
async fn fails<F>(owner: &Owner, body: impl FnOnce() -> F) -> Result<(), BookError>
where
    F: Future<Output = Result<(), BookError>> + Send,
{
    let body = body();
    let call = owner.call("trip").key("k").classify_errors(verdict);
    let run = async |_| {
        body.await?;
        Err(BookError::Refused)
    };
    call.run(run).await
}

/// As the program was before: the price is a number. It stops behind the step, or in its undo.
async fn older(gate: Gate, is_in_undo: bool) -> Result<(), BookError> {
    let in_undo = gate.clone();
    let price = step("price", async |_| Ok::<_, BookError>(1_250_u32));
    let price = price.undo(move |_: Undo<u32>| {
        let gate = in_undo.clone();
        async move {
            gate.pass().await;
            Ok::<_, BoxError>(())
        }
    });
    let _cents = price.await?;
    if !is_in_undo {
        gate.pass().await;
    }
    Ok(())
}

/// As the program is now: the price is a text, and a number is read, too.
async fn upgraded(told: Told) -> Result<(), BookError> {
    let price = step("price", async |_| Ok::<_, BookError>("12.50".to_owned()));
    let price = price.version(1).upgrade(|stored: Stored| {
        let cents: u32 = stored.decode()?;
        Ok(format!("{cents} cents"))
    });
    price.undo(move |undo| told.note(undo)).await.map(drop)
}

/// The same, but it reads no number.
async fn changed(told: Told) -> Result<(), BookError> {
    let price = step("price", async |_| Ok::<_, BookError>("12.50".to_owned()));
    price.undo(move |undo| told.note(undo)).await.map(drop)
}

/// The older program dies behind the step, or in its undo.
async fn dies(world: &World, is_in_undo: bool) {
    let (owner, gate) = (world.owner().await, Gate::new());
    let (dead, held) = (owner.clone(), gate.clone());
    let call = tokio::spawn(async move { fails(&dead, || older(held, is_in_undo)).await });
    gate.arrived(1).await;
    owner.die_in(call).await;
}

async fn j18_an_undo_is_given_what_a_reference_leads_to(world: World) {
    let (owner, told) = (world.owner().await, Told::default());
    let noted = told.clone();
    let report = async move || {
        let report = step("report", async |_| Ok::<_, BookError>("made".to_owned()));
        let save = |report: &String| format!("where {report}");
        let load = async |place: String| Ok::<_, Error>(format!("loaded from {place}"));
        let report = report.reference(save, load);
        report.undo(move |undo| noted.note(undo)).await.map(drop)
    };
    assert_eq!(fails(&owner, report).await, Err(BookError::Refused));
    told.assert_is("loaded from where made");
}

async fn j18_an_undo_is_given_what_an_older_version_stored(world: World) {
    dies(&world, false).await;
    let (owner, told) = (successor(&world).await, Told::default());
    let ended = fails(&owner, || upgraded(told.clone())).await;
    assert_eq!(ended, Err(BookError::Refused));
    told.assert_is("1250 cents");
}

async fn j22_an_undo_that_cannot_read_its_value_is_parked(world: World) {
    dies(&world, true).await;
    let (owner, told) = (successor(&world).await, Told::default());
    let (failing, noted) = (owner.clone(), told.clone());
    let ended = async move { fails(&failing, || changed(noted)).await };
    let ended = while_time_goes_on(&owner.timer, ended).await;
    assert_eq!(not_undone(&ended), Some((vec![], vec!["price".to_owned()])));

    let settle = owner.idem.settle("trip", None::<&str>, "k");
    settle.expect("a key").resume().await.expect("it is parked");
    let ended = fails(&owner, || upgraded(told.clone())).await;
    assert_eq!(ended, Err(BookError::Refused));
    told.assert_is("1250 cents");
}

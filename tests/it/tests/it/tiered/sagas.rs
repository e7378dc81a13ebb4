//! Steps and their undos over a tiered store.

use idempotent_runtime::{Undo, step};

use super::*;
use crate::{
    answers::is_in_progress,
    booking::{BookError, verdict},
};

/// A call whose only step is undone once the gate lets it.
async fn book(idem: &Idempotency, gate: &Gate) -> Result<(), BookError> {
    let gate = gate.clone();
    let call = idem
        .call("tiered.book")
        .key("k")
        .in_flight(InFlight::Reject);
    let run = async |_| {
        let flight = step("flight", async |_| Ok::<_, BookError>(7_u32));
        let flight = flight.undo(move |undo: Undo<u32>| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                undo.into_value().map(drop).ok_or("no value is known")
            }
        });
        flight.await?;
        Err(BookError::Refused)
    };
    call.classify_errors(verdict).run(run).await
}

/// Its error stands in the record before it may answer.
#[tokio::test]
async fn a_call_that_is_being_undone_is_never_copied() {
    let (process, gate) = (Process::new(), Gate::new());
    let (idem, held) = (process.idem.clone(), gate.clone());
    let first = tokio::spawn(async move { book(&idem, &held).await });
    gate.arrived(1).await;

    let (id, record) = only(&process.primary).await;
    assert_eq!(record.state, State::Undoing);
    for _ in 0..2 {
        let duplicate = book(&process.idem, &gate).await;
        let Err(BookError::Ours(refused)) = duplicate else {
            panic!("{duplicate:?}");
        };
        assert!(is_in_progress(&Err::<(), _>(refused)));
        assert_eq!(shown(&process.store, &id).await.state, State::Undoing);
        assert!(process.store.peek(&id).is_none());
    }

    gate.open();
    assert_eq!(first.await.expect("no panic"), Err(BookError::Refused));
    for trips in [1, 0] {
        let before = process.primary.round_trips();
        assert_eq!(book(&process.idem, &gate).await, Err(BookError::Refused));
        assert_eq!(process.primary.round_trips() - before, trips);
    }
}

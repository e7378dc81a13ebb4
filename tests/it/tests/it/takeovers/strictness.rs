//! Callers that chose differently about one record: the stricter choice counts, and stays.

use super::*;

on_every_store![
    d23_the_stricter_of_record_and_caller_counts,
    d23_a_stricter_choice_stays_with_the_record,
];

const ASKS: Mode = Mode::Reconcile(Found::Happened);

/// The end of a call whose record was left by a holder that vanished.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comes {
    RunsAgain,
    IsAnswered,
    IsUncertain,
}

async fn d23_the_stricter_of_record_and_caller_counts(world: World) {
    use Comes::{IsAnswered, IsUncertain, RunsAgain};

    let table = [
        (Mode::Rerun, Mode::Rerun, RunsAgain),
        (Mode::Rerun, ASKS, IsAnswered),
        (Mode::Rerun, Mode::Uncertain, IsUncertain),
        // It has no function to ask.
        (ASKS, Mode::Rerun, IsUncertain),
        (ASKS, ASKS, IsAnswered),
        (ASKS, Mode::Uncertain, IsUncertain),
        (Mode::Uncertain, Mode::Rerun, IsUncertain),
        (Mode::Uncertain, ASKS, IsUncertain),
        (Mode::Uncertain, Mode::Uncertain, IsUncertain),
    ];
    for (row, (of_record, of_caller, expected)) in table.into_iter().enumerate() {
        let key = format!("row {row}");
        vanished_under(&world, &key, of_record).await;
        let owner = world.owner().await;
        world.advance(LEASE).await;
        let charge = Charge::of(&world, &owner).key(key.as_str());

        let answer = charge.clone().mode(of_caller).call().await;

        let came = match (answer.as_deref(), world.runs(&key)) {
            (Ok("charged"), 2) => RunsAgain,
            (Ok("found"), 1) => IsAnswered,
            (Err(Error::Uncertain { .. }), 1) => IsUncertain,
            other => panic!("{of_record:?}, {of_caller:?}: {other:?}"),
        };
        assert_eq!(came, expected, "{of_record:?}, {of_caller:?}");

        // A call that can ask may do so later, unless the record or the caller chose that no call
        // ever decides for the outside world.
        let later = charge.mode(ASKS).call().await;
        if came != IsUncertain {
            assert_eq!(later, answer);
        } else if [of_record, of_caller].contains(&Mode::Uncertain) {
            assert!(
                is_uncertain(&later),
                "{of_record:?}, {of_caller:?}: {later:?}"
            );
        } else {
            assert_eq!(later, Ok("found".into()));
        }
    }
}

async fn d23_a_stricter_choice_stays_with_the_record(world: World) {
    lapsed(&world, Mode::Rerun).await;
    // Its reconciliation says to run again, and it vanishes, too.
    lapsed(&world, Mode::Reconcile(Found::Nothing)).await;

    let owner = world.owner().await;
    // It must be asked for.
    is_told(&Charge::of(&world, &owner).mode(Mode::Rerun), is_uncertain).await;
    assert_eq!(world.runs("k"), 2);
}

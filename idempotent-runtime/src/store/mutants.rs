//! Takes pieces out of the statements of a store, one at a time: a case of the suite for stores must tell.

use std::{collections::BTreeSet, error::Error, fmt::Debug, sync::Arc, time::Duration};

use tokio::task::JoinSet;

use crate::{
    identity::RecordId,
    store::{StoreError, StoreErrorKind},
    testing::conformance::{
        Case, Subject, cases,
        sample::{TTL, claim, completion, heartbeat},
    },
};

/// Which statement it is in, a piece of it, what stands there in its place, and the case that tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutation<Of>(
    pub(crate) Of,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

/// How many cases run at once. Most of them wait for a server.
const AT_ONCE: usize = 8;

impl<Of: Debug> Mutation<Of> {
    /// The text of the statement with the other piece. Pieces say these words in the place of what is longer.
    pub(crate) fn mutated(&self, text: &str, words: &[(&str, &str)]) -> String {
        let Self(of, piece, without, _) = self;
        let spelt_out = |piece: &str| {
            let spell_out =
                |text: String, (word, meaning): &(&str, &str)| text.replace(word, meaning);
            words.iter().fold(piece.to_owned(), spell_out)
        };
        let [piece, without] = [piece, without].map(|piece| spelt_out(piece));
        assert!(text.contains(&piece), "{of:?}: {piece}");
        text.replacen(&piece, &without, 1)
    }
}

/// Runs the case of each mutation on what `subject` makes of it, and the same cases on what it makes of none.
///
/// A statement that the server does not even take would fail any case, so each mutant has to [work](works) at first, and must not with
/// a statement that is none.
///
/// # Panics
///
/// Where a sound store fails, where no case tells of a mutation, and where it is none.
pub(crate) async fn each_is_noticed<Of: Copy + Debug, S: Subject + 'static>(
    mutations: &[Mutation<Of>],
    subject: impl AsyncFn(Option<Mutation<Of>>) -> S,
) {
    let named: BTreeSet<_> = mutations.iter().map(|mutation| mutation.3).collect();
    let sound = named.into_iter().map(|name| (None, name));
    let mutated = mutations
        .iter()
        .map(|mutation| (Some(*mutation), mutation.3));
    let mut running = JoinSet::new();
    let mut wrong = Vec::new();
    let mut broken = BTreeSet::new();
    for Mutation(of, piece, ..) in mutations {
        if broken.insert(format!("{of:?}")) {
            let no_statement = Mutation(*of, piece, "that is no statement", "");
            let asked = works(&subject(Some(no_statement)).await).await;
            assert!(asked.is_err(), "{of:?} is never asked of the server");
        }
    }
    for (mutation, name) in sound.chain(mutated) {
        if let Err(error) = works(&subject(mutation).await).await {
            wrong.push(format!("{mutation:?} is refused: {error:?}"));
        }
        let subject = Arc::new(subject(mutation).await);
        let expected = mutation.is_none();
        let what = format!("{name}: {mutation:?}");
        if running.len() == AT_ONCE {
            let ended = running.join_next().await;
            wrong.extend(ended.and_then(|ended| ended.expect("no panic here")));
        }
        running.spawn(async move {
            let case = named_case(name);
            let run = tokio::spawn(async move { case.run(subject).await });
            (run.await.is_ok() != expected).then_some(what)
        });
    }
    wrong.extend(running.join_all().await.into_iter().flatten());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Asks everything that a store does of records that nobody else knows, whatever it answers: what cannot be read is an answer, too, and so
/// is no row at all.
async fn works(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, other) = (subject.store().await, subject.store().await);
    let [quick, long, left] = [1, 2, 3].map(|number| RecordId::from_bytes([number; 32]));
    let begun = claim();
    is_answer(store.swap(&quick, None, &begun).await)?;
    is_answer(store.load(&quick).await)?;
    let done = completion(&begun, "done");
    is_answer(store.swap(&quick, Some(begun.version), &done).await)?;
    is_answer(store.swap(&quick, None, &claim()).await)?;

    let begun = claim();
    is_answer(store.swap(&long, None, &begun).await)?;
    let prolonged = heartbeat(&begun);
    is_answer(store.swap(&long, Some(begun.version), &prolonged).await)?;
    // Whoever has seen nothing may say it in another way.
    let done = completion(&begun, "done");
    is_answer(other.swap(&long, Some(prolonged.version), &done).await)?;

    is_answer(store.swap(&left, None, &claim()).await)?;
    is_answer(store.scan(None, 10).await)?;
    subject.advance(2 * TTL).await;
    is_answer(store.purge(10, Duration::ZERO).await)
}

fn is_answer<T>(answer: Result<T, StoreError>) -> Result<(), StoreError> {
    let Err(error) = answer else { return Ok(()) };
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    let is_answered = ["no rows returned", "the column `"]
        .iter()
        .any(|answered| source.starts_with(answered));
    if is_answered || error.kind() == StoreErrorKind::Corrupt {
        return Ok(());
    }
    Err(error)
}

fn named_case(name: &str) -> Case {
    let case = cases().into_iter().find(|case| case.name() == name);
    case.unwrap_or_else(|| panic!("there is no case `{name}`"))
}

/// Takes `by` off every moment of every record in the table of this prefix.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn ageing(prefix: &impl std::fmt::Display, by: Duration) -> String {
    let by = crate::record::micros(by);
    format!(
        "UPDATE {prefix}records SET lease_end = lease_end - {by}, created = created - {by},
                finished = finished - {by}, expires = expires - {by}, purge_from = purge_from - {by}"
    )
}

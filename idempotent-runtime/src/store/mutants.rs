//! Takes pieces out of the statements of a store, one at a time: a case of the suite for stores must tell.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use tokio::task::JoinSet;

use crate::testing::conformance::{Case, Subject, cases};

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
/// # Panics
///
/// Where a sound store fails, and where no case tells of a mutation.
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
    for (mutation, name) in sound.chain(mutated) {
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

fn named_case(name: &str) -> Case {
    let case = cases().into_iter().find(|case| case.name() == name);
    case.unwrap_or_else(|| panic!("there is no case `{name}`"))
}

/// Takes `by` off every moment of every record in the table of this prefix.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn ageing(prefix: &impl std::fmt::Display, by: std::time::Duration) -> String {
    let by = crate::record::micros(by);
    format!(
        "UPDATE {prefix}records SET lease_end = lease_end - {by}, created = created - {by},
                finished = finished - {by}, expires = expires - {by}, purge_from = purge_from - {by}"
    )
}

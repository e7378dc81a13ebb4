//! Cuts pieces out of the statements of a store, one at a time: a case of the suite for stores must
//! tell.

#[cfg(feature = "redis")]
pub(crate) mod lua;
#[cfg(feature = "_sql")]
pub(crate) mod sql;
mod words;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    error::Error,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::task::JoinSet;

use self::words::Words;
use crate::{
    identity::RecordId,
    record::StepName,
    store::{StoreError, StoreErrorKind},
    testing::conformance::{
        Case, StoreUnderTest, cases,
        sample::{TTL, claim, completion, heartbeat},
        steps::{step, steps},
    },
};

/// How many cuts are looked at at once. Most of them wait for a server.
const AT_ONCE: usize = 8;

/// The cases that run before the others if none has told yet: each tells of much, and ends soon.
const LIKELY: &str = "
    nothing_stands_under_a_new_id a_claim_over_a_record_replaces_its_subject
    a_moment_beyond_all_time_is_the_last_one a_claim_of_what_is_done_is_shown_what_stands
    a_token_follows_a_floor_above_the_clock a_record_begins_in_any_state
    ids_and_versions_are_compared_whole purge_deletes_what_was_resumed_and_left
    a_second_claim_is_refused_and_shown_what_stands
    a_stale_owner_cannot_complete purge_counts_what_is_kept_from_its_expiry
    a_swap_where_nothing_stands_creates_nothing where_nothing_stood_nothing_is_kept
    the_first_write_of_a_step_wins a_step_of_a_stale_owner_is_refused a_step_ends_with_its_life
    a_moment_far_away_is_exact a_purge_says_how_long_is_kept scan_goes_in_pages";

/// The cases with many records, which run after the others except for a purge.
const LONG: &str = "
    purge_deletes_only_what_is_expired what_is_kept_stays_until_then purge_goes_in_bounded_batches
    every_field_comes_back";

/// The cases with many calls or much to write: they take too long to run for each cut.
const LEFT_OUT: &str = "
    of_many_claims_at_once_one_wins of_many_takeovers_at_once_one_wins
    of_many_endings_at_once_one_wins many_ids_at_once_do_not_mix
    a_sequence_is_that_of_the_model a_history_is_linearizable
    a_purge_beside_a_takeover_takes_nothing_that_was_claimed
    purgers_at_once_count_each_record_once an_outcome_of_16_mib_comes_back
    of_many_writes_of_a_step_one_wins many_steps_at_once_do_not_mix
    a_step_beside_a_takeover_is_before_it_or_refused";

/// The place of a case in one of these lists.
fn place(list: &str, case: &Case) -> Option<usize> {
    list.split_whitespace().position(|name| name == case.name())
}

/// The place of a piece in a statement, and the text that stands there instead.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    at: Range<usize>,
    instead: String,
}

impl Piece {
    fn new(words: &Words<'_>, places: Range<usize>, instead: impl Into<String>) -> Self {
        Self {
            at: words.range(places),
            instead: instead.into(),
        }
    }
}

/// A text within which nothing needs to be noticed: `statement | text | why`.
///
/// `begin … end` means all the text between, too. The only cut that is excused there stands behind
/// `->`. The cuts that are not excused stand behind `-/>`, with ` / ` between them.
struct Excuse {
    line: &'static str,
    statement: &'static str,
    begin: &'static str,
    end: &'static str,
    only: Option<&'static str>,
    but: Vec<&'static str>,
}

impl Excuse {
    fn of(line: &'static str) -> Self {
        let parts: Vec<_> = line.trim().split(" | ").collect();
        let [statement, within, _] = parts[..] else {
            panic!("an excuse names a statement, a text and why: {line}");
        };
        let (within, but) = within.split_once(" -/> ").unwrap_or((within, ""));
        let (within, only) = match within.split_once(" -> ") {
            Some((within, only)) => (within, Some(only)),
            None => (within, None),
        };
        let (begin, end) = within.split_once(" … ").unwrap_or((within, ""));
        Self {
            line,
            statement,
            begin,
            end,
            only,
            but: but.split(" / ").filter(|cut| !cut.is_empty()).collect(),
        }
    }

    /// Whether this piece of a statement stands within the text.
    fn holds(&self, statement: &str, text: &str, piece: &Piece) -> bool {
        let is_within = |(from, begin): (usize, &str)| {
            let rest = from + begin.len();
            let ends = text[rest..].find(self.end);
            let ends = ends.map(|at| rest + at + self.end.len());
            from <= piece.at.start && ends.is_some_and(|ends| piece.at.end <= ends)
        };
        self.statement == statement
            && self.only.is_none_or(|only| only == piece.instead)
            && !self.but.contains(&&*piece.instead)
            && text.match_indices(self.begin).any(is_within)
    }
}

/// The cut in the statements of a store: one piece of one of them, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    piece: Option<(&'static str, Piece)>,
    seen: Mutex<Vec<(&'static str, String)>>,
}

impl Cut {
    fn at(statement: &'static str, piece: Piece) -> Self {
        Self {
            piece: Some((statement, piece)),
            seen: Mutex::default(),
        }
    }

    /// The text of this statement after the cut. The words are short ones, each for a long text
    /// that pieces do not name.
    pub(crate) fn of(&self, statement: &'static str, text: &str, words: &[(&str, &str)]) -> String {
        let shorten = |text: String, (word, long): &(&str, &str)| text.replace(long, word);
        let expand = |text: String, (word, long): &(&str, &str)| text.replace(word, long);
        let mut text = words.iter().fold(text.to_owned(), shorten);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((statement, text.clone()));
        if let Some((_, piece)) = self.piece.as_ref().filter(|(of, _)| *of == statement) {
            text.replace_range(piece.at.clone(), &piece.instead);
        }
        words.iter().fold(text, expand)
    }
}

/// A store whose statements have a cut.
#[async_trait]
pub(crate) trait Bench: StoreUnderTest + Sized + 'static {
    /// An empty store with a table of its own.
    async fn new(cut: &Cut) -> Self;
    /// Deletes every record.
    async fn empty(&self);
}

/// How often a case told of a cut of a statement: those that did run first.
type Told = Mutex<BTreeMap<(&'static str, &'static str), u32>>;

/// Makes each third cut of each statement, and runs one case after another until one tells. With
/// `IDEMPOTENT_TEST_ROUNDS=full` each cut is made.
///
/// A statement that the server does not even take would fail any case, so each cut has to
/// [work](works) at first, and must not where the statement is none. With
/// `IDEMPOTENT_TEST_CUTS=excused` only the excused cuts are made, and no case may tell.
///
/// # Panics
///
/// If a sound store fails, if no case tells of a cut, or if a text in which nothing is noticed has
/// no piece.
pub(crate) async fn each_is_noticed<B: Bench>(
    pieces: fn(&str) -> Vec<Piece>,
    unnoticed: &'static str,
) {
    let is_full = std::env::var("IDEMPOTENT_TEST_ROUNDS").is_ok_and(|rounds| rounds == "full");
    let steps = if is_full { 1 } else { 3 };
    let of_excused = std::env::var("IDEMPOTENT_TEST_CUTS").is_ok_and(|cuts| cuts == "excused");
    let whole = Cut::default();
    let bench = Arc::new(B::new(&whole).await);
    let sound = works(&*bench).await;
    sound.expect("the server takes the statements");
    let statements = whole.seen.into_inner().expect("no panic here");
    let told = Arc::new(Told::default());
    let (mut running, mut wrong) = (JoinSet::new(), Vec::new());
    let excuses: Vec<_> = unnoticed.trim().lines().map(Excuse::of).collect();
    let mut idle: Vec<_> = excuses.iter().collect();
    for (statement, text) in statements {
        let none = Piece {
            at: 0..text.len(),
            instead: "that is no statement".to_owned(),
        };
        let asked = works(&B::new(&Cut::at(statement, none)).await).await;
        assert!(asked.is_err(), "{statement} is never asked of the server");
        for (number, piece) in pieces(&text).into_iter().enumerate() {
            idle.retain(|excuse| !excuse.holds(statement, &text, &piece));
            let mut excuses = excuses.iter();
            let is_excused = excuses.any(|excuse| excuse.holds(statement, &text, &piece));
            if is_excused != of_excused || !of_excused && number % steps != 0 {
                continue;
            }
            if running.len() == AT_ONCE {
                let ended = running.join_next().await;
                wrong.extend(ended.and_then(|ended| ended.expect("no panic here")));
            }
            let about = format!(
                "{statement}: {} -> {}",
                &text[piece.at.clone()],
                piece.instead
            );
            let told = Arc::clone(&told);
            running.spawn(async move {
                match is_noticed::<B>(statement, piece, told).await {
                    Ok(Some(case)) => of_excused.then(|| format!("{case} tells of {about}")),
                    Ok(None) => (!of_excused).then(|| format!("unnoticed: {about}")),
                    // A server that refuses the statement has noticed the cut in its own way.
                    Err(error) => (!of_excused).then(|| format!("refused: {about}: {error:?}")),
                }
            });
        }
    }
    wrong.extend(running.join_all().await.into_iter().flatten());
    wrong.extend(
        idle.iter()
            .map(|idle| format!("excuses nothing: {}", idle.line)),
    );
    let told = told.lock().expect("no panic here").clone();
    let names: BTreeSet<_> = told.into_keys().map(|(_, name)| name).collect();
    for case in cases()
        .into_iter()
        .filter(|case| names.contains(case.name()))
    {
        if tells(case, &bench).await {
            wrong.push(format!("{} fails with nothing cut out", case.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The case that tells of this cut.
async fn is_noticed<B: Bench>(
    statement: &'static str,
    piece: Piece,
    told: Arc<Told>,
) -> Result<Option<&'static str>, StoreError> {
    let bench = Arc::new(B::new(&Cut::at(statement, piece)).await);
    works(&*bench).await?;
    let mut cases = cases();
    cases.retain(|case| place(LEFT_OUT, case).is_none());
    let often = told.lock().expect("no panic here").clone();
    cases.sort_by_key(|case| {
        let often = often.get(&(statement, case.name()));
        let is_long = statement != "purge" && place(LONG, case).is_some();
        (
            is_long,
            Reverse(often),
            place(LIKELY, case).unwrap_or(usize::MAX),
        )
    });
    for case in cases {
        if tells(case, &bench).await {
            let mut told = told.lock().expect("no panic here");
            *told.entry((statement, case.name())).or_default() += 1;
            return Ok(Some(case.name()));
        }
    }
    Ok(None)
}

/// Whether the case fails on an empty store.
async fn tells<B: Bench>(case: Case, bench: &Arc<B>) -> bool {
    bench.empty().await;
    let bench = Arc::clone(bench);
    let run = tokio::spawn(async move { case.run(bench).await });
    run.await.is_err()
}

/// Asks the store for everything that it does, on records that no other caller knows, whatever it
/// answers. An answer that cannot be read counts as one, and so does no row.
async fn works(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, other) = (subject.store().await, subject.store().await);
    let [quick, long, left] = [1, 2, 3].map(|number| RecordId::from_bytes([number; 32]));
    let begun = claim();
    is_answer(store.swap(&quick, None, &begun).await)?;
    is_answer(store.load(&quick).await)?;
    let made = step(1, begun.attempt_id, "made");
    is_answer(steps(&*store).write_step(&quick, None, &made).await)?;
    is_answer(steps(&*store).load_steps(&quick, &StepName::ALL).await)?;
    let done = completion(&begun, "done");
    is_answer(store.swap(&quick, Some(begun.version), &done).await)?;
    is_answer(store.swap(&quick, None, &claim()).await)?;

    let begun = claim();
    is_answer(store.swap(&long, None, &begun).await)?;
    let prolonged = heartbeat(&begun);
    is_answer(store.swap(&long, Some(begun.version), &prolonged).await)?;
    // A client that has seen nothing may say it in another way.
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
    let is_answered = ["no rows returned", "the column `", "it was written"]
        .iter()
        .any(|answered| source.starts_with(answered));
    if is_answered || error.kind() == StoreErrorKind::Corrupt {
        return Ok(());
    }
    Err(error)
}

/// Takes `by` off every moment of every record in the table of this prefix.
#[cfg(feature = "_sql")]
pub(crate) fn ageing(prefix: &impl std::fmt::Display, by: Duration) -> String {
    let by = crate::record::micros(by);
    format!(
        "UPDATE {prefix}records SET lease_end = lease_end - {by}, created = created - {by},
                finished = finished - {by}, expires = expires - {by},
                purge_from = CASE purge_from WHEN 9223372036854775807 THEN purge_from ELSE purge_from - {by} END;
         UPDATE {prefix}steps SET life = life - {by}"
    )
}

#[test]
fn every_case_in_a_list_is_one() {
    let names: BTreeSet<_> = cases().iter().map(Case::name).collect();
    for name in [LIKELY, LONG, LEFT_OUT]
        .iter()
        .flat_map(|list| list.split_whitespace())
    {
        assert!(names.contains(name), "{name} is no case");
    }
}

//! The arguments whose value is a word: what becomes of duplicates, errors, crashes and outages.

use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Ident, Lit, Result};

use crate::errors::{closest, either};
use crate::values::{Period, expression, function_path, period, said};

pub(crate) enum InFlight {
    Wait(Period),
    Reject,
}

pub(crate) enum OnError {
    Replay,
    Release,
    Uncertain,
    Classify(Expr),
}

pub(crate) enum OnCrash {
    Rerun,
    Uncertain,
    Reconcile(Expr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCancel {
    Stop,
    Detach,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum OnMissingKey {
    Refuse,
    Run,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum OnOutage {
    Closed,
    Open,
    ReadOnly,
}

pub(crate) fn in_flight(name: &Ident, input: ParseStream<'_>) -> Result<InFlight> {
    const FORM: &str = "`in_flight` is `wait(\"10s\")` or `reject`";
    let written = expression(name, input, "in_flight = wait(\"10s\")")?;
    let (word, values) = said(&written);
    match (word.as_str(), values.as_deref()) {
        ("reject", None) => Ok(InFlight::Reject),
        ("wait", Some([limit])) => Ok(InFlight::Wait(period(limit.clone())?)),
        ("wait", _) => Err(Error::new_spanned(
            written,
            "`wait` takes one duration, the longest wait: `wait(\"10s\")`",
        )),
        ("", _) | (_, Some(_)) => Err(malformed(&written, FORM)),
        (word, None) => Err(misread(&written, word, &["wait", "reject"], FORM)),
    }
}

pub(crate) fn on_error(name: &Ident, input: ParseStream<'_>) -> Result<OnError> {
    const WORDS: [&str; 3] = ["replay", "release", "uncertain"];
    /// Words that are tried, and that are hardly the name of a function.
    const NOT_VERDICTS: [&str; 8] = [
        "retry", "rerun", "ignore", "record", "store", "cache", "fail", "abort",
    ];
    const FORM: &str = "`on_error` is `replay`, `release`, `uncertain`, or a path to a `fn(&E) -> Verdict` such as `ErrorVerdict::verdict`";
    let written = expression(name, input, "on_error = release")?;
    let (word, values) = said(&written);
    match (word.as_str(), values.as_deref()) {
        ("replay", None) => Ok(OnError::Replay),
        ("release", None) => Ok(OnError::Release),
        ("uncertain", None) => Ok(OnError::Uncertain),
        ("", _) | (_, Some(_)) => {
            function_path(&written, FORM).map_err(|_| malformed(&written, FORM))?;
            Ok(OnError::Classify(written))
        }
        (word, None) => match closest(word, &WORDS) {
            Some(close) => Err(Error::new_spanned(
                &written,
                format!(
                    "unknown verdict `{word}`, did you mean `{close}`? a function of that name is written `self::{word}`"
                ),
            )),
            None if word == "ErrorVerdict" => Err(Error::new_spanned(
                &written,
                "`ErrorVerdict` is the trait: write its method, `on_error = ErrorVerdict::verdict`",
            )),
            None if NOT_VERDICTS.contains(&word) => Err(Error::new_spanned(
                &written,
                format!(
                    "unknown verdict `{word}`: {FORM}; a function of that name is written `self::{word}`"
                ),
            )),
            None => Ok(OnError::Classify(written)),
        },
    }
}

pub(crate) fn on_crash(name: &Ident, input: ParseStream<'_>) -> Result<OnCrash> {
    const FORM: &str = "`on_crash` is `rerun`, `uncertain` or `reconcile(path)`";
    let written = expression(name, input, "on_crash = uncertain")?;
    let (word, values) = said(&written);
    match (word.as_str(), values.as_deref()) {
        ("rerun", None) => Ok(OnCrash::Rerun),
        ("uncertain", None) => Ok(OnCrash::Uncertain),
        ("reconcile", Some([ask])) => {
            function_path(
                ask,
                "`reconcile` takes a path to the function that asks what happened, as in `reconcile(ask_gateway)`",
            )?;
            Ok(OnCrash::Reconcile(ask.clone()))
        }
        ("reconcile", _) => Err(Error::new_spanned(
            written,
            "`reconcile` takes one function, the one that asks what happened: `reconcile(ask_gateway)`",
        )),
        ("", _) | (_, Some(_)) => Err(malformed(&written, FORM)),
        (word, None) => Err(misread(
            &written,
            word,
            &["rerun", "uncertain", "reconcile"],
            FORM,
        )),
    }
}

pub(crate) fn on_cancel(name: &Ident, input: ParseStream<'_>) -> Result<OnCancel> {
    one_of(
        name,
        input,
        &[("stop", OnCancel::Stop), ("detach", OnCancel::Detach)],
    )
}

pub(crate) fn on_missing_key(name: &Ident, input: ParseStream<'_>) -> Result<OnMissingKey> {
    one_of(
        name,
        input,
        &[("refuse", OnMissingKey::Refuse), ("run", OnMissingKey::Run)],
    )
}

pub(crate) fn on_outage(name: &Ident, input: ParseStream<'_>) -> Result<OnOutage> {
    let words = [
        ("closed", OnOutage::Closed),
        ("open", OnOutage::Open),
        ("read_only", OnOutage::ReadOnly),
    ];
    one_of(name, input, &words)
}

fn one_of<T: Copy>(name: &Ident, input: ParseStream<'_>, choices: &[(&str, T)]) -> Result<T> {
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let written = expression(name, input, &format!("{name} = {}", words[1]))?;
    let form = format!("`{name}` is {}", either(&words));
    let (word, values) = said(&written);
    let word = word.as_str();
    if word.is_empty() || values.is_some() {
        return Err(malformed(&written, &form));
    }
    choices
        .iter()
        .find(|(choice, _)| *choice == word)
        .map(|(_, value)| *value)
        .ok_or_else(|| misread(&written, word, &words, &form))
}

/// A value that is no word at all; most often the word stands in quotes.
fn malformed(written: &Expr, form: &str) -> Error {
    match written {
        Expr::Lit(ExprLit {
            lit: Lit::Str(_), ..
        }) => Error::new_spanned(written, format!("{form}: leave the quotes out")),
        _ => Error::new_spanned(written, form),
    }
}

fn misread(written: &Expr, word: &str, words: &[&str], form: &str) -> Error {
    match closest(word, words) {
        Some(close) => Error::new_spanned(
            written,
            format!("unknown word `{word}`, did you mean `{close}`? {form}"),
        ),
        None => Error::new_spanned(written, format!("unknown word `{word}`: {form}")),
    }
}

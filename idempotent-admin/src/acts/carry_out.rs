//! The acts themselves.

use idempotent_runtime::{
    BoxError, Error, Idempotency,
    record::{StepName, Version},
};
use serde_json::Value;

use super::{Place, Sent};
use crate::{access::Person, record_act::RecordAct};

/// Does an act to the version that was seen.
pub(super) async fn carry_out(
    idem: &Idempotency,
    person: &Person,
    place: &Place,
    sent: &Sent,
    version: Version,
) -> Result<(), BoxError> {
    if sent.reason.trim().is_empty() {
        return Err(Error::InvalidPolicy("the reason is empty").into());
    }
    let (id, by, reason) = (place.id, person.name(), sent.reason.as_str());
    match place.act {
        RecordAct::Settle | RecordAct::Undo => settle(idem, place, (by, sent), version).await?,
        RecordAct::Step => settle_step(idem, place, (by, sent), version).await?,
        RecordAct::Number => settle_number(idem, place, (by, sent), version).await?,
        RecordAct::Resume => {
            let resume = idem.resume_id(id).at_version(version);
            resume.by(by).because(reason).await?;
        }
        RecordAct::Invalidate => {
            let invalidate = idem.invalidate(id, reason).at_version(version);
            invalidate.by(by).await?;
        }
    }
    Ok(())
}

/// The error for a form without a way.
const NO_WAY: Error = Error::InvalidPolicy("say how it ended");

async fn settle(
    idem: &Idempotency,
    place: &Place,
    (by, sent): (&str, &Sent),
    version: Version,
) -> Result<(), BoxError> {
    let settle = idem.settle_id(place.id).await?.at_version(version);
    let mut settle = settle.by(by).because(sent.reason.as_str());
    if let Some(schema) = schema(sent)? {
        settle = settle.version(schema);
    }
    match (place.act, sent.how.as_str()) {
        (RecordAct::Undo, _) => settle.undo(&json(sent)?).await?,
        (_, "done") => settle.as_done().await?,
        (_, "value") => settle.with_value(&json(sent)?).await?,
        (_, "error") => settle.with_error(&json(sent)?).await?,
        _ => return Err(NO_WAY.into()),
    }
    Ok(())
}

async fn settle_step(
    idem: &Idempotency,
    place: &Place,
    (by, sent): (&str, &Sent),
    version: Version,
) -> Result<(), BoxError> {
    let name = place.step.map_or([0; 32], |step| *step.as_bytes());
    let settle = idem.settle_id(place.id).await?;
    let step = settle
        .step_id(StepName::from_bytes(name))
        .at_version(version);
    let mut step = step.by(by).because(sent.reason.as_str());
    if let Some(schema) = schema(sent)? {
        step = step.version(schema);
    }
    match sent.how.as_str() {
        "value" => step.with_value(&json(sent)?).await?,
        "error" => step.with_error(&json(sent)?).await?,
        "not_done" => step.not_happened().await?,
        "undone" => step.undone().await?,
        _ => return Err(NO_WAY.into()),
    }
    Ok(())
}

async fn settle_number(
    idem: &Idempotency,
    place: &Place,
    (by, sent): (&str, &Sent),
    version: Version,
) -> Result<(), BoxError> {
    let number = idem.settle_number_id(place.id).await?.at_version(version);
    let number = number.by(by).because(sent.reason.as_str());
    match sent.how.as_str() {
        "value" => number.with_value(&json(sent)?).await?,
        "error" => number.with_error(&json(sent)?).await?,
        "done" => number.as_done().await?,
        "not_done" => number.release().await?,
        "skip" => number.skip().await?,
        _ => return Err(NO_WAY.into()),
    }
    Ok(())
}

/// The schema version that the person says, if there is one.
fn schema(sent: &Sent) -> Result<Option<u32>, Error> {
    let said = Some(sent.schema.trim()).filter(|said| !said.is_empty());
    let schema = said.map(str::parse).transpose();
    schema.map_err(|_| Error::InvalidPolicy("a schema version is a number"))
}

fn json(sent: &Sent) -> Result<Value, Error> {
    let value: Value = serde_json::from_str(&sent.value).map_err(|_| {
        Error::InvalidPolicy(
            "the value is no JSON: a text has quotes of its own, such as \"receipt-99\"",
        )
    })?;
    match parts(&sent.value) == parts(&value.to_string()) {
        true => Ok(value),
        false => Err(Error::InvalidPolicy(
            "the store would keep another value than you typed: a number is too long or written in another way, as 1.10 for 1.1, or a field is there twice",
        )),
    }
}

/// The numbers of a JSON text, in some order, and how many fields it has.
fn parts(json: &str) -> (Vec<&str>, usize) {
    let (mut numbers, mut fields) = (Vec::new(), 0);
    let mut rest = json;
    while let Some(at) = rest.find(|it: char| "\":-".contains(it) || it.is_ascii_digit()) {
        rest = &rest[at..];
        let end = match rest.as_bytes()[0] {
            b'"' => end_of_text(rest),
            b':' => {
                fields += 1;
                1
            }
            _ => {
                let is_more = |it: char| !(it.is_ascii_alphanumeric() || "+-.".contains(it));
                let end = rest.find(is_more).unwrap_or(rest.len());
                numbers.push(&rest[..end]);
                end
            }
        };
        rest = &rest[end..];
    }
    numbers.sort_unstable();
    (numbers, fields)
}

/// The end of the text that begins here, behind its last quote.
fn end_of_text(json: &str) -> usize {
    let mut is_escaped = false;
    for (at, it) in json.char_indices().skip(1) {
        match it {
            '"' if !is_escaped => return at + 1,
            it => is_escaped = it == '\\' && !is_escaped,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_as_it_was_typed_or_refused() {
        let kept = |value: &str| {
            let sent = Sent {
                value: value.to_owned(),
                ..Sent::default()
            };
            json(&sent).is_ok()
        };
        for value in [
            "1250",
            "-7",
            "1.5",
            " { \"a\" : [1, 2, {\"b\":null}] , \"c\" : \"x:1 \\\" 2\" } ",
            "\"\\\\\"",
            "\"\\u00e4 ä 12345678901234567890123\"",
            "18446744073709551615",
        ] {
            assert!(kept(value), "{value}");
        }
        for value in [
            "123456789012345678901234567890",
            "18446744073709551616",
            "1.10",
            "1e2",
            "{\"a\":1,\"a\":2}",
            "{\"a\":\"x\",\"a\":\"y\"}",
            "[0.1000000000000000055511151231257827]",
            "receipt-99",
            "",
        ] {
            assert!(!kept(value), "{value}");
        }
    }
}

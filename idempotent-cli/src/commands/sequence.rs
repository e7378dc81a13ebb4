//! `sequence`: streams of numbered calls.

use idempotent_runtime::{
    Error, Idempotency, NotSettled, identity::RecordId, record::Record, sequence::SettleNumber,
};

use super::{
    act::{Agreed, Asked, ask, done},
    look::explain,
    said::Said,
    settle::are_json,
};
use crate::{
    args::{RecordArgs, SequenceCommand, SettleNumberArgs, SignArgs, SkipArgs},
    failure::Failure,
    print::Screen,
    record::find,
};

/// The operations of streams begin so.
const SEQUENCE: &str = "sequence:";

pub(crate) async fn run(
    idem: &Idempotency,
    command: &SequenceCommand,
    is_given: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    match command {
        SequenceCommand::Show(record) => {
            let record = of_sequence(record);
            is_stream(idem, &record).await?;
            explain(idem, &record, screen).await
        }
        SequenceCommand::Skip(args) => skip(idem, args, screen).await,
        SequenceCommand::Settle(args) => settle(idem, args, is_given, screen).await,
    }
}

/// The same record, with the operation that the name of a sequence has.
fn of_sequence(record: &RecordArgs) -> RecordArgs {
    let mut record = record.clone();
    if let Some(name) = record
        .operation
        .as_mut()
        .filter(|it| !it.starts_with(SEQUENCE))
    {
        name.insert_str(0, SEQUENCE);
    }
    record
}

async fn is_stream(idem: &Idempotency, record: &RecordArgs) -> Result<(), Failure> {
    match find(idem, record).await?.record.is_stream() {
        true => Ok(()),
        false => Err(Failure::Usage(
            "this is a call, and no stream of numbered calls".to_owned(),
        )),
    }
}

async fn skip(idem: &Idempotency, args: &SkipArgs, screen: &Screen) -> Result<(), Failure> {
    let (record, number, sign) = (&of_sequence(&args.record), args.number, &args.sign);
    is_stream(idem, record).await?;
    let will = format!(
        "Number {number} will be used up: it NEVER RUNS, and the stream goes on with the next one."
    );
    let asked = ask(idem, (record, sign), (&will, |_: &Record| false), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let found = find(idem, record).await?;
    match (stopped(idem, found.id, number).await, &found.spelled) {
        (Ok(settle), _) => signed(settle, &agreed, sign).skip().await?,
        (Err(Stopped::Nowhere), Some((scope, key))) => {
            let operation = &*found.record.subject.operation;
            let name = operation.strip_prefix(SEQUENCE).unwrap_or(operation);
            let mut sequence = idem.sequence(name, key);
            if !scope.0.is_empty() {
                sequence = sequence.scope(scope);
            }
            let skipped = match args.first {
                // It never comes.
                Some(first) => {
                    let sequence = sequence.first(first);
                    signed(sequence.settle(number), &agreed, sign).skip().await
                }
                // It fails each time it comes.
                None => signed(sequence.settle(number), &agreed, sign).skip().await,
            };
            skipped?;
        }
        (Err(stopped), _) => return Err(stopped.into()),
    }
    done(
        &agreed,
        &format!("the stream goes on behind {number}"),
        screen,
    );
    Ok(())
}

async fn settle(
    idem: &Idempotency,
    args: &SettleNumberArgs,
    is_given: bool,
    screen: &Screen,
) -> Result<(), Failure> {
    let (record, number, sign) = (of_sequence(&args.record), args.number, &args.sign);
    is_stream(idem, &record).await?;
    let read = |text: &String| Said::read(text, is_given);
    let value = args.value.as_ref().map(read).transpose()?;
    let error = args.error.as_ref().map(read).transpose()?;
    if value.is_some() || error.is_some() {
        are_json(idem).await?;
    }
    let will = match (&value, &error) {
        (Some(value), _) => format!("Number {number} happened. A copy of it will get {value}"),
        (_, Some(error)) => format!("Number {number} failed for good. A copy will get {error}"),
        _ if args.done => format!("Number {number} happened, and its value is not known."),
        _ => format!("Number {number} did not happen: it runs when it comes again."),
    };
    let asked = ask(idem, (&record, sign), (&will, |_: &Record| false), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let stopped = stopped(idem, agreed.story.row.id, number).await?;
    let settle = signed(stopped, &agreed, sign);
    match (&value, &error) {
        (Some(value), _) => settle.with_value(value).await?,
        (_, Some(error)) => settle.with_error(error).await?,
        _ if args.done => settle.as_done().await?,
        _ => settle.release().await?,
    }
    done(&agreed, &format!("number {number} is settled"), screen);
    Ok(())
}

/// Why a number is not the one at which the stream stops.
enum Stopped {
    /// No number has begun.
    Nowhere,
    Failed(Failure),
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Failed(failure) => failure,
            Stopped::Nowhere => Self::Refused(
                "no number of the stream has begun: to skip the next one, name the stream by `--operation` and `--key`".to_owned(),
            ),
        }
    }
}

/// The number at which the stream stops, if it is this one.
async fn stopped(
    idem: &Idempotency,
    id: RecordId,
    number: u64,
) -> Result<SettleNumber<'_>, Stopped> {
    match idem.settle_number_id(id).await {
        Ok(settle) if settle.number() == number => Ok(settle),
        Ok(settle) => Err(Stopped::Failed(Failure::Refused(format!(
            "the stream stops at number {}, and not at {number}",
            settle.number()
        )))),
        Err(Error::NotSettled {
            reason: NotSettled::OtherNumber,
            ..
        }) => Err(Stopped::Nowhere),
        Err(error) => Err(Stopped::Failed(error.into())),
    }
}

fn signed<'a>(settle: SettleNumber<'a>, agreed: &Agreed, sign: &SignArgs) -> SettleNumber<'a> {
    let settle = settle.at_version(agreed.story.row.version);
    settle
        .by(agreed.by.as_str())
        .because(sign.signature.reason.as_str())
}

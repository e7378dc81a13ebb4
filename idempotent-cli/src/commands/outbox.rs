//! `outbox`: topics, keys that are parked, and messages that were set aside.

use idempotent_runtime::outbox::{Outbox, OutboxDatabase, Parked, Rejected};
use serde_json::json;

use super::{
    act::{confirm, unshown, who},
    schema::named,
};
use crate::{
    args::{OutboxCommand, ParkedArgs, RejectedArgs, ResendArgs, ResumeKeysArgs, Signature},
    failure::Failure,
    open::{Opened, Place},
    print::{Screen, Table, day_and_time, escaped, in_short},
};

pub(crate) async fn run(
    opened: &Opened,
    command: &OutboxCommand,
    screen: &Screen,
) -> Result<(), Failure> {
    let prefix = opened.prefix.as_deref();
    match &opened.place {
        Place::Sqlite(_, pool) => over(Outbox::sqlite(pool.clone()), prefix, command, screen).await,
        Place::Postgres(_, pool) => {
            over(Outbox::postgres(pool.clone()), prefix, command, screen).await
        }
        Place::MySql(_, pool) => over(Outbox::mysql(pool.clone()), prefix, command, screen).await,
        Place::Redis(_) => Err(Failure::Usage("Redis has no outbox".to_owned())),
        Place::Given => Err(Failure::Usage(
            "an outbox is reached by its URL: use the program `idempotent`".to_owned(),
        )),
    }
}

async fn over<DB: OutboxDatabase>(
    outbox: Outbox<DB>,
    prefix: Option<&str>,
    command: &OutboxCommand,
    screen: &Screen,
) -> Result<(), Failure> {
    let outbox = named(outbox, prefix)?;
    outbox.check_schema().await.map_err(|error| {
        let why = Failure::from(error);
        Failure::Failed(format!(
            "{why}: `idempotent migrate --outbox` makes the tables of an outbox"
        ))
    })?;
    match command {
        OutboxCommand::Topics => topics(&outbox, screen).await,
        OutboxCommand::Parked(args) => parked(&outbox, args, screen).await,
        OutboxCommand::Rejected(args) => rejected(&outbox, args, screen).await,
        OutboxCommand::Resume(args) => match &args.key {
            Some(key) => resume(&outbox, key, &args.sign, screen).await,
            None => resume_all(&outbox, args, screen).await,
        },
        OutboxCommand::Resend(args) => resend(&outbox, args, screen).await,
        OutboxCommand::Discard(args) => match (&args.key, &args.message, &args.rejected) {
            (Some(key), Some(message), _) => {
                discard(&outbox, (key, message), &args.sign, screen).await
            }
            (_, _, Some(id)) => discard_rejected(&outbox, id, &args.sign, screen).await,
            _ => Err(Failure::Usage(
                "name a key and its message, or a message that was set aside".to_owned(),
            )),
        },
    }
}

async fn topics<DB: OutboxDatabase>(outbox: &Outbox<DB>, screen: &Screen) -> Result<(), Failure> {
    let topics = outbox.topics().await?;
    if topics.is_empty() {
        return Err(Failure::NotFound("no message waits".to_owned()));
    }
    let mut table = Table::new(&["TOPIC", "WAITING", "OLDEST", "PARKED KEYS"]);
    for topic in &topics {
        if screen.json {
            screen.object(&json!({
                "topic": topic.topic,
                "pending": topic.pending,
                "is_capped": topic.is_capped,
                "oldest_seconds": topic.oldest.as_secs_f64(),
                "blocked_keys": topic.blocked_keys,
            }))?;
        }
        let more = if topic.is_capped { ", or more" } else { "" };
        table.row([
            escaped(&topic.topic),
            format!("{}{more}", topic.pending),
            in_short(topic.oldest),
            topic.blocked_keys.to_string(),
        ]);
    }
    if !screen.json {
        screen.table(&table)?;
    }
    Ok(())
}

async fn parked<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    args: &ParkedArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let mut keys = outbox.parked().limit(args.limit).after(args.after.clone());
    if let Some(topic) = &args.topic {
        keys = keys.topic(topic);
    }
    if let Some(part) = &args.reason_has {
        keys = keys.reason(part);
    }
    show_parked(&keys.await?, screen)
}

fn show_parked(keys: &[Parked], screen: &Screen) -> Result<(), Failure> {
    if keys.is_empty() {
        return Err(Failure::NotFound("no key is parked like that".to_owned()));
    }
    let mut table = Table::new(&["KEY", "TOPIC", "PARKED FOR", "MESSAGES", "OLDEST", "REASON"]);
    for it in keys {
        if screen.json {
            screen.object(&json!({
                "key": it.key,
                "topic": it.topic,
                "id": it.id,
                "reason": it.reason,
                "parked_seconds": it.since.as_secs_f64(),
                "messages": it.messages,
            }))?;
        }
        table.row([
            escaped(&it.key),
            escaped(&it.topic),
            in_short(it.since),
            it.messages.to_string(),
            escaped(&it.id),
            escaped(&it.reason),
        ]);
    }
    if !screen.json {
        screen.table(&table)?;
    }
    Ok(())
}

async fn rejected<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    args: &RejectedArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let mut messages = outbox.rejected().limit(args.limit);
    if let Some(topic) = &args.topic {
        messages = messages.topic(topic);
    }
    if let Some(id) = &args.id {
        messages = messages.id(id);
    }
    show_rejected(&messages.await?, screen)
}

fn show_rejected(messages: &[Rejected], screen: &Screen) -> Result<(), Failure> {
    if messages.is_empty() {
        return Err(Failure::NotFound(
            "no message was set aside like that".to_owned(),
        ));
    }
    let mut table = Table::new(&["ID", "TOPIC", "KEY", "BYTES", "SET ASIDE", "REASON"]);
    for it in messages {
        if screen.json {
            screen.object(&json!({
                "id": it.id,
                "key": it.key,
                "number": it.number,
                "topic": it.topic,
                "reason": it.reason,
                "bytes": it.bytes,
                "at": it.at.to_string(),
            }))?;
        }
        table.row([
            escaped(&it.id),
            escaped(&it.topic),
            it.key.as_deref().map(escaped).unwrap_or_default(),
            it.bytes.to_string(),
            day_and_time(it.at),
            escaped(&it.reason),
        ]);
    }
    if !screen.json {
        screen.table(&table)?;
    }
    Ok(())
}

/// Says what will happen, and asks. Returns who acts.
fn ask(will: &str, sign: &Signature, screen: &Screen) -> Result<String, Failure> {
    let by = who(sign)?;
    if !screen.json {
        let (by, reason) = (escaped(&by), escaped(&sign.reason));
        let shown = screen
            .line(will)
            .and_then(|()| screen.line(&format!("By {by}, because: {reason}")));
        shown.map_err(Failure::from).map_err(unshown)?;
    }
    if !sign.yes {
        confirm()?;
    }
    Ok(by)
}

/// Says whether something was changed.
fn done(changed: u64, what: &str, screen: &Screen) -> Result<(), Failure> {
    if changed == 0 {
        return Err(Failure::NotFound(
            "nothing was changed: it is not there any more, or another one is first".to_owned(),
        ));
    }
    screen.done(what, &json!({ "done": what, "changed": changed }));
    Ok(())
}

async fn resume<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    key: &str,
    sign: &Signature,
    screen: &Screen,
) -> Result<(), Failure> {
    let will = format!("The key {key:?} will go on with its oldest message.");
    let by = ask(&will, sign, screen)?;
    let resume = outbox.resume(key).by(by.as_str());
    let resumed = resume.because(sign.reason.as_str()).await?;
    done(resumed.into(), "the key goes on", screen)
}

async fn resume_all<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    args: &ResumeKeysArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let sign = &args.sign;
    if [&args.topic, &args.reason_has]
        .iter()
        .any(|it| it.as_deref() == Some(""))
    {
        return Err(Failure::Usage(
            "an empty text would mean all keys".to_owned(),
        ));
    }
    let (mut keys, mut will) = (outbox.parked(), "All parked keys".to_owned());
    if let Some(topic) = &args.topic {
        keys = keys.topic(topic);
        will += &format!(" of the topic {topic:?}");
    }
    if let Some(part) = &args.reason_has {
        keys = keys.reason(part);
        will += &format!(" whose reason has {part:?} in it");
    }
    let by = ask(
        &format!("{will} will go on with their oldest messages."),
        sign,
        screen,
    )?;
    let resume = keys.resume().by(by.as_str());
    let resumed = resume.because(sign.reason.as_str()).await?;
    done(resumed, &format!("{resumed} keys go on"), screen)
}

/// The newest message of this id that was set aside.
async fn set_aside<DB: OutboxDatabase>(outbox: &Outbox<DB>, id: &str) -> Result<Rejected, Failure> {
    let messages = outbox.rejected().id(id).await?;
    let newest = messages.into_iter().max_by_key(|it| it.at);
    newest.ok_or_else(|| Failure::NotFound(format!("no message {id:?} was set aside")))
}

async fn resend<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    args: &ResendArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let (message, sign) = (set_aside(outbox, &args.id).await?, &args.sign);
    let will = "It will be sent again, behind all that its key has now.";
    let by = ask_about(&message, will, sign, screen)?;
    let again = outbox.send_again(&message).by(by.as_str());
    let sent = again.because(sign.reason.as_str()).await?;
    done(sent.into(), "the message waits again", screen)
}

async fn discard_rejected<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    id: &str,
    sign: &Signature,
    screen: &Screen,
) -> Result<(), Failure> {
    let message = set_aside(outbox, id).await?;
    let by = ask_about(&message, "It will be DELETED for good.", sign, screen)?;
    let act = outbox.discard_rejected(&message).by(by.as_str());
    let discarded = act.because(sign.reason.as_str()).await?;
    done(discarded.into(), "the message is deleted", screen)
}

fn ask_about(
    message: &Rejected,
    will: &str,
    sign: &Signature,
    screen: &Screen,
) -> Result<String, Failure> {
    if !screen.json {
        show_rejected(std::slice::from_ref(message), screen).map_err(unshown)?;
    }
    ask(will, sign, screen)
}

async fn discard<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    (key, message): (&str, &str),
    sign: &Signature,
    screen: &Screen,
) -> Result<(), Failure> {
    let will = format!(
        "The message {message:?} will be set aside, and the key {key:?} will go on behind it."
    );
    let by = ask(&will, sign, screen)?;
    let act = outbox.discard(key, message).by(by.as_str());
    let discarded = act.because(sign.reason.as_str()).await?;
    done(
        discarded.into(),
        "the key goes on behind the message",
        screen,
    )
}

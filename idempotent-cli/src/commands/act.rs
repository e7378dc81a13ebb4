//! Changes of one record: it is shown, then asked about, and changed only as it was shown.

use std::io::{self, IsTerminal as _, Write as _};

use idempotent_runtime::{
    Error, Idempotency,
    operate::{Explanation, RecordRow, State},
    record::Record,
};
use serde_json::json;

use super::look::card;
use crate::{
    args::{ActArgs, RecordArgs, SignArgs, Signature},
    failure::Failure,
    print::{Screen, aside, escaped},
    record::find,
    version,
};

/// A change that is about to be made, and that the person has agreed to.
pub(super) struct Agreed {
    pub(super) story: Explanation,
    pub(super) by: String,
}

/// What becomes of a change before it is made.
pub(super) enum Asked {
    Agreed(Box<Agreed>),
    /// The same person did it before, for the same reason.
    IsDone,
}

/// Shows the record and what will happen, and asks.
pub(super) async fn ask(
    idem: &Idempotency,
    (named, sign): (&RecordArgs, &SignArgs),
    (will, stands): (&str, impl Fn(&Record) -> bool),
    screen: &Screen,
) -> Result<Asked, Failure> {
    let by = who(&sign.signature)?;
    let found = find(idem, named).await?;
    let story = idem.explain(found.id).await?;
    let note = story.row.note.as_deref();
    let is_signed = note.is_some_and(|it| {
        it.by.as_deref() == Some(by.as_str()) && *it.text == *sign.signature.reason
    });
    if is_signed && stands(&found.record) {
        aside("This was done already, by the same person and for the same reason.");
        let id = story.row.id.to_hex();
        screen.done(
            "already",
            &json!({ "id": id, "done": "it was done already" }),
        );
        return Ok(Asked::IsDone);
    }
    if let Some(meant) = &sign.at_version {
        is_meant(meant, &story.row)?;
    }
    if !screen.json {
        let reason = escaped(&sign.signature.reason);
        let signed = format!("By {}, because: {reason}", escaped(&by));
        let shown = card(&story, screen).and_then(|()| {
            ["", will, &signed]
                .iter()
                .try_for_each(|line| Ok(screen.line(line)?))
        });
        shown.map_err(unshown)?;
    }
    if !sign.signature.yes {
        confirm()?;
    }
    Ok(Asked::Agreed(Box::new(Agreed { story, by })))
}

/// Nothing is changed that could not be shown.
pub(super) fn unshown(failure: Failure) -> Failure {
    match failure {
        Failure::Unread => Failure::Failed(
            "nothing was changed: the output is closed, so the change could not be shown"
                .to_owned(),
        ),
        failure => failure,
    }
}

fn is_meant(meant: &str, row: &RecordRow) -> Result<(), Failure> {
    let meant = version::read(meant).ok_or_else(|| {
        Failure::Usage("`--at-version` takes the 32 digits that `show` prints".to_owned())
    })?;
    if meant == row.version {
        return Ok(());
    }
    let by = row.note.as_deref().and_then(|note| note.by.as_deref());
    Err(Failure::Refused(format!(
        "the record has moved: it was written by {}, {} held it last, and its version is {} now",
        escaped(by.unwrap_or("a program")),
        escaped(&row.holder),
        version::text(row.version)
    )))
}

/// The person who acts, and who must say why.
pub(super) fn who(sign: &Signature) -> Result<String, Failure> {
    let by = sign.by.clone().unwrap_or_else(user_and_host);
    match (sign.reason.trim().is_empty(), by.trim().is_empty()) {
        (true, _) => Err(Failure::Usage("the reason is empty".to_owned())),
        (_, true) => Err(Failure::Usage("the name of the person is empty".to_owned())),
        _ => Ok(by),
    }
}

pub(super) fn confirm() -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "no terminal can be asked: say `--yes` to act without a question".to_owned(),
        ));
    }
    let mut out = io::stderr().lock();
    write!(out, "Do it? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing was changed".to_owned())),
    }
}

/// The name of the person as the machine has it.
fn user_and_host() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"];
    let user = user.into_iter().find_map(|name| std::env::var(name).ok());
    let host = gethostname::gethostname();
    let user = user.unwrap_or_else(|| "unknown".to_owned());
    format!("{user}@{}", host.to_string_lossy())
}

/// Says that a change is made.
pub(super) fn done(agreed: &Agreed, what: &str, screen: &Screen) {
    let id = agreed.story.row.id.to_hex();
    screen.done(what, &json!({ "id": id, "done": what }));
}

pub(crate) async fn resume(
    idem: &Idempotency,
    args: &ActArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let will = "It will be tried again: the next call with its key takes over and runs.";
    let stands = |it: &Record| matches!(it.state, State::Running | State::Released);
    let asked = ask(idem, (&args.record, &args.sign), (will, stands), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let row = &agreed.story.row;
    let resume = idem.resume_id(row.id).at_version(row.version);
    let resume = resume.by(agreed.by.as_str());
    resume.because(args.sign.signature.reason.as_str()).await?;
    done(&agreed, "the next call tries it again", screen);
    Ok(())
}

pub(crate) async fn invalidate(
    idem: &Idempotency,
    args: &ActArgs,
    screen: &Screen,
) -> Result<(), Failure> {
    let will =
        "Its outcome will answer no call any more: the next call with its key RUNS ONCE MORE.";
    let stands = |it: &Record| it.state == State::Released;
    let asked = ask(idem, (&args.record, &args.sign), (will, stands), screen).await?;
    let Asked::Agreed(agreed) = asked else {
        return Ok(());
    };
    let row = &agreed.story.row;
    let act = idem.invalidate(row.id, args.sign.signature.reason.as_str());
    let act = act.at_version(row.version).by(agreed.by.as_str());
    let done_now: Result<(), Error> = act.await;
    done_now?;
    done(&agreed, "the next call runs once more", screen);
    Ok(())
}

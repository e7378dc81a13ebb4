//! The pages of an outbox: parked keys, messages that were set aside, and acts on them.

use std::sync::Arc;

use axum::{
    Extension, Form,
    extract::{
        Path, Query, State as Shared,
        rejection::{FormRejection, QueryRejection},
    },
    response::Response,
};
use http::{HeaderMap, StatusCode};
use idempotent_runtime::Error;
use serde::Deserialize;

use crate::{
    access::{Act, Person},
    limit::in_time,
    links::Depth,
    outbox::{AnyOutbox, OutboxAct, Signed, Target},
    page::Page,
    replies::html,
    token::Subject,
    views,
};

/// The names of the acts in links, and the rights for them.
const ACTS: [(&str, OutboxAct, Act); 4] = [
    ("resume", OutboxAct::Resume, Act::OutboxResume),
    ("discard", OutboxAct::Discard, Act::OutboxDiscard),
    ("resend", OutboxAct::Resend, Act::OutboxResend),
    ("delete", OutboxAct::Delete, Act::OutboxDiscard),
];

/// The acts that a person may do.
pub(crate) fn may(person: &Person) -> impl Iterator<Item = (&'static str, OutboxAct)> {
    let acts = ACTS.into_iter().filter(|(_, _, right)| person.may(*right));
    acts.map(|(name, act, _)| (name, act))
}

/// The key and the message that a form is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    key: String,
    message: String,
    at: i64,
}

/// A form that was sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sent {
    key: String,
    message: String,
    at: i64,
    token: String,
    reason: String,
}

/// Lists what waits for a person.
pub(crate) async fn list(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
) -> Response {
    let Some(outbox) = &page.outbox else {
        return html(StatusCode::NOT_FOUND, views::no_outbox(&person, Depth::Top));
    };
    let listed = tokio::join!(in_time(outbox.parked()), in_time(outbox.set_aside()));
    match listed {
        (Ok(parked), Ok(set_aside)) => {
            let acts: Vec<_> = may(&person).collect();
            html(
                StatusCode::OK,
                views::outbox(&person, &acts, (&parked, &set_aside)),
            )
        }
        (Err(error), _) | (_, Err(error)) => away(&person, Depth::Top, &error),
    }
}

fn away(person: &Person, depth: Depth, error: &Error) -> Response {
    let text = format!("The outbox did not answer: {error}");
    html(
        StatusCode::SERVICE_UNAVAILABLE,
        views::outbox_ended(person, depth, &text, false),
    )
}

/// The act of a path, if the person may do it, and the outbox.
fn find<'a>(
    page: &'a Page,
    person: &Person,
    act: &str,
) -> Result<(&'static str, OutboxAct, &'a dyn AnyOutbox), NotHere> {
    let found = ACTS.into_iter().find(|(name, ..)| *name == act);
    let (Some((name, act, right)), Some(outbox)) = (found, page.outbox.as_deref()) else {
        return Err(NotHere::Missing);
    };
    match person.may(right) {
        true => Ok((name, act, outbox)),
        false => Err(NotHere::NoRight),
    }
}

/// The reason why there is no form.
enum NotHere {
    Missing,
    NoRight,
}

impl NotHere {
    fn answer(&self, person: &Person) -> Response {
        match self {
            Self::Missing => html(
                StatusCode::NOT_FOUND,
                views::no_outbox(person, Depth::Below),
            ),
            Self::NoRight => refused(person, "You have no right to do this."),
        }
    }
}

fn refused(person: &Person, text: &str) -> Response {
    html(
        StatusCode::FORBIDDEN,
        views::outbox_ended(person, Depth::Below, text, false),
    )
}

/// The subject of a token: the key is in the place of a record, and the message, as it was seen, in
/// that of a version.
fn subject<'a>(
    person: &'a Person,
    act: OutboxAct,
    target: Target<'a>,
    seen: &'a str,
) -> Subject<'a> {
    let act = match act {
        OutboxAct::Resume => "outbox resume",
        OutboxAct::Discard => "outbox discard",
        OutboxAct::Resend => "outbox resend",
        OutboxAct::Delete => "outbox delete",
    };
    Subject {
        person: person.name(),
        act,
        record: target.key,
        version: seen,
    }
}

fn seen(target: Target<'_>) -> String {
    format!("{} {}", target.at, target.message)
}

/// Shows the form of an act.
pub(crate) async fn form(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path(act): Path<String>,
    about: Result<Query<About>, QueryRejection>,
) -> Response {
    let (name, act, outbox) = match find(&page, &person, &act) {
        Ok(found) => found,
        Err(why) => return why.answer(&person),
    };
    let Ok(Query(About { key, message, at })) = about else {
        return html(
            StatusCode::BAD_REQUEST,
            views::no_outbox(&person, Depth::Below),
        );
    };
    let target = Target {
        key: &key,
        message: &message,
        at,
    };
    match in_time(outbox.has(act, target)).await {
        Ok(true) => {}
        Ok(false) => return NotHere::Missing.answer(&person),
        Err(error) => return away(&person, Depth::Below, &error),
    }
    let seen = seen(target);
    let token = page.secret.token(subject(&person, act, target, &seen));
    html(
        StatusCode::OK,
        views::outbox_form(&person, (name, act), target, &token),
    )
}

/// Does an act.
pub(crate) async fn done(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path(act): Path<String>,
    headers: HeaderMap,
    sent: Result<Form<Sent>, FormRejection>,
) -> Response {
    let (_, act, outbox) = match find(&page, &person, &act) {
        Ok(found) => found,
        Err(why) => return why.answer(&person),
    };
    let sent = match sent {
        Ok(Form(sent)) => sent,
        Err(why) => {
            let text = "This is no form of this page.";
            return html(
                why.status(),
                views::outbox_ended(&person, Depth::Below, text, false),
            );
        }
    };
    let target = Target {
        key: &sent.key,
        message: &sent.message,
        at: sent.at,
    };
    let seen = seen(target);
    let subject = subject(&person, act, target, &seen);
    if let Err(why) = page.trusts(&headers, subject, &sent.token) {
        return refused(&person, why);
    }
    if sent.reason.trim().is_empty() {
        let text = "Nothing was changed: the reason is empty.";
        return html(
            StatusCode::BAD_REQUEST,
            views::outbox_ended(&person, Depth::Below, text, false),
        );
    }
    let signed = Signed {
        by: person.name(),
        because: &sent.reason,
    };
    let (status, text) = match outbox.act(act, target, signed).await {
        Ok(true) => (
            StatusCode::OK,
            "Done. The outbox has the reason.".to_owned(),
        ),
        Ok(false) => (
            StatusCode::CONFLICT,
            "Nothing was changed: it is not there any more as you saw it, or another message is first."
                .to_owned(),
        ),
        Err(Error::InvalidPolicy(why)) => (
            StatusCode::BAD_REQUEST,
            format!("Nothing was changed: {why}"),
        ),
        Err(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("It is not known whether it was done. Look at the list. {error}"),
        ),
    };
    html(
        status,
        views::outbox_ended(&person, Depth::Below, &text, status.is_success()),
    )
}

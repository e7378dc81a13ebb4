//! Acts on a record: shown, asked about, and done only to the version that was seen.

mod carry_out;
mod ended;

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
use idempotent_runtime::{
    Error, NotSettled, identity::RecordId, operate::Explanation, record::Version,
};
use serde::Deserialize;

pub(crate) use self::ended::{end, who_wrote};
use crate::{
    access::Person,
    chosen::{text_of, version_of},
    limit::in_time,
    links::Depth,
    page::Page,
    record_act::{Ended, RecordAct},
    replies::html,
    token::Subject,
    views::{self, Wanted, title},
};

/// How large a form may be.
pub(crate) const MOST: usize = 64 * 1024;

/// A form that was sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sent {
    version: String,
    token: String,
    how: String,
    value: String,
    schema: String,
    reason: String,
    step: String,
}

impl Sent {
    /// A form without a value: *done*, where it has ways.
    pub(crate) fn as_done(reason: &str) -> Self {
        Self {
            how: "done".to_owned(),
            reason: reason.to_owned(),
            ..Self::default()
        }
    }
}

/// The step that a form is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    step: String,
}

/// The record and the act of a path, and the step, if the act is on one.
pub(crate) struct Place {
    id: RecordId,
    act: RecordAct,
    step: Option<RecordId>,
}

impl Place {
    pub(crate) fn of_record(id: RecordId, act: RecordAct) -> Self {
        let step = None;
        Self { id, act, step }
    }

    /// Fails for a path that names none, and for a person who may not.
    fn find(person: &Person, (id, act): (&str, &str), step: &str) -> Result<Self, NotHere> {
        let id = id.parse().map_err(|_| NotHere::Missing)?;
        let act = RecordAct::named(act).ok_or(NotHere::Missing)?;
        let step = match act {
            RecordAct::Step => Some(step.parse().map_err(|_| NotHere::Missing)?),
            _ => None,
        };
        match person.may(act.right()) {
            true => Ok(Self { id, act, step }),
            false => Err(NotHere::NoRight),
        }
    }

    /// The version that the act is meant for: that of the record, or of the step.
    fn version(&self, story: &Explanation) -> Option<Version> {
        let Some(name) = self.step else {
            return Some(story.row.version);
        };
        let mut steps = story.steps.iter();
        let step = steps.find(|step| step.name.as_bytes() == name.as_bytes());
        step.map(|step| step.version)
    }

    /// The subject of the token, beside the person and the version.
    fn subject(&self) -> String {
        match self.step {
            None => self.id.to_hex(),
            Some(step) => format!("{}/{}", self.id.to_hex(), step.to_hex()),
        }
    }

    fn answer(&self, person: &Person, status: StatusCode, text: &str) -> Response {
        let id = self.id.to_hex();
        html(
            status,
            views::ended(person, title(self.act), &id, text, status.is_success()),
        )
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
            Self::Missing => html(StatusCode::NOT_FOUND, views::missing(person, Depth::Lower)),
            Self::NoRight => refused(person, "You have no right to do this."),
        }
    }
}

/// The answer for a person without the right, and for a form of another page.
pub(crate) fn refused(person: &Person, text: &str) -> Response {
    html(StatusCode::FORBIDDEN, views::not_here(person, text))
}

/// Shows the form of an act.
pub(crate) async fn form(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path((id, act)): Path<(String, String)>,
    about: Result<Query<About>, QueryRejection>,
) -> Response {
    let about = about.map(|Query(about)| about).unwrap_or_default();
    let place = match Place::find(&person, (&id, &act), &about.step) {
        Ok(place) => place,
        Err(why) => return why.answer(&person),
    };
    match in_time(page.idem.explain(place.id)).await {
        Ok(story) => shown(&page, &person, &place, &story, (&Wanted::default(), None)),
        Err(error) => failed(&person, &place.id.to_hex(), &error),
    }
}

/// The form, with a token for the version that is shown.
fn shown(
    page: &Page,
    person: &Person,
    place: &Place,
    story: &Explanation,
    (wanted, why): (&Wanted, Option<&str>),
) -> Response {
    let Some(version) = place.version(story) else {
        return NotHere::Missing.answer(person);
    };
    let (version, record) = (text_of(version), place.subject());
    let token = page.secret.token(Subject {
        person: person.name(),
        act: place.act.name(),
        record: &record,
        version: &version,
    });
    let status = match why {
        None => StatusCode::OK,
        Some(_) => StatusCode::BAD_REQUEST,
    };
    let (about, step) = ((place.act, story), place.step.map(|step| step.to_hex()));
    html(
        status,
        views::form(
            person,
            about,
            (&version, &token, step.as_deref()),
            (wanted, why),
        ),
    )
}

/// Does an act.
pub(crate) async fn done(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path((id, act)): Path<(String, String)>,
    headers: HeaderMap,
    sent: Result<Form<Sent>, FormRejection>,
) -> Response {
    let (sent, why) = match sent {
        Ok(Form(sent)) => (sent, None),
        Err(why) => (Sent::default(), Some(why.status())),
    };
    let place = match Place::find(&person, (&id, &act), &sent.step) {
        Ok(place) => place,
        Err(why) => return why.answer(&person),
    };
    if let Some(status) = why {
        return place.answer(&person, status, "This is no form of this page.");
    }
    let subject = Subject {
        person: person.name(),
        act: place.act.name(),
        record: &place.subject(),
        version: &sent.version,
    };
    if let Err(why) = page.trusts(&headers, subject, &sent.token) {
        return refused(&person, why);
    }
    let Some(version) = version_of(&sent.version) else {
        return NotHere::Missing.answer(&person);
    };
    let ended = end(&page, &person, &place, &sent, version).await;
    answered(&page, &person, &place, sent, ended).await
}

/// The page after an act.
async fn answered(
    page: &Page,
    person: &Person,
    place: &Place,
    sent: Sent,
    ended: Ended,
) -> Response {
    let (status, text) = match ended {
        Ended::Done => (StatusCode::OK, "Done. The store has the reason.".to_owned()),
        Ended::Invalid(why) => {
            let seen = sent.version;
            let wanted = Wanted {
                how: sent.how,
                value: sent.value,
                schema: sent.schema,
                reason: sent.reason,
            };
            return match in_time(page.idem.explain(place.id)).await {
                Ok(story) if is_as_seen(place, &story, &seen) => {
                    shown(page, person, place, &story, (&wanted, Some(why)))
                }
                Ok(story) => place.answer(person, StatusCode::CONFLICT, &since(&who_wrote(&story))),
                Err(error) => failed(person, &place.id.to_hex(), &error),
            };
        }
        Ended::Moved(text) => (StatusCode::CONFLICT, since(&text)),
        Ended::Refused(text) => (StatusCode::CONFLICT, format!("Nothing was changed: {text}")),
        Ended::Unknown(text) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("It is not known whether it was done. Look at the record. {text}"),
        ),
        Ended::Proposed => (
            StatusCode::ACCEPTED,
            "Nothing was changed yet. It is proposed now: another person has to approve it within 24 hours, and then you do it once more.".to_owned(),
        ),
        Ended::NotProposed(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("Nothing was changed. A second person has to approve it, and it could not be proposed: {error}"),
        ),
    };
    place.answer(person, status, &text)
}

/// Whether the version of a form is the one that is there.
fn is_as_seen(place: &Place, story: &Explanation, seen: &str) -> bool {
    place.version(story).is_some_and(|it| text_of(it) == seen)
}

/// The sentence for an act on a record that has moved.
pub(crate) fn since(what: &str) -> String {
    format!("Nothing was changed. The record has moved since you saw it: {what}.")
}

/// The answer where a record could not be read.
pub(crate) fn failed(person: &Person, id: &str, error: &Error) -> Response {
    match error {
        Error::NotSettled {
            reason: NotSettled::UnknownKey,
            ..
        } => html(StatusCode::NOT_FOUND, views::missing(person, Depth::Lower)),
        error => {
            let text = format!("The store did not answer: {error}");
            html(
                StatusCode::SERVICE_UNAVAILABLE,
                views::ended(person, "The store is away", id, &text, false),
            )
        }
    }
}

//! One act on many records, each at the version that was seen.

use std::sync::Arc;

use axum::{
    Extension, Form,
    extract::{Path, State as Shared, rejection::FormRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use idempotent_runtime::identity::RecordId;
use sha2::{Digest as _, Sha256};

use crate::{
    access::Person,
    acts::{Place, Sent, end},
    chosen::Chosen,
    page::Page,
    record_act::{Ended, RecordAct},
    replies::html,
    token::Subject,
    views,
};

/// How many records may be chosen at once.
pub(crate) const MOST: usize = 500;

/// How many records one request changes. The others wait for the next one.
const AT_ONCE: usize = 50;

/// The fields of a form, in their order. One name is there many times.
type Fields = Vec<(String, String)>;

/// An act on many records, as a form has it.
struct Bulk {
    act: RecordAct,
    chosen: Vec<Chosen>,
}

impl Bulk {
    /// Fails for a form that makes no sense, and for a person who may not.
    fn read(
        person: &Person,
        act: &str,
        fields: &[(String, String)],
    ) -> Result<Self, (StatusCode, String)> {
        let wrong = |text: &str| Err((StatusCode::BAD_REQUEST, text.to_owned()));
        let act = RecordAct::named(act).filter(|act| RecordAct::IN_BULK.contains(act));
        let Some(act) = act else {
            return wrong("No such act is done to many records.");
        };
        if !person.may(act.right()) {
            let text = "You have no right to do this.".to_owned();
            return Err((StatusCode::FORBIDDEN, text));
        }
        let records = fields.iter().filter(|(name, _)| name == "record");
        let chosen: Option<Vec<_>> = records.map(|(_, field)| Chosen::read(field)).collect();
        match chosen {
            None => wrong("This is no form of this page."),
            Some(chosen) if chosen.is_empty() => wrong("No record was chosen."),
            Some(chosen) if chosen.len() > MOST => {
                wrong(&format!("At most {MOST} records are changed at once."))
            }
            Some(chosen) => Ok(Self { act, chosen }),
        }
    }

    /// A digest of the records and their versions, for the token.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for chosen in &self.chosen {
            digest.update(chosen.field());
        }
        let bytes: [u8; 32] = digest.finalize().into();
        RecordId::from_bytes(bytes).to_hex()
    }

    fn subject<'a>(&self, person: &'a Person, digest: &'a str) -> Subject<'a> {
        Subject {
            person: person.name(),
            act: self.act.name(),
            record: "many",
            version: digest,
        }
    }

    fn token(&self, page: &Page, person: &Person) -> String {
        page.secret.token(self.subject(person, &self.digest()))
    }
}

fn value<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let mut fields = fields.iter();
    let found = fields.find(|(it, _)| it == name);
    found.map_or("", |(_, value)| value)
}

/// The fields of a form, unless another site sends it.
fn own(
    page: &Page,
    headers: &HeaderMap,
    sent: Result<Form<Fields>, FormRejection>,
) -> Result<Fields, (StatusCode, String)> {
    let own = page.is_asked_by_itself(headers);
    own.map_err(|why| (StatusCode::FORBIDDEN, why.to_owned()))?;
    let sent = sent.map(|Form(fields)| fields);
    sent.map_err(|why| (why.status(), "This is no form of this page.".to_owned()))
}

/// Shows the form of an act on the records that were chosen in a list.
pub(crate) async fn form(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    headers: HeaderMap,
    sent: Result<Form<Fields>, FormRejection>,
) -> Response {
    let read = own(&page, &headers, sent).and_then(|fields| {
        let act = value(&fields, "act").to_owned();
        Bulk::read(&person, &act, &fields)
    });
    match read {
        Ok(bulk) => {
            let token = bulk.token(&page, &person);
            let form = views::bulk_form(&person, bulk.act, &bulk.chosen, &token);
            html(StatusCode::OK, form)
        }
        Err((status, text)) => html(status, views::no_bulk(&person, &text)),
    }
}

/// Does an act on the first of the records, and offers to go on with the others.
pub(crate) async fn done(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path(act): Path<String>,
    headers: HeaderMap,
    sent: Result<Form<Fields>, FormRejection>,
) -> Response {
    let read = own(&page, &headers, sent).and_then(|fields| {
        let bulk = Bulk::read(&person, &act, &fields)?;
        let token = value(&fields, "token");
        let trusted = page.trusts(&headers, bulk.subject(&person, &bulk.digest()), token);
        trusted.map_err(|why| (StatusCode::FORBIDDEN, why.to_owned()))?;
        match value(&fields, "reason").trim() {
            "" => Err((
                StatusCode::BAD_REQUEST,
                "Nothing was changed: the reason is empty.".to_owned(),
            )),
            reason => Ok((bulk, reason.to_owned())),
        }
    });
    match read {
        Ok((bulk, reason)) => carried_out(&page, &person, bulk, &reason).await,
        Err((status, text)) => html(status, views::no_bulk_below(&person, &text)),
    }
}

/// The page after an act on the first records. One of which nobody knows whether it was done is the
/// last: the store does not answer.
async fn carried_out(page: &Page, person: &Person, mut bulk: Bulk, reason: &str) -> Response {
    let sent = Sent::as_done(reason);
    let mut ended = Vec::new();
    for chosen in bulk.chosen.iter().take(AT_ONCE) {
        let place = Place::of_record(chosen.id, bulk.act);
        let how = end(page, person, &place, &sent, chosen.version).await;
        let is_last = matches!(how, Ended::Unknown(_));
        ended.push((chosen.id, how));
        if is_last {
            break;
        }
    }
    bulk.chosen.drain(..ended.len());
    let token = bulk.token(page, person);
    let rest = (bulk.chosen.as_slice(), token.as_str(), reason);
    html(
        StatusCode::OK,
        views::bulk_ended(person, bulk.act, &ended, rest),
    )
}

//! The pages of a second person: proposals, and their approval.

use std::sync::Arc;

use axum::{
    Extension, Form,
    extract::{Path, State as Shared, rejection::FormRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use idempotent_runtime::{BoxError, Error};
use serde::Deserialize;

use crate::{
    access::{Act, Person},
    limit::in_time,
    links::Depth,
    page::Page,
    replies::html,
    token::Subject,
    trail::{AnyTrail, NotApproved, Proposal},
    views,
};

/// A form that was sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sent {
    proposal: String,
    token: String,
    reason: String,
}

/// The page of an approval that ended, below that of the proposals.
fn answer(person: &Person, status: StatusCode, text: &str) -> Response {
    let is_done = status.is_success();
    html(
        status,
        views::proposal_ended(person, Depth::Below, text, is_done),
    )
}

/// The page in the place of the proposals.
fn no_list(person: &Person, status: StatusCode, text: &str) -> Response {
    html(
        status,
        views::proposal_ended(person, Depth::Top, text, false),
    )
}

/// The subject of the token of an approval.
fn subject<'a>(person: &'a Person, number: &'a str, proposal: &'a str) -> Subject<'a> {
    Subject {
        person: person.name(),
        act: "approve",
        record: number,
        version: proposal,
    }
}

/// Lists the proposals, each with the form of its approval.
pub(crate) async fn list(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
) -> Response {
    let Some(trail) = &page.trail else {
        return no_list(&person, StatusCode::NOT_FOUND, "This page has no audit.");
    };
    let proposals = match in_time(trail.list()).await {
        Ok(proposals) => proposals,
        Err(error) => {
            let text = format!("The audit did not answer: {error}");
            return no_list(&person, StatusCode::SERVICE_UNAVAILABLE, &text);
        }
    };
    let may = person.may(Act::Approve);
    let with_token = |it: Proposal| {
        let number = it.number.to_string();
        let is_own = it.by == person.name();
        let token = page.secret.token(subject(&person, &number, &it.text));
        (it, Some(token).filter(|_| may && !is_own))
    };
    let proposals: Vec<_> = proposals.into_iter().map(with_token).collect();
    html(StatusCode::OK, views::proposals(&person, &proposals))
}

/// Whether the record of a proposal has moved since, or is gone.
async fn moved(page: &Page, trail: &dyn AnyTrail, number: i64) -> Result<bool, BoxError> {
    let all = trail.list().await?;
    let Some(proposed) = all.iter().find(|it| it.number == number) else {
        return Ok(false);
    };
    match page.idem.explain(proposed.record).await {
        Ok(story) => Ok(!trail.is_of(&proposed.text, story.row.version)),
        Err(Error::NotSettled { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Approves a proposal.
pub(crate) async fn approve(
    Shared(page): Shared<Arc<Page>>,
    Extension(person): Extension<Person>,
    Path(number): Path<String>,
    headers: HeaderMap,
    sent: Result<Form<Sent>, FormRejection>,
) -> Response {
    let Some(trail) = &page.trail else {
        return answer(&person, StatusCode::NOT_FOUND, "This page has no audit.");
    };
    let refused = |text| answer(&person, StatusCode::FORBIDDEN, text);
    if !person.may(Act::Approve) {
        return refused("You have no right to do this.");
    }
    let sent = match sent {
        Ok(Form(sent)) => sent,
        Err(why) => return answer(&person, why.status(), "This is no form of this page."),
    };
    let subject = subject(&person, &number, &sent.proposal);
    if let Err(why) = page.trusts(&headers, subject, &sent.token) {
        return refused(why);
    }
    let Ok(number) = number.parse::<i64>() else {
        return answer(&person, StatusCode::NOT_FOUND, "There is no such proposal.");
    };
    match in_time(moved(&page, &**trail, number)).await {
        Ok(false) => {}
        Ok(true) => {
            let text = "Nothing was changed. The record has moved since this was proposed.";
            return answer(&person, StatusCode::CONFLICT, text);
        }
        Err(error) => {
            let text = format!("Nothing was changed. The store did not answer: {error}");
            return answer(&person, StatusCode::SERVICE_UNAVAILABLE, &text);
        }
    }
    if sent.reason.trim().is_empty() {
        let text = "Nothing was changed: the reason is empty.";
        return answer(&person, StatusCode::BAD_REQUEST, text);
    }
    match trail.approve(number, (person.name(), &sent.reason)).await {
        Ok(()) => {
            let text = "It is approved. The act can be done once more, as it was proposed.";
            answer(&person, StatusCode::OK, text)
        }
        Err(NotApproved::Refused(why)) => answer(
            &person,
            StatusCode::CONFLICT,
            &format!("Nothing was changed: {why}"),
        ),
        Err(NotApproved::Failed(error)) => {
            let text = format!("It is not known whether it is approved: {error}");
            answer(&person, StatusCode::SERVICE_UNAVAILABLE, &text)
        }
    }
}

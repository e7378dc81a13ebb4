//! How an act ended.

use idempotent_runtime::{BoxError, Error, Moved, record::Version};

use super::{Place, Sent, carry_out::carry_out};
use crate::{access::Person, page::Page, record_act::Ended};

/// Does an act to the version that was seen.
pub(crate) async fn end(
    page: &Page,
    person: &Person,
    place: &Place,
    sent: &Sent,
    version: Version,
) -> Ended {
    let error = match carry_out(&page.idem, person, place, sent, version).await {
        Ok(()) => return Ended::Done,
        Err(error) => error,
    };
    match proposed(page, person, place, (sent, &*error)).await {
        Some(proposed) => proposed,
        None => of_error(&error),
    }
}

fn of_error(error: &BoxError) -> Ended {
    match error.downcast_ref::<Error>() {
        Some(Error::InvalidPolicy(why)) => Ended::Invalid(why),
        Some(Error::Moved { moved, .. }) => Ended::Moved(who_moved(moved)),
        Some(Error::Store(_)) | None => Ended::Unknown(error.to_string()),
        Some(_) => Ended::Refused(error.to_string()),
    }
}

/// The end of an act for which the database wants a second person: it becomes a proposal.
async fn proposed(
    page: &Page,
    person: &Person,
    place: &Place,
    (sent, error): (&Sent, &(dyn std::error::Error + Send + Sync + 'static)),
) -> Option<Ended> {
    let trail = page.trail.as_ref()?;
    let proposal = trail.refused(error)?;
    let (by, reason) = (person.name(), sent.reason.as_str());
    let all = trail.list().await.unwrap_or_default();
    if all.iter().any(|it| it.text == proposal && it.by == by) {
        return Some(Ended::Proposed);
    }
    let proposed = trail.propose(place.id, &proposal, (by, reason)).await;
    Some(match proposed {
        Ok(()) => Ended::Proposed,
        Err(error) => Ended::NotProposed(error.to_string()),
    })
}

/// The person or the program that wrote the version that stands, and when.
fn who_moved(moved: &Moved) -> String {
    let who = match &moved.by {
        Some(by) => by.to_string(),
        None => format!("the process {}", moved.holder),
    };
    let when = moved.at.map(|at| format!(", at {at}")).unwrap_or_default();
    format!("it was written by {who}{when}")
}

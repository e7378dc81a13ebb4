//! How an act ended.

use idempotent_runtime::{BoxError, Error, Moved, Time, operate::Explanation, record::Version};

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

/// The person or the program that wrote the version that is there, and when.
fn who_moved(moved: &Moved) -> String {
    written(moved.by.as_deref(), &moved.holder, moved.at)
}

/// The same for a record that was read.
pub(crate) fn who_wrote(story: &Explanation) -> String {
    let row = &story.row;
    let by = row.note.as_ref().and_then(|note| note.by.as_deref());
    written(by, &row.holder, row.finished)
}

fn written(by: Option<&str>, holder: &str, at: Option<Time>) -> String {
    let who = by.map_or_else(|| format!("the process {holder}"), str::to_owned);
    let when = at.map(|at| format!(", at {at}")).unwrap_or_default();
    format!("it was written by {who}{when}")
}

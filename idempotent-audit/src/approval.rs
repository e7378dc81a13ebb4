//! Four eyes: a person ends an uncertain or parked record only as another one has approved it.
//!
//! A trigger refuses it otherwise, and names the proposal. So a proposal is exactly the write that
//! was refused: of this version, with this state and this outcome.

use std::{error::Error as StdError, fmt, str::FromStr};

use idempotent_runtime::{Time, identity::RecordId, record::Version};

use crate::{
    act::{Subject, TrailAct},
    audit::Audit,
    error::AuditError,
    event::{Event, Signed},
    four_eyes::{APPROVE, PROPOSE, REFUSED, STANDS},
};

/// The end of a record that a person wants, as the database has refused it.
///
/// Its text is for `audit propose` of the command line: the version of the record, the new state
/// and the kind of the outcome by their codes, and the SHA-256 of the outcome. SQLite cannot
/// compute that hash, so there it is `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal(String);

/// A text is no proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proposal has four parts, as the refusal of an act shows them")]
pub struct NoProposal;

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Proposal {
    type Err = NoProposal;

    fn from_str(text: &str) -> Result<Self, NoProposal> {
        let parts: Vec<_> = text.split(' ').collect();
        let is_hex = |part: &str| part.bytes().all(|it| it.is_ascii_hexdigit());
        let is_one = matches!(parts[..], [version, state, kind, hash]
            if version.len() == 32 && is_hex(version)
                && state.parse::<u8>().is_ok() && kind.parse::<i8>().is_ok()
                && (hash == "-" || hash.len() == 64 && is_hex(hash)));
        match is_one {
            true => Ok(Self(text.to_owned())),
            false => Err(NoProposal),
        }
    }
}

impl Proposal {
    /// Returns the proposal that an act lacks, if this is why it failed.
    #[must_use]
    pub fn refused(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            if let Some((_, said)) = text.split_once(REFUSED) {
                let parts: Vec<_> = said.split_whitespace().take(4).collect();
                return parts.join(" ").parse().ok();
            }
            cause = error.source();
        }
        None
    }

    /// Whether it is about this version of a record.
    #[must_use]
    pub fn is_of(&self, version: Version) -> bool {
        let version = u128::from_be_bytes(version.to_bytes());
        self.0.starts_with(&format!("{version:032x} "))
    }
}

/// A proposal that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proposed {
    /// Its number.
    pub number: i64,
    /// The record that it is about, as the person said.
    pub record: RecordId,
    /// The end that is wanted.
    pub proposal: Proposal,
    /// The person who proposes it.
    pub signed: Signed,
    /// The people who approved it.
    pub approved: Vec<Signed>,
    /// When it ends: after 24 hours. It ends earlier if the record moves.
    pub until: Time,
}

impl Audit {
    /// Proposes an end of an uncertain or parked record that the database has
    /// [refused](Proposal::refused). Another person approves it. Then the act is done once more, by
    /// any of them, within 24 hours and as long as the record does not move.
    pub fn propose(&self, record: RecordId, proposal: Proposal) -> TrailAct<'_> {
        TrailAct::new(self, PROPOSE, end(&proposal, record))
    }

    /// Approves a proposal, as another person: one with another user of the database. A user of the
    /// application acts for many people, as SQLite does, so there the name decides.
    ///
    /// # Errors
    ///
    /// [`AuditError::InvalidAct`] if no such proposal stands, or the same person proposed or
    /// approved it.
    /// [`AuditError::Store`] if the database does not answer. Awaited, the act fails as every
    /// [`TrailAct`].
    pub async fn approve(&self, number: i64, by: &str) -> Result<TrailAct<'_>, AuditError> {
        let mut proposals = self.proposals().await?.into_iter();
        let Some(proposed) = proposals.find(|it| it.number == number) else {
            return Err(AuditError::InvalidAct("no such proposal stands"));
        };
        let own = self.trail.user().await?;
        let person = |user: &Option<String>, by: Option<&str>| match user {
            Some(user) if !self.names.is_of_application(user) => Some(user.clone()),
            _ => by.map(str::to_owned),
        };
        let signed = &proposed.signed;
        if person(&signed.db_user, signed.by.as_deref()) == person(&own, Some(by)) {
            return Err(AuditError::InvalidAct(
                "the person who proposed it cannot approve it",
            ));
        }
        let has = |it: &Signed| person(&it.db_user, it.by.as_deref()) == person(&own, Some(by));
        if proposed.approved.iter().any(has) {
            return Err(AuditError::InvalidAct("this person has approved it before"));
        }
        let subject = end(&proposed.proposal, proposed.record);
        Ok(TrailAct::new(self, APPROVE, subject).by(by))
    }

    /// Returns the proposals of the last 24 hours, the oldest first. The record of each may have
    /// moved by now.
    ///
    /// # Errors
    ///
    /// [`AuditError::Store`] if the database does not answer.
    pub async fn proposals(&self) -> Result<Vec<Proposed>, AuditError> {
        let (names, kinds) = (&self.names, [PROPOSE, APPROVE]);
        let events = self.trail.events(names, &kinds, Some(STANDS)).await?;
        let mut all: Vec<Proposed> = Vec::new();
        for event in &events {
            let Some(proposed) = Proposed::read(event) else {
                continue;
            };
            if event.event == PROPOSE {
                all.push(proposed);
                continue;
            }
            let same = |it: &&mut Proposed| it.proposal == proposed.proposal;
            for it in all.iter_mut().filter(same) {
                it.approved.push(proposed.signed.clone());
            }
        }
        Ok(all)
    }
}

fn end(proposal: &Proposal, record: RecordId) -> Subject {
    Subject::End(format!("{proposal} {}", record.to_hex()))
}

impl Proposed {
    fn read(event: &Event) -> Option<Self> {
        let mut parts = event.detail.splitn(6, ' ');
        let proposal: Vec<_> = parts.by_ref().take(4).collect();
        Some(Self {
            number: event.number,
            proposal: proposal.join(" ").parse().ok()?,
            record: parts.next()?.parse().ok()?,
            signed: Signed::new(event, parts.next()?.to_owned()),
            approved: Vec::new(),
            until: Time::from_micros(event.written.saturating_add(STANDS)),
        })
    }
}
